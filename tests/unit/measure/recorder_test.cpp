#include "measure/recorder.hpp"

#include <gtest/gtest.h>

#include "scripted_timeline.hpp"

namespace assay::host::measure {
namespace {

using testing::ScriptedTimeline;

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() { recorder_.prepare(8, true); }
  ScriptedTimeline timeline_;
  Recorder recorder_{timeline_, 2, 1};
};

TEST_F(RecorderTest, OccurrencesOfAPhaseAddUpAndPhasesNest) {
  recorder_.begin_step();
  recorder_.phase_begin(0);
  timeline_.device_work(10);
  recorder_.phase_begin(1);
  timeline_.device_work(5);
  recorder_.phase_end(1);
  recorder_.phase_end(0);
  recorder_.phase_begin(1);
  timeline_.device_work(2);
  recorder_.phase_end(1);
  recorder_.end_step();
  recorder_.flush();
  const Samples s = recorder_.take();
  EXPECT_EQ(s.phases[0].device_ns, std::vector<double>{15});
  EXPECT_EQ(s.phases[1].device_ns, std::vector<double>{7});
  EXPECT_EQ(s.step_device_ns, std::vector<double>{17});
  EXPECT_EQ(recorder_.misuse(), "");
}

TEST_F(RecorderTest, APhaseAndAMetricThatComeLaterHaveNothingOfTheStepsBefore) {
  recorder_.begin_step();
  recorder_.end_step();
  recorder_.flush();
  recorder_.begin_step();
  recorder_.grow(3, 2);
  recorder_.phase_begin(2);
  timeline_.device_work(5);
  recorder_.phase_end(2);
  recorder_.metric(1, 8);
  recorder_.end_step();
  recorder_.flush();
  const Samples s = recorder_.take();
  ASSERT_EQ(s.phases.size(), 3u);
  EXPECT_EQ(s.phases[2].device_ns, (std::vector<double>{0, 5}));
  EXPECT_TRUE(s.phase_seen[2]);
  EXPECT_EQ(s.metrics[1], std::vector<double>{8});
  EXPECT_EQ(recorder_.misuse(), "");
}

// Their times and metrics are those of one of them; a mark of a phase would be most of so short a step.
TEST_F(RecorderTest, ASampleOfSeveralStepsIsTheirMeanWithoutPhases) {
  recorder_.begin_step(4);
  for (int step = 1; step <= 4; ++step) {
    recorder_.phase_begin(0);
    timeline_.host_work(2);
    timeline_.device_work(10);
    recorder_.metric(0, step);
    recorder_.phase_end(0);
  }
  recorder_.end_step();
  recorder_.flush();
  const Samples s = recorder_.take();
  EXPECT_EQ(s.step_device_ns, std::vector<double>{10});
  EXPECT_EQ(s.enqueue_ns, std::vector<double>{2});
  EXPECT_FALSE(s.phase_seen[0]);
  EXPECT_EQ(s.metrics[0], std::vector<double>{2.5});
  EXPECT_EQ(recorder_.misuse(), "");
}

// The host returns at once while the device works: only the device's timeline has the time.
TEST_F(RecorderTest, AsynchronousWorkIsTimedOnTheDevice) {
  recorder_.begin_step();
  recorder_.phase_begin(0);
  timeline_.host_work(3);
  timeline_.device_work(1000);
  recorder_.phase_end(0);
  recorder_.end_step();
  recorder_.flush();
  const Samples s = recorder_.take();
  EXPECT_EQ(s.phases[0].device_ns[0], 1000);
  EXPECT_EQ(s.phases[0].host_ns[0], 3);
}

// Where the phases of a step lie, for a trace of its kernels: the captured ones as well.
TEST_F(RecorderTest, LastPhasesCountFromTheBeginOfTheStep) {
  recorder_.begin_capture();
  recorder_.phase_begin(1);
  recorder_.phase_end(1);
  recorder_.end_capture();
  timeline_.device_work(100);
  recorder_.begin_step();
  timeline_.device_work(3);
  recorder_.phase_begin(0);
  timeline_.device_work(4);
  recorder_.phase_end(0);
  recorder_.end_step();
  std::vector<PhaseSpan> spans = recorder_.last_phases();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].phase, 0u);
  EXPECT_EQ(spans[0].begin_ns, 3);
  EXPECT_EQ(spans[0].end_ns, 7);
  EXPECT_EQ(recorder_.last_step_ns(), 7);
  recorder_.discard();
  recorder_.begin_step();
  recorder_.replayed();
  recorder_.end_step();
  spans = recorder_.last_phases();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].phase, 1u);
}

