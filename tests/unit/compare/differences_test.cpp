#include "compare/differences.hpp"

#include "noisy_records.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace assay::host::compare
