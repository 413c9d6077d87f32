// Plugins and device backends of other minors on this host: built from the kept headers of each minor, as they were
// compiled once, and of a minor that is still to come.
#include <assay/abi.h>
#include <assay/device.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string kept(const std::string& name) { return std::string(KEPT_FOLDER) + "/" + name; }

constexpr const char* cannot_be_loaded =
    "the libraries that were compiled once are for x86-64, and this is another machine; those built from the kept "
    "headers run";
constexpr bool is_x86_64 =
#ifdef __x86_64__
    true;
#else
    false;
#endif

class Border : public Sandbox {
 protected:
  // The folder in which a library of those that were compiled once stands by the name that a host looks for.
  std::string prebuilt(const std::string& library, const std::string& as) {
    const fs::path own = folder() / library;
    fs::create_directories(own);
    fs::copy_file(fs::path(PREBUILT_FOLDER) / (library + ".so"), own / (as + ".so"),
                  fs::copy_options::overwrite_existing);
    return own.string();
  }
  // What the plugin in that folder comes to on the device backend in that one; "": that of this build.
  std::vector<json> records_of_plugin(const std::string& folder, const std::string& device_folder = "",
                                      const std::string& params = "n = 100\nfactor = 0.25") {
    if (!device_folder.empty()) set_variable("ASSAY_DEVICE_PATH", device_folder);
    return records_of({.plugin = folder + "/border_plugin.so",
                       .params = params,
                       .measure = "warmup = 1\nsteps = 3",
                       .sweep = "how = [\"once\", \"twice\"]"});
  }
  void expect_whole(const std::vector<json>& records, unsigned plugin_minor) const {
    ASSERT_EQ(records.size(), 2u) << output();
    for (const json& record : records) {
      ASSERT_EQ(record["status"], "ok") << record["reason"];
      // Before 1.5 no workload kept an account of its steps.
      EXPECT_EQ(record["verify"],
                (json{{"status", "partial"},
                      {"text",
                       "the last element is the sum of all steps; whether the measured steps did their work is "
                       "not known: the workload keeps no account of them (assay.account/1)"}}));
      EXPECT_EQ(record["phases"]["step"]["n"], 3);
      EXPECT_TRUE(record["phases"].contains("add"));
      EXPECT_EQ(record["work"]["items"], 100);
      EXPECT_EQ(record["work"]["item_unit"], "elements");
      EXPECT_EQ(record["memory"]["moments"][0]["name"], "after_setup");
      EXPECT_FALSE(record.contains("copies"));
      EXPECT_EQ(record["plugin"]["abi"], "1." + std::to_string(plugin_minor));
      // What came with a minor is there from it on, and only then.
      EXPECT_EQ(record["metrics"].contains("parity"), plugin_minor >= 1);
      if (plugin_minor >= 1) {
        EXPECT_EQ(record["metrics"]["parity"]["word"], metric(record, "parity") != 0 ? "odd" : "even");
      }
      EXPECT_EQ(record["params"].contains("size"), plugin_minor >= 2);
      EXPECT_EQ(record["work"].contains("arithmetic"), plugin_minor >= 3);
    }
    EXPECT_EQ(metric(records[1], "last"), 2 * metric(records[0], "last"));
    EXPECT_GE(metric(records[0], "last"), 3 * 0.25);
  }
  void expect_device(const std::vector<json>& records, const std::string& version) const {
    for (const json& record : records) {
      EXPECT_EQ(record["device"]["name"], "a device of version " + version);
      EXPECT_EQ(record["device"]["abi"], version);
    }
  }
  // Why a case with that device is refused.
  std::string refusal_of_device(const std::string& device_folder) {
    set_variable("ASSAY_DEVICE_PATH", device_folder);
    const auto records = records_of({.plugin = kept("plugin_1_0/border_plugin.so"), .measure = "steps = 1"}, 1);
    EXPECT_EQ(records.size(), 1u);
    if (records.size() != 1u) return output();
    EXPECT_EQ(records[0]["status"], "unsupported");
    return records[0].value("reason", "");
  }
};

// ---- plugins of each minor
// -------------------------------------------------------------------------------------------

class BorderMinors : public Border, public testing::WithParamInterface<unsigned> {};

TEST_P(BorderMinors, APluginOfThatMinorRuns) {
  const std::string folder = kept("plugin_1_" + std::to_string(GetParam()));
  expect_whole(records_of_plugin(folder), GetParam());
}