// A cold start: the first step is taken with its own marks, and captured before it ends.
TEST_F(RecorderTest, AStepMayBeCapturedWithinTheFirstOne) {
  recorder_.begin_step();
  recorder_.phase_begin(0);
  timeline_.device_work(100);
  recorder_.phase_end(0);
  recorder_.begin_capture();
  recorder_.phase_begin(0);
  timeline_.device_work(7);
  recorder_.phase_end(0);
  recorder_.end_capture();
  recorder_.phase_begin(1);
  timeline_.device_work(30);
  recorder_.phase_end(1);
  recorder_.end_step();
  recorder_.flush();
  recorder_.begin_step();
  recorder_.replayed();
  timeline_.device_work(1);
  recorder_.end_step();
  recorder_.flush();
  const Samples s = recorder_.take();
  EXPECT_EQ(recorder_.misuse(), "");
  EXPECT_EQ(s.phases[0].device_ns, (std::vector<double>{100, 7}));
  EXPECT_EQ(s.phases[1].device_ns, (std::vector<double>{30, 0}));
}

TEST_F(RecorderTest, NothingIsCapturedWithinAPhase) {
  recorder_.begin_step();
  recorder_.phase_begin(0);
  recorder_.begin_capture();
  recorder_.phase_end(0);
  recorder_.end_step();
  EXPECT_NE(recorder_.misuse().find("inside a phase"), std::string::npos);
}

