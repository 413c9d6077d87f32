#include "compare/notes.hpp"

#include "compare/report.hpp"
#include "noisy_records.hpp"

#include <gtest/gtest.h>

namespace assay::host::compare {
namespace {

Json with_clock(const std::string& size, double time_ms, double clock_mhz, NoisyRuns& machine) {
  Json record = record_of({{"size", size}}, machine.steps(time_ms, 50, {0, 0.001, 0, 0}), {{"size", size}});
  record["device"]["kind"] = "cuda";
  record["telemetry"] = {{"sm_clock_mhz", {{"mean", clock_mhz}, {"min", clock_mhz}, {"max", clock_mhz}}}};
  return record;
}

class NotesOfAComparison : public ::testing::Test {
 protected:
  // Clocks of the second side; those of the first are 1980 MHz.
  Comparison compared(const std::vector<double>& clocks) {
    std::vector<Json> a, b;
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      a.push_back(with_clock(std::to_string(i), 100, 1980, machine_));
      b.push_back(with_clock(std::to_string(i), 110, clocks[i], machine_));
    }
    return compare_sides({side_of(0, {run_of(a)}), side_of(1, {run_of(b)})}, one_state());
  }
  NoisyRuns machine_{61};
};

TEST_F(NotesOfAComparison, ANoteStandsOnceWithTheMarksOfItsCases) {
  const Comparison comparison = compared({1980, 1722, 1605});
  const NumberedNotes notes(comparison);
  EXPECT_EQ(notes.lines(), std::vector<std::string>{
                               "[1] mean clock 1980 MHz in A, 1722 MHz in B (the highest figures; also 1 other)"});
  const auto& cases = comparison.metrics[0].cases;
  EXPECT_EQ(notes.marks(cases[0].entries[1]), "");
  EXPECT_EQ(notes.marks(cases[1].entries[1]), " [1]");
  EXPECT_EQ(notes.marks(cases[2].entries[1]), " [1]");
  const std::string text = comparison_text(comparison, {}, 120);
  EXPECT_NE(text.find("slower [1]"), std::string::npos) << text;
  EXPECT_EQ(text.find("mean clock"), text.rfind("mean clock")) << text;
  EXPECT_GT(text.find("mean clock"), text.rfind("slower")) << text;
}

TEST_F(NotesOfAComparison, WhatIsAboutAllCasesHasNoMarks) {
  const Comparison comparison = compared({1722, 1722});
  const NumberedNotes notes(comparison);
  EXPECT_EQ(notes.lines(), std::vector<std::string>{"all: mean clock 1980 MHz in A, 1722 MHz in B"});
  EXPECT_EQ(notes.marks(comparison.metrics[0].cases[0].entries[1]), "");
}

TEST_F(NotesOfAComparison, JsonHasEveryNoteAtItsCase) {
  const Json json = Json::parse(comparison_json(compared({1980, 1722, 1605}), {}));
  const Json& cases = json["metrics"][0]["cases"];
  EXPECT_TRUE(cases[0]["sides"][1]["notes"].empty());
  EXPECT_EQ(cases[2]["sides"][1]["notes"][0], "mean clock 1980 MHz in A, 1605 MHz in B");
}

}  // namespace
}  // namespace assay::host::compare
