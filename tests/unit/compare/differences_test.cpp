#include "compare/differences.hpp"

#include "noisy_records.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace assay::host::compare {
namespace {

Json environment(const std::string& kernel, double load) {
  return {{"schema", 1},
          {"cpu", {{"model", "AMD EPYC"}, {"usable_cores", 2}}},
          {"memory", {{"total_mib", 24000.0}, {"available_mib", load * 1000}}},
          {"os", {{"kernel", kernel}}},
          {"load_average", {load, load, load}},
          {"assay", {{"revision", "abc"}}}};
}

Json with_libraries(const std::string& libraries) {
  Json record = record_of({}, {1, 2});
  record["device"]["libraries"] = libraries;
  return record;
}

std::vector<std::string> items_of(const Differences& differences) {
  std::vector<std::string> items;
  for (const Difference& difference : differences.items) items.push_back(difference.item);
  return items;
}

TEST(DifferencesOfEnvironment, EqualMachinesHaveNoneWhateverTheirLoad) {
  const Differences differences =
      find_differences({side_of(0, {run_of({record_of({}, {1})}, environment("Linux 6.1", 0.1))}),
                        side_of(1, {run_of({record_of({}, {1})}, environment("Linux 6.1", 3.0))})});
  EXPECT_TRUE(differences.items.empty()) << differences.items[0].item;
  EXPECT_TRUE(differences.untold[0].empty());
}

TEST(DifferencesOfEnvironment, OnlyWhatDiffersAndTheDeviceFirst) {
  const Differences differences = find_differences(
      {side_of(0, {run_of({with_libraries("driver 13.0 (580.1), cuDNN 9.19.0")}, environment("Linux 6.1", 0))}),
       side_of(1, {run_of({with_libraries("driver 13.0 (590.2), cuDNN 9.19.0")}, environment("Linux 6.2", 0))})});
  ASSERT_EQ(items_of(differences), (std::vector<std::string>{"driver and libraries", "os.kernel"}));
  EXPECT_EQ(differences.items[0].values, (std::vector<std::string>{"driver 13.0 (580.1)", "driver 13.0 (590.2)"}));
  EXPECT_EQ(differences.items[1].values, (std::vector<std::string>{"Linux 6.1", "Linux 6.2"}));
}

// The code that a case ran is another, so each of its names and contents is listed.
TEST(DifferencesOfEnvironment, TwoVersionsOfOneDnn) {
  Json before = with_libraries("oneDNN 2.6.3; products up to avx512_core_bf16; OpenMP 4.5, 2 threads");
  Json after = with_libraries("oneDNN 3.7.2; products up to avx512_core_bf16; OpenMP 4.5, 2 threads");
  before["libraries"] = {{"libdnnl.so.2", "a1"}, {"libc.so.6", "c1"}};
  after["libraries"] = {{"libdnnl.so.3", "a2"}, {"libc.so.6", "c1"}};
  const Differences differences = find_differences({side_of(0, {run_of({before})}), side_of(1, {run_of({after})})});
  ASSERT_FALSE(differences.items.empty());
  EXPECT_EQ(differences.items[0].item, "driver and libraries");
  EXPECT_EQ(differences.items[0].values, (std::vector<std::string>{"oneDNN 2.6.3", "oneDNN 3.7.2"}));
}

TEST(DifferencesOfEnvironment, SettingsThatAreNoAxis) {
  Json more = record_of({}, {1});
  more["settings"]["measure.warmup"] = 50;
  const Differences differences =
      find_differences({side_of(0, {run_of({record_of({}, {1})})}), side_of(1, {run_of({more})})});
  ASSERT_EQ(items_of(differences), std::vector<std::string>{"measure.warmup"});
  EXPECT_EQ(differences.items[0].values, (std::vector<std::string>{"5", "50"}));
  more["axes"]["measure.warmup"] = 50;
  const Differences as_axis =
      find_differences({side_of(0, {run_of({record_of({}, {1})})}), side_of(1, {run_of({more})})});
  EXPECT_TRUE(as_axis.items.empty());
  for (const std::vector<std::string>& untold : as_axis.untold)
    EXPECT_EQ(std::count(untold.begin(), untold.end(), "measure.warmup"), 0) << "the cases say it";
}

TEST(DifferencesOfEnvironment, ThreadsAreTheNumberThatWasUsed) {
  Json by_default = record_of({}, {1}), asked = by_default, one = by_default;
  by_default["settings"]["run.threads"] = 0;
  by_default["threads"] = {{"count", 2}, {"count_from", "2 usable processors"}};
  asked["settings"]["run.threads"] = 2;
  asked["threads"] = {{"count", 2}, {"count_from", "[run] threads"}};
  EXPECT_TRUE(find_differences({side_of(0, {run_of({by_default})}), side_of(1, {run_of({asked})})}).items.empty());
  one["settings"]["run.threads"] = 0;
  one["threads"] = {{"count", 1}, {"count_from", "OMP_NUM_THREADS=1"}};
  const Differences other = find_differences({side_of(0, {run_of({by_default})}), side_of(1, {run_of({one})})});
  ASSERT_EQ(items_of(other), std::vector<std::string>{"run.threads"});
  EXPECT_EQ(other.items[0].values, (std::vector<std::string>{"2", "1"}));
}

TEST(DifferencesOfEnvironment, ASideThatDoesNotSayIsNoDifference) {
  const Differences differences =
      find_differences({side_of(0, {run_of({record_of({}, {1})}, environment("Linux 6.1", 0))}),
                        side_of(1, {run_of({record_of({}, {1})})})});
  EXPECT_TRUE(differences.items.empty());
  EXPECT_TRUE(differences.untold[0].empty());
  EXPECT_EQ(std::count(differences.untold[1].begin(), differences.untold[1].end(), "os.kernel"), 1);
}

TEST(DifferencesOfEnvironment, RunsOfOneSideThatDifferAmongThemselves) {
  const Differences differences =
      find_differences({side_of(0, {run_of({record_of({}, {1})}, environment("Linux 6.1", 0)),
                                    run_of({record_of({}, {1})}, environment("Linux 6.2", 0))}),
                        side_of(1, {run_of({record_of({}, {1})}, environment("Linux 6.1", 0))})});
  ASSERT_EQ(items_of(differences), std::vector<std::string>{"os.kernel"});
  EXPECT_EQ(differences.items[0].values[0], "Linux 6.1 | Linux 6.2");
}

// One case on two days. In between came a driver, a library, a variable, a backend, another part of a GPU.
class TwoDays : public ::testing::Test {
 protected:
  static Json environment_of(const Json& invocation) {
    return {{"cpu", {{"model", "AMD EPYC"}}},
            {"os", {{"hostname", "n1"}, {"kernel", "Linux 6.1"}}},
            {"gpu", {{"driver", "580.1"}}},
            {"variables", {{"OMP_NUM_THREADS", "2"}}},
            {"invocations", Json::array({invocation})}};
  }
  static Json record() {
    Json record = record_of({}, {1, 2});
    record["host"] = "n1", record["environment"] = "first";
    record["device"]["uuid"] = "GPU-1", record["device"]["driver"] = "580.1";
    record["files"] = {{"host", "h1"}, {"plugin", "p1"}, {"device", "d1"}};
    record["libraries"] = {{"libcudnn.so.9", "b1"}, {"libc.so.6", "c1"}};
    record["algorithms"] = {{"matmul 8x8", "tile 16"}};
    return record;
  }
  static Json first_invocation() {
    return {{"captured", "2026-11-20T12:00:00Z"}, {"command", "assay run x.toml"}, {"load_average", {0, 0, 0}}};
  }
  static Side side(std::size_t index, const Json& record, const Json& environment) {
    ComparedRun run = run_of({record}, {{"os", {{"kernel", "of the newest invocation"}}}});
    run.environments.emplace(record["environment"], *record::Environment::parse(environment.dump()));
    return side_of(index, {run});
  }
};

TEST_F(TwoDays, WhatDiffersIsListedWhole) {
  Json later = record(), moved = environment_of({{"captured", "2026-11-21T12:00:00Z"},
                                                 {"command", "assay run x.toml --device cuda"},
                                                 {"load_average", {9, 9, 9}}});
  later["environment"] = "second", later["host"] = "n2";
  later["device"]["uuid"] = "MIG-2", later["device"]["driver"] = "590.2";
  later["files"]["device"] = "d2", later["files"]["plugin"] = "p2";
  later["libraries"] = {{"libcudnn.so.9", "b2"}, {"libc.so.6", "c1"}, {"libtcmalloc.so.4", "t1"}};
  later["algorithms"]["matmul 8x8"] = "tile 32";
  moved["os"] = {{"hostname", "n2"}, {"kernel", "Linux 6.2"}}, moved["gpu"]["driver"] = "590.2";
  moved["variables"] = {{"NVIDIA_TF32_OVERRIDE", "0"}, {"OMP_NUM_THREADS", "4"}};
  const Differences differences =
      find_differences({side(0, record(), environment_of(first_invocation())), side(1, later, moved)});
  std::map<std::string, std::vector<std::string>> found;
  for (const Difference& difference : differences.items) found[difference.item] = difference.values;
  using Pair = std::vector<std::string>;
  const std::map<std::string, Pair> expected{{"algorithm of matmul 8x8", Pair{"tile 16", "tile 32"}},
                                             {"command", Pair{"assay run x.toml", "assay run x.toml --device cuda"}},
                                             {"device.driver", Pair{"580.1", "590.2"}},
                                             {"device.uuid", Pair{"GPU-1", "MIG-2"}},
                                             {"file device", Pair{"d1", "d2"}},
                                             {"file plugin", Pair{"p1", "p2"}},
                                             {"gpu.driver", Pair{"580.1", "590.2"}},
                                             {"library libcudnn.so.9", Pair{"b1", "b2"}},
                                             {"library libtcmalloc.so.4", Pair{"not loaded", "t1"}},
                                             {"os.hostname", Pair{"n1", "n2"}},
                                             {"os.kernel", Pair{"Linux 6.1", "Linux 6.2"}},
                                             {"variables.NVIDIA_TF32_OVERRIDE", Pair{"not set", "0"}},
                                             {"variables.OMP_NUM_THREADS", Pair{"2", "4"}}};
  EXPECT_EQ(found, expected);
  for (const std::vector<std::string>& untold : differences.untold) EXPECT_TRUE(untold.empty()) << untold[0];
}

TEST_F(TwoDays, TheSameAgainHasNone) {
  Json again = first_invocation();
  again["captured"] = "2026-11-21T12:00:00Z", again["load_average"] = {9, 9, 9};
  const Differences differences = find_differences(
      {side(0, record(), environment_of(first_invocation())), side(1, record(), environment_of(again))});
  EXPECT_TRUE(differences.items.empty()) << differences.items[0].item;
}

TEST_F(TwoDays, AnEarlierVersionLookedForFewerVariables) {
  Json of_before = environment_of({}), now = environment_of(first_invocation());
  of_before.erase("invocations");
  now["variables"]["LD_PRELOAD"] = "libx.so";
  const Differences differences = find_differences({side(0, record(), of_before), side(1, record(), now)});
  EXPECT_TRUE(differences.items.empty()) << differences.items[0].item;
  EXPECT_EQ(differences.untold[0], (std::vector<std::string>{"command", "variables.LD_PRELOAD"}));
}

TEST_F(TwoDays, TheOrderInWhichARunSaysThingsIsNone) {
  Json other = record();
  other["environment"] = "second", other["files"]["plugin"] = "p2", other["axes"] = {{"x", 1}};
  ComparedRun one = run_of({record(), other}), turned = run_of({other, record()});
  const Differences differences = find_differences({side_of(0, {one}), side_of(1, {turned})});
  EXPECT_TRUE(differences.items.empty()) << differences.items[0].item;
}

}  // namespace
}  // namespace assay::host::compare