// Marks of a captured step: made once, read after every step that replays it.
TEST_F(RecorderTest, CapturedPhasesBelongToEachReplay) {
  recorder_.begin_capture();
  recorder_.phase_begin(1);
  timeline_.device_work(7);
  recorder_.phase_end(1);
  recorder_.end_capture();
  for (int i = 0; i < 3; ++i) {
    recorder_.begin_step();
    recorder_.replayed();
    recorder_.phase_begin(0);
    timeline_.device_work(2);
    recorder_.phase_end(0);
    recorder_.end_step();
    recorder_.flush();
  }
  const Samples s = recorder_.take();
  EXPECT_EQ(s.phases[1].device_ns, (std::vector<double>{7, 7, 7}));
  EXPECT_EQ(s.phases[1].host_ns, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(s.phases[0].device_ns, (std::vector<double>{2, 2, 2}));
  EXPECT_FALSE(recorder_.captured_unread());
  EXPECT_EQ(recorder_.misuse(), "");
}

TEST_F(RecorderTest, CapturedPhasesAreLeftOutWhenStepsAreReadTogether) {
  recorder_.begin_capture();
  recorder_.phase_begin(1);
  recorder_.phase_end(1);
  recorder_.end_capture();
  recorder_.prepare(8, false);
  for (int i = 0; i < 2; ++i) {
    recorder_.begin_step();
    recorder_.replayed();
    recorder_.end_step();
  }
  recorder_.flush();
  EXPECT_TRUE(recorder_.captured_unread());
  EXPECT_FALSE(recorder_.take().phase_seen[1]);
}

// And after what was recorded is taken, they can be timed after all.
TEST_F(RecorderTest, CapturedPhasesMayBeLeftOutOfReplays) {
  recorder_.begin_capture();
  recorder_.phase_begin(1);
  timeline_.device_work(7);
  recorder_.phase_end(1);
  recorder_.end_capture();
  EXPECT_EQ(recorder_.captured_events(), 2);
  const auto replay = [&] {
    recorder_.begin_step();
    recorder_.replayed();
    recorder_.phase_begin(0);
    timeline_.device_work(2);
    recorder_.phase_end(0);
    recorder_.metric(0, 5);
    recorder_.end_step();
    recorder_.flush();
  };
  recorder_.leave_out_captured(true);
  replay();
  const Samples without = recorder_.take();
  EXPECT_FALSE(without.phase_seen[1]);
  EXPECT_EQ(without.phases[0].device_ns, std::vector<double>{2});
  EXPECT_FALSE(recorder_.captured_unread());
  recorder_.leave_out_captured(false);
  recorder_.prepare(8, true);
  replay();
  const Samples with = recorder_.take();
  EXPECT_EQ(with.phases[1].device_ns, std::vector<double>{7});
  EXPECT_EQ(with.phases[0].device_ns, std::vector<double>{2});
  EXPECT_EQ(with.metrics[0], std::vector<double>{5});
  EXPECT_EQ(with.step_device_ns, std::vector<double>{2});
  EXPECT_EQ(recorder_.misuse(), "");
}

TEST_F(RecorderTest, AReplayWithoutACaptureIsMisuse) {
  recorder_.begin_step();
  recorder_.replayed();
  recorder_.end_step();
  EXPECT_NE(recorder_.misuse().find("nothing was captured"), std::string::npos);
}

TEST_F(RecorderTest, PhasesThatNeverOccurAreNotSeen) {
  recorder_.begin_step();
  recorder_.end_step();
  recorder_.flush();
  const Samples s = recorder_.take();
  EXPECT_FALSE(s.phase_seen[0]);
  EXPECT_EQ(s.phases[0].device_ns, std::vector<double>{0});
}

TEST_F(RecorderTest, AnUnendedPhaseIsBlamedAndDoesNotSpoilTheNextStep) {
  recorder_.begin_step();
  recorder_.phase_begin(0);
  recorder_.end_step();
  EXPECT_NE(recorder_.misuse().find("not ended"), std::string::npos);
  recorder_.begin_step();
  EXPECT_EQ(recorder_.open_phase(), -1);
  recorder_.end_step();
  recorder_.flush();
  EXPECT_EQ(recorder_.take().step_device_ns.size(), 2u);
}

TEST_F(RecorderTest, WrongIndicesAreBlamed) {
  recorder_.begin_step();
  recorder_.phase_begin(9);
  EXPECT_NE(recorder_.misuse().find("index 9"), std::string::npos);
  recorder_.end_step();
}

TEST_F(RecorderTest, AnEndThatMatchesNothingIsBlamed) {
  recorder_.begin_step();
  recorder_.phase_begin(0);
  recorder_.phase_end(1);
  EXPECT_NE(recorder_.misuse().find("innermost"), std::string::npos);
  recorder_.end_step();
}

TEST_F(RecorderTest, MarksOutsideAStepAreIgnored) {
  recorder_.phase_begin(0);
  recorder_.phase_end(0);
  EXPECT_EQ(recorder_.misuse(), "");
}

TEST_F(RecorderTest, MoreMarksThanReservedGrowThePool) {
  recorder_.begin_step();
  for (int i = 0; i < 500; ++i) recorder_.phase_begin(0), recorder_.phase_end(0);
  recorder_.end_step();
  recorder_.flush();
  EXPECT_FALSE(timeline_.out_of_range());
  EXPECT_TRUE(recorder_.take().phase_seen[0]);
}

TEST_F(RecorderTest, DiscardForgetsWarmUp) {
  recorder_.begin_step();
  recorder_.metric(0, 1.0);
  recorder_.end_step();
  recorder_.flush();
  recorder_.discard();
  recorder_.begin_step();
  recorder_.metric(0, 2.0);
  recorder_.end_step();
  recorder_.flush();
  const Samples s = recorder_.take();
  EXPECT_EQ(s.step_device_ns.size(), 1u);
  EXPECT_EQ(s.metrics[0], std::vector<double>{2.0});
}

}  // namespace
}  // namespace assay::host::measure
