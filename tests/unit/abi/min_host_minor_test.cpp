// ASSAY_PLUGIN asks for the oldest host that its workloads can do with, whatever header they were compiled against.
#include <assay/plugin.hpp>

#include <gtest/gtest.h>

namespace assay {
namespace {

struct Plain {
  static constexpr auto id = "plain", summary = "what the first hosts could run";
  explicit Plain(const Case&) {}
  void setup(const Launch&) {}
  void run(const Launch&) {}
};

// What came later, and what an older host never asks for.
struct DoesWithout : Plain {
  using Plain::Plain;
  static constexpr bool cold_start = true, ranks_cooperate = true, steps_elsewhere = true;
  static constexpr auto metrics = table(Metric::per_case("loss", nullptr, ASSAY_LOWER_IS_BETTER, "a number"));
  Verified verify(const Launch&) const { return {"a part", true}; }
  Work work() const { return {.flops = 1, .bytes = 1, .items = 1, .arithmetic = ASSAY_ARITHMETIC_FP32}; }
  Peak peak(const Launch&) const { return {}; }
  void silence(bool) {}
  Account account(const Launch&) { return {}; }
  void open_account(const Launch&) {}
  void restart(const Launch&) {}
};

constexpr auto dtypes = names("fp32", "bf16");
struct HasWords : Plain {
  using Plain::Plain;
  static constexpr auto metrics = table(Metric::per_case("loss", nullptr, ASSAY_LOWER_IS_BETTER, "a number"),
                                        Metric::word("dtype", dtypes, "a word"));
};

constexpr auto sizes = names("small", "large");
struct HasPresets : Plain {
  using Plain::Plain;
  static constexpr auto id = "presets";
  static constexpr auto params = table(Param::choice("size", "small", sizes), Param::integer("width", 0));
  static constexpr auto presets = table(Preset::integer("size", "small", "width", 768));
};

struct SaysSo : Plain {
  using Plain::Plain;
  static constexpr std::uint32_t min_host_minor = 3;
};

struct IsOpen : Plain {
  using Plain::Plain;
  static constexpr bool is_open = true;
};

struct TakesWords : Plain {
  using Plain::Plain;
  static constexpr auto params = table(Param::words("command"));
};

TEST(MinHostMinor, IsWhatTheWorkloadNeeds) {
  EXPECT_EQ(detail::min_host_minor<Plain>(), 0u);
  EXPECT_EQ(detail::min_host_minor<DoesWithout>(), 0u);
  EXPECT_EQ(detail::min_host_minor<HasWords>(), 1u);
  EXPECT_EQ(detail::min_host_minor<HasPresets>(), 2u);
  EXPECT_EQ(detail::min_host_minor<SaysSo>(), 3u);
  EXPECT_EQ(detail::min_host_minor<IsOpen>(), 4u);
  EXPECT_EQ(detail::min_host_minor<TakesWords>(), 4u);
}

TEST(MinHostMinor, IsThatOfTheWorkloadThatNeedsMost) {
  EXPECT_EQ((detail::min_host_minor<Plain, HasPresets, HasWords>()), 2u);
  EXPECT_EQ((detail::min_host_minor<SaysSo, Plain>()), 3u);
}

}  // namespace
}  // namespace assay

// Of the whole plugin, as a host reads it.
ASSAY_PLUGIN("org.assay.test.min_host_minor", "1.0.0", assay::Plain, assay::HasPresets)

TEST(MinHostMinor, StandsInTheEntry) {
  EXPECT_EQ(assay_entry_v1.min_host_minor, 2u);
  EXPECT_EQ(assay_entry_v1.abi_minor, ASSAY_ABI_MINOR);
}
