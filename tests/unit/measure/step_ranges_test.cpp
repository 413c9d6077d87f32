// Which ranges a profiler sees of a step, and that telling of them allocates nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "conformance/allocation_count.hpp"
#include "measure/recorder.hpp"
#include "scripted_timeline.hpp"

namespace assay::host::measure {
namespace {

// Writes into its own room, so that what is counted is the recorder's.
class NotedRanges final : public StepRanges {
 public:
  void begin_step() override { note('S'); }
  void begin_phase(std::uint32_t phase) override { note(static_cast<char>('0' + phase)); }
  void end() override { note(')'); }
  std::string said() const { return {said_.data(), count_}; }

 private:
  void note(char c) { said_.at(count_++) = c; }
  std::array<char, 4096> said_{};
  std::size_t count_ = 0;
};

class StepRangesTest : public ::testing::Test {
 protected:
  StepRangesTest() { recorder_.prepare(64, true); }
  void phase(std::uint32_t index) {
    recorder_.phase_begin(index);
    recorder_.phase_end(index);
  }
  testing::ScriptedTimeline timeline_;
  Recorder recorder_{timeline_, 2, 0};
  NotedRanges ranges_;
};

TEST_F(StepRangesTest, AStepHoldsItsPhasesAndTheyNest) {
  recorder_.mark_ranges_by(&ranges_);
  recorder_.begin_step();
  recorder_.phase_begin(0);
  phase(1);
  recorder_.phase_end(0);
  phase(1);
  recorder_.end_step();
  EXPECT_EQ(ranges_.said(), "S01))1))");
}

TEST_F(StepRangesTest, StepsBeforeAndAfterAreNotTold) {
  recorder_.begin_step();
  phase(0);
  recorder_.end_step();
  recorder_.mark_ranges_by(&ranges_);
  recorder_.begin_step();
  recorder_.end_step();
  recorder_.mark_ranges_by(nullptr);
  recorder_.begin_step();
  phase(0);
  recorder_.end_step();
  EXPECT_EQ(ranges_.said(), "S)");
}

TEST_F(StepRangesTest, AReplayedStepIsARangeWithoutPhases) {
  recorder_.mark_ranges_by(&ranges_);
  recorder_.begin_capture();
  phase(0);
  recorder_.end_capture();
  recorder_.begin_step();
  recorder_.replayed();
  recorder_.end_step();
  EXPECT_EQ(ranges_.said(), "S)");
}

TEST_F(StepRangesTest, ACaptureWithinAStepIsNotTold) {
  recorder_.mark_ranges_by(&ranges_);
  recorder_.begin_step();
  phase(0);
  recorder_.begin_capture();
  phase(0);
  recorder_.phase_begin(1);  // left open
  recorder_.end_capture();
  recorder_.end_step();
  EXPECT_EQ(ranges_.said(), "S0))");
}

TEST_F(StepRangesTest, WhatAWorkloadMarksWronglyLeavesNoRangeOpen) {
  recorder_.mark_ranges_by(&ranges_);
  recorder_.begin_step();
  recorder_.phase_begin(0);
  recorder_.phase_end(1);  // another than the open one
  recorder_.phase_begin(9);
  recorder_.phase_begin(1);
  recorder_.end_step();
  EXPECT_EQ(ranges_.said(), "S01)))");
  EXPECT_NE(recorder_.misuse(), "");
}

TEST_F(StepRangesTest, NothingIsAllocatedBetweenTheMarksWithAndWithoutRanges) {
  for (StepRanges* reported : {static_cast<StepRanges*>(nullptr), static_cast<StepRanges*>(&ranges_)}) {
    recorder_.mark_ranges_by(reported);
    const std::uint64_t before = conformance::allocation_count();
    for (int i = 0; i < 16; ++i) {
      recorder_.begin_step();
      phase(0);
      phase(1);
      recorder_.end_step();
      recorder_.flush();
    }
    EXPECT_EQ(conformance::allocation_count(), before);
  }
  EXPECT_EQ(ranges_.said().size(), 16u * 6);
  // The count counts.
  const std::uint64_t before = conformance::allocation_count();
  const std::string long_text(1000, 'x');
  EXPECT_GT(conformance::allocation_count(), before) << long_text.size();
}

}  // namespace
}  // namespace assay::host::measure
