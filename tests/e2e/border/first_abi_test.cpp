// A plugin and device backends that were built against the first headers run in this host.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class FirstAbi : public Sandbox {
 protected:
  FirstAbi() : Sandbox(PLUGIN_1_0_FOLDER) {}

  // What the plugin comes to on the device of that folder; "": the one of this build.
  std::vector<json> records_on(const std::string& device_folder) {
    if (!device_folder.empty()) set_variable("ASSAY_DEVICE_PATH", device_folder);
    return records_of({.plugin = "plugin_1_0",
                       .params = "n = 100\nfactor = 0.25",
                       .measure = "warmup = 1\nsteps = 3",
                       .sweep = "how = [\"once\", \"twice\"]"});
  }
  void expect_whole(const std::vector<json>& records) const {
    ASSERT_EQ(records.size(), 2u) << output();
    for (const json& record : records) {
      EXPECT_EQ(record["status"], "ok") << record["reason"];
      EXPECT_EQ(record["verify"], (json{{"status", "ok"}, {"text", "the last element is the sum of all steps"}}));
      EXPECT_EQ(record["phases"]["step"]["n"], 3);
      EXPECT_TRUE(record["phases"].contains("add"));
      EXPECT_EQ(record["work"]["items"], 100);
      EXPECT_EQ(record["work"]["item_unit"], "elements");
      EXPECT_EQ(record["memory"]["moments"][0]["name"], "after_setup");
      EXPECT_FALSE(record.contains("copies"));
    }
    EXPECT_EQ(metric(records[1], "last"), 2 * metric(records[0], "last"));
    EXPECT_GE(metric(records[0], "last"), 3 * 0.25);
  }
};

TEST_F(FirstAbi, ItsPluginRuns) { expect_whole(records_on("")); }

TEST_F(FirstAbi, ItsDeviceBackendRuns) {
  const auto records = records_on(DEVICE_1_0_FOLDER);
  expect_whole(records);
  EXPECT_EQ(records.at(0)["device"]["name"], "a device of version 1.0");
}

// What it does not have is not asked for: no ranges, no telemetry, no caches to flush.
TEST_F(FirstAbi, ADeviceTableNeedsNoMoreThanTheHostCannotDoWithout) {
  const auto records = records_on(LEAST_DEVICE_FOLDER);
  expect_whole(records);
  EXPECT_EQ(records.at(0)["device"]["name"], "a device of version 1.0");
}

TEST_F(FirstAbi, WhatAnOlderDeviceLacksIsToldByItsName) {
  set_variable("ASSAY_DEVICE_PATH", LEAST_DEVICE_FOLDER);
  const auto records = records_of({.plugin = "plugin_1_0", .measure = "steps = 1\ncold_cache = true"}, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "unsupported");
  EXPECT_PRED2(contains, records[0].value("reason", ""), "does not offer assay.cache/1");
}

TEST_F(FirstAbi, ADeviceTableThatIsShorterIsRefusedWithItsSize) {
  set_variable("ASSAY_DEVICE_PATH", SHORT_DEVICE_FOLDER);
  const auto records = records_of({.plugin = "plugin_1_0", .measure = "steps = 1"}, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "unsupported");
  EXPECT_PRED2(contains, records[0].value("reason", ""), "struct_size 144, less than the 152 bytes");
}

}  // namespace
}  // namespace assay::test
