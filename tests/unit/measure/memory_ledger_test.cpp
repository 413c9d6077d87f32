#include "measure/memory_ledger.hpp"

#include <gtest/gtest.h>

namespace assay::host::measure {
namespace {

constexpr std::size_t parameters = 0;
constexpr std::size_t activations = 3;

TEST(MemoryLedger, PeaksByKindAndOfTheSum) {
  MemoryLedger ledger;
  ledger.add(parameters, 100);
  ledger.add(activations, 50);
  ledger.add(activations, -50);
  ledger.add(parameters, 10);
  EXPECT_EQ(ledger.peak().bytes[parameters], 110);
  EXPECT_EQ(ledger.peak().bytes[activations], 50);
  EXPECT_EQ(ledger.peak_total(), 150);  // not 160: the kinds peaked at different times
  EXPECT_EQ(ledger.current().total(), 110);
}

TEST(MemoryLedger, APeakStartsAnewAtEachMoment) {
  MemoryLedger ledger;
  ledger.add(activations, 80);
  ledger.add(activations, -30);
  ledger.moment("after_setup");
  ledger.add(activations, 10);
  ledger.moment("after_measure");
  const auto moments = ledger.moments();
  ASSERT_EQ(moments.size(), 2u);
  EXPECT_EQ(moments[0].peak.bytes[activations], 80);
  EXPECT_EQ(moments[0].current.bytes[activations], 50);
  EXPECT_EQ(moments[1].peak.bytes[activations], 60);
  EXPECT_EQ(moments[1].peak_total, 60);
}

TEST(MemoryLedger, EachStepHasAPeakOfItsOwn) {
  MemoryLedger ledger;
  ledger.add(parameters, 100);
  ledger.add(activations, 900);  // of the set-up, or the warm-up
  ledger.add(activations, -900);
  EXPECT_EQ(ledger.step_peaks().steps, 0);
  ledger.begin_steps();
  for (const std::int64_t bytes : {50, 20, 80}) {
    ledger.add(activations, bytes);
    ledger.add(activations, -bytes);
    EXPECT_EQ(ledger.end_step(), 100 + bytes);
  }
  ledger.add(activations, 700);  // after the last step
  const StepPeaks peaks = ledger.step_peaks();
  EXPECT_EQ(peaks.steps, 3);
  EXPECT_EQ(peaks.min, 120);
  EXPECT_EQ(peaks.max, 180);
  EXPECT_DOUBLE_EQ(peaks.mean(), 150);
}

TEST(MemoryLedger, StepsThatAllocateNothingHoldWhatIsHeld) {
  MemoryLedger ledger;
  ledger.add(parameters, 100);
  ledger.begin_steps();
  ledger.end_step();
  ledger.end_step();
  const StepPeaks peaks = ledger.step_peaks();
  EXPECT_EQ(peaks.min, 100);
  EXPECT_EQ(peaks.max, 100);
  EXPECT_DOUBLE_EQ(peaks.mean(), 100);
}

TEST(MemoryLedger, WhatWasGivenUpWithoutHavingBeenTakenIsSeen) {
  MemoryLedger ledger;
  ledger.add(0, 10);
  ledger.add(0, -10);
  EXPECT_EQ(ledger.lowest().bytes[0], 0);
  ledger.add(1, -5);
  ledger.add(1, 20);
  EXPECT_EQ(ledger.lowest().bytes[1], -5);
  EXPECT_EQ(ledger.lowest().bytes[0], 0);
}

}  // namespace
}  // namespace assay::host::measure
