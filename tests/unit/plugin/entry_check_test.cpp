// Plugins of another age: rows of their tables are shorter, and are read no further than they reach.
#include "plugin/entry_check.hpp"

#include <assay/plugin.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace assay::host::plugin {
namespace {

constexpr std::size_t metric_bytes_1_0 = 40;

constexpr auto dtypes = names("fp32", "bf16");

struct Declares {
  static constexpr auto id = "declares", summary = "a metric with words, and one without";
  static constexpr auto metrics = table(Metric::word("logits_dtype", dtypes, "of the logits"),
                                        Metric::per_case("loss", nullptr, ASSAY_NEITHER_IS_BETTER, ""));
  explicit Declares(const Case&) {}
  void setup(const Launch&) {}
  void run(const Launch&) {}
};

// An entry around one workload, which must outlive it.
class Entry {
 public:
  explicit Entry(const assay_workload& workload) : workloads_{&workload} {
    entry_.struct_size = sizeof entry_;
    entry_.abi_major = ASSAY_ABI_MAJOR;
    entry_.id = "org.assay.test.declares", entry_.version = "1.0.0", entry_.build = "a test";
    entry_.workload_count = 1, entry_.workloads = workloads_;
  }
  const assay_entry& operator*() const { return entry_; }

 private:
  const assay_workload* workloads_[1];
  assay_entry entry_{};
};

TEST(EntryCheck, AMetricsWordsAreCopied) {
  const assay_workload& workload = *detail::workload_pointers<Declares>[0];
  EXPECT_NO_THROW(check_entry("x.so", *Entry(workload)));
  const WorkloadSchema schema = copy_schema(workload, ASSAY_ABI_MINOR);
  EXPECT_EQ(schema.metrics[0].words, (std::vector<std::string>{"fp32", "bf16"}));
  EXPECT_TRUE(schema.metrics[1].words.empty());
}

TEST(EntryCheck, AMetricOfVersion10HasNoWords) {
  // The row alone on the heap, so that a sanitizer sees a byte too many.
  std::vector<std::uint64_t> row(metric_bytes_1_0 / 8);
  assay_metric whole = Declares::metrics[0].row;
  whole.struct_size = metric_bytes_1_0;
  std::memcpy(row.data(), &whole, metric_bytes_1_0);
  const assay_metric* const metrics[] = {reinterpret_cast<const assay_metric*>(row.data())};
  assay_workload workload = *detail::workload_pointers<Declares>[0];
  workload.metrics = metrics, workload.metric_count = 1;
  EXPECT_NO_THROW(check_entry("x.so", *Entry(workload)));
  const WorkloadSchema schema = copy_schema(workload, ASSAY_ABI_MINOR);
  ASSERT_EQ(schema.metrics.size(), 1u);
  EXPECT_EQ(schema.metrics[0].name, "logits_dtype");
  EXPECT_TRUE(schema.metrics[0].words.empty());
}

TEST(EntryCheck, WordsThatAreNoneAreRefused) {
  assay_metric metric = Declares::metrics[0].row;
  const assay_metric* const metrics[] = {&metric};
  assay_workload workload = *detail::workload_pointers<Declares>[0];
  workload.metrics = metrics, workload.metric_count = 1;
  metric.words = nullptr;
  EXPECT_THROW(check_entry("x.so", *Entry(workload)), PluginError);
  const char* const blank[] = {"fp32", "two words"};
  metric.words = blank;
  EXPECT_THROW(check_entry("x.so", *Entry(workload)), PluginError);
}

constexpr auto sizes = names("small", "large");

struct HasPresets {
  static constexpr auto id = "presets", summary = "a size that stands for a width";
  static constexpr auto params = table(Param::choice("size", "small", sizes), Param::integer("width", 0).at_most(2048),
                                       Param::boolean("causal", false), Param::real("rate", 0.5).at_least(0));
  static constexpr auto presets =
      table(Preset::integer("size", "small", "width", 768), Preset::integer("size", "large", "width", 1280).on("cuda"));
  static constexpr bool cold_start = true;
  explicit HasPresets(const Case&) {}
  void setup(const Launch&) {}
  void run(const Launch&) {}
};

TEST(EntryCheck, PresetsAndTheColdStartAreCopied) {
  const assay_workload& workload = *detail::workload_pointers<HasPresets>[0];
  EXPECT_NO_THROW(check_entry("x.so", *Entry(workload)));
  const WorkloadSchema schema = copy_schema(workload, ASSAY_ABI_MINOR);
  ASSERT_EQ(schema.presets.size(), 2u);
  EXPECT_EQ(schema.presets[0].when, "size");
  EXPECT_EQ(schema.presets[0].value, Value(std::int64_t{768}));
  EXPECT_EQ(schema.presets[0].device_kind, "");
  EXPECT_EQ(schema.presets[1].device_kind, "cuda");
  EXPECT_TRUE(schema.starts_cold);
}

TEST(EntryCheck, AnOlderWorkloadHasNoPresetsAndPreparesAlways) {
  assay_workload workload = *detail::workload_pointers<HasPresets>[0];
  workload.struct_size = offsetof(assay_workload, presets);
  EXPECT_NO_THROW(check_entry("x.so", *Entry(workload)));
  const WorkloadSchema schema = copy_schema(workload, ASSAY_ABI_MINOR);
  EXPECT_TRUE(schema.presets.empty());
  EXPECT_FALSE(schema.starts_cold);
}

struct Cooperates : Declares {
  static constexpr bool ranks_cooperate = true;
  using Declares::Declares;
};

TEST(EntryCheck, WhatRanksAreToEachOtherIsKnownOfVersion13On) {
  const assay_workload& together = *detail::workload_pointers<Cooperates>[0];
  const assay_workload& alone = *detail::workload_pointers<Declares>[0];
  EXPECT_EQ(copy_schema(together, ASSAY_ABI_MINOR).ranks, RanksAre::cooperating);
  EXPECT_EQ(copy_schema(alone, ASSAY_ABI_MINOR).ranks, RanksAre::copies);
  EXPECT_EQ(copy_schema(alone, 3).ranks, RanksAre::copies);
  EXPECT_EQ(copy_schema(alone, 2).ranks, RanksAre::unsaid);
  assay_workload older = alone;
  older.struct_size = offsetof(assay_workload, presets);
  EXPECT_EQ(copy_schema(older, 1).ranks, RanksAre::unsaid);
}

TEST(EntryCheck, APresetNamesAChoiceAndAParameterOfTheTable) {
  const assay_preset good = HasPresets::presets[0].row;
  const auto refusal = [](const assay_preset& preset) -> std::string {
    assay_workload workload = *detail::workload_pointers<HasPresets>[0];
    const assay_preset* rows[] = {&preset};
    workload.presets = rows, workload.preset_count = 1;
    try {
      check_entry("x.so", *Entry(workload));
    } catch (const PluginError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(good), "");
  assay_preset bad = good;
  bad.choice = "huge";
  EXPECT_NE(refusal(bad).find("size = \"huge\", which is no choice"), std::string::npos) << refusal(bad);
  bad = good, bad.when = "width";
  EXPECT_NE(refusal(bad).find("which is no choice"), std::string::npos) << refusal(bad);
  bad = good, bad.param = "depth";
  EXPECT_NE(refusal(bad).find("sets 'depth', which is no parameter"), std::string::npos) << refusal(bad);
  bad = good, bad.also_when = "width", bad.also_choice = "1";
  EXPECT_NE(refusal(bad).find("width = \"1\""), std::string::npos) << refusal(bad);
  bad = good, bad.int_value = 4096;
  EXPECT_NE(refusal(bad).find("sets 'width' to 4096, outside its range"), std::string::npos) << refusal(bad);
  bad = good, bad.string_value = "wide";
  EXPECT_NE(refusal(bad).find("sets 'width' to a text"), std::string::npos) << refusal(bad);
  bad = good, bad.param = "size", bad.string_value = nullptr;
  EXPECT_NE(refusal(bad).find("sets 'size' to a number"), std::string::npos) << refusal(bad);
  bad.string_value = "huge";
  EXPECT_NE(refusal(bad).find("sets 'size' to \"huge\", which is no choice"), std::string::npos) << refusal(bad);
  bad = good, bad.param = "causal", bad.int_value = 2;
  EXPECT_NE(refusal(bad).find("expected 0 or 1"), std::string::npos) << refusal(bad);
  bad = Preset::real("size", "small", "rate", std::numeric_limits<double>::quiet_NaN()).row;
  EXPECT_NE(refusal(bad).find("outside its range"), std::string::npos) << refusal(bad);
  EXPECT_EQ(refusal(Preset::real("size", "small", "rate", 0.25).row), "");
  EXPECT_EQ(refusal(Preset::boolean("size", "small", "causal", true).row), "");
  bad = good, bad.struct_size = 8;
  EXPECT_NE(refusal(bad).find("preset 0 is malformed"), std::string::npos) << refusal(bad);
}

}  // namespace
}  // namespace assay::host::plugin