TEST_P(BorderMinors, APluginThatWasCompiledThenRuns) {
  if (!is_x86_64) GTEST_SKIP() << cannot_be_loaded;
  const std::string folder = prebuilt("plugin_1_" + std::to_string(GetParam()), "border_plugin");
  expect_whole(records_of_plugin(folder), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Kept, BorderMinors, testing::Values(0u, 1u, 2u, 3u, 4u));

TEST_F(Border, WhatCameWithAMinorWorksAsThen) {
  const auto of_1_2 = records_of({.plugin = kept("plugin_1_2/border_plugin.so"),
                                  .params = "size = \"large\"",
                                  .measure = "warmup = 0\nsteps = 1\nprepare = false"});
  ASSERT_EQ(of_1_2.size(), 1u) << output();
  EXPECT_EQ(of_1_2[0]["params"]["n"], 4096);  // by a preset
  EXPECT_EQ(of_1_2[0]["work"]["items"], 4096);
  EXPECT_EQ(of_1_2[0]["settings"]["measure.prepare"], false);

  const auto of_1_3 = records_of({.plugin = kept("plugin_1_3/border_plugin.so"), .params = "in_part = true"});
  ASSERT_EQ(of_1_3.size(), 1u) << output();
  EXPECT_EQ(of_1_3[0]["verify"], (json{{"status", "partial"}, {"text", "the last element alone"}}));
  EXPECT_TRUE(of_1_3[0]["efficiency"].contains("measured")) << of_1_3[0];
}

// ---- device backends of each minor
// -----------------------------------------------------------------------------------

TEST_F(Border, ADeviceBackendOfEachMinorRuns) {
  for (const char* minor : {"0", "1", "2"}) {
    const auto records = records_of_plugin(kept("plugin_1_0"), kept(std::string("device_1_") + minor));
    expect_whole(records, 0);
    expect_device(records, std::string("1.") + minor);
    EXPECT_EQ(records.at(0)["device"].contains("uuid"), *minor != '0');
  }
}

TEST_F(Border, ADeviceBackendThatWasCompiledThenRuns) {
  if (!is_x86_64) GTEST_SKIP() << cannot_be_loaded;
  for (const char* minor : {"0", "1", "2"}) {
    const std::string device = prebuilt(std::string("device_1_") + minor, "libassay_device_cpu");
    const auto records = records_of_plugin(prebuilt("plugin_1_0", "border_plugin"), device);
    expect_whole(records, 0);
    expect_device(records, std::string("1.") + minor);
  }
}

// What it does not have is not asked for: no ranges, no telemetry, no caches to flush.
TEST_F(Border, ADeviceTableNeedsNoMoreThanTheHostCannotDoWithout) {
  const auto records = records_of_plugin(kept("plugin_today"), kept("device_least"));
  expect_whole(records, ASSAY_ABI_MINOR);
  expect_device(records, "1.0");
}

TEST_F(Border, WhatAnOlderDeviceLacksIsToldByItsName) {
  set_variable("ASSAY_DEVICE_PATH", kept("device_least"));
  const auto records =
      records_of({.plugin = kept("plugin_1_0/border_plugin.so"), .measure = "steps = 1\ncold_cache = true"}, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "unsupported");
  EXPECT_PRED2(contains, records[0].value("reason", ""), "does not offer assay.cache/1");
}

TEST_F(Border, ADeviceTableThatIsShorterIsRefusedWithItsSize) {
  EXPECT_PRED2(contains, refusal_of_device(kept("device_short")), "struct_size 144, less than the 152 bytes");
}

// ---- of a version that is still to come
// ------------------------------------------------------------------------------

TEST_F(Border, APluginOfANewerMinorRuns) { expect_whole(records_of_plugin(kept("plugin_newer")), ASSAY_ABI_MINOR + 1); }

TEST_F(Border, ADeviceBackendOfANewerMinorRuns) {
  const auto records = records_of_plugin(kept("plugin_newer"), kept("device_newer"));
  expect_whole(records, ASSAY_ABI_MINOR + 1);
  expect_device(records, "1." + std::to_string(ASSAY_DEVICE_ABI_MINOR + 1));
  // Its extensions are longer, too.
  const auto cold = records_of({.plugin = kept("plugin_newer/border_plugin.so"), .measure = "cold_cache = true"});
  ASSERT_EQ(cold.size(), 1u) << output();
  EXPECT_EQ(cold[0]["sampling"]["cold"], true);
}

TEST_F(Border, ADeviceBackendOfANewerMajorIsRefusedWithTheVersions) {
  const std::string reason = refusal_of_device(kept("device_newer_major"));
  EXPECT_PRED2(contains, reason, "does not export 'assay_device_v1'");
  EXPECT_PRED2(contains, reason, "built for another major version of the device ABI than this host's 1");
  EXPECT_PRED2(contains, reason, "install the backend that came with this host");
}

// ---- the version where people look
// -----------------------------------------------------------------------------------

TEST_F(Border, TheVersionStandsWhereAPluginIsShown) {
  const std::string here =
      "1." + std::to_string(ASSAY_ABI_MINOR) + ", device ABI 1." + std::to_string(ASSAY_DEVICE_ABI_MINOR);
  EXPECT_PRED2(contains, run({"--version"}).output, "plugin ABI " + here);
  set_variable("ASSAY_DEVICE_PATH", kept("device_1_0"));
  EXPECT_PRED2(contains, run({"list", "--plugin-path", kept("plugin_1_1")}).output, "ABI 1.1");
  const json listed = json::parse(run({"list", "--json", "--plugin-path", kept("plugin_1_1")}).output);
  EXPECT_EQ(listed["abi"], "1." + std::to_string(ASSAY_ABI_MINOR));
  EXPECT_EQ(listed["device_abi"], "1." + std::to_string(ASSAY_DEVICE_ABI_MINOR));
  EXPECT_EQ(listed["plugins"][0]["abi"], "1.1");
  EXPECT_EQ(listed["plugins"][0]["min_host"], "1.0");
  EXPECT_EQ(listed["devices"][0]["abi"], "1.0");
  const std::string plugin = kept("plugin_needs_newest/border_plugin.so");
  const std::string newest = "1." + std::to_string(ASSAY_ABI_MINOR);
  EXPECT_PRED2(contains, run({"describe", plugin}).output, "ABI " + newest + ", needs a host of " + newest);
  const json described = json::parse(run({"describe", "--json", plugin}).output);
  EXPECT_EQ(described["abi"], newest);
  EXPECT_EQ(described["min_host"], newest);
}

// A library of a folder of the sources is what is in the field: whoever changes one changes nothing there.
TEST(Prebuilt, NoneOfThemHasChanged) {
  const std::string command = "cd '" PREBUILT_FOLDER "' && sha256sum --quiet -c SHA256SUMS";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(PREBUILT_FOLDER)) bytes += entry.file_size();
  EXPECT_LE(bytes, 64u * 1024u);
}

}  // namespace
}  // namespace assay::test
