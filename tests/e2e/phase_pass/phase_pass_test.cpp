#include <nlohmann/json.hpp>
#include <sstream>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class PhasesApart : public Sandbox {
 protected:
  PhasesApart() : Sandbox(PLUGINS) {}
  void use_a_device_whose_events_take(const char* ns) {
    set_variable("ASSAY_DEVICE_PATH", SWITCHED_DEVICE_FOLDER);
    set_variable("SWITCHED_DEVICE_CPU", CPU_DEVICE);
    set_variable("EVENT_NS", ns);
  }
  json record_of(const std::string& measure, const std::string& run = "") {
    const auto records =
        records_of({.plugin = "captured_work", .measure = measure + "\ntimeout = \"60s\"", .run = run});
    EXPECT_EQ(records.size(), 1u) << output();
    return records.empty() ? json::object() : records.front();
  }
  // What the device was asked for, of all ranks.
  std::string switched() const {
    std::string switched;
    std::istringstream log(text_of(run_folder() / "logs" / "case-0001.log"));
    for (std::string line; std::getline(log, line);)
      if (contains(line, "switched device: events ")) switched += line.substr(line.rfind(' '));
    return switched;
  }
};

std::string note_with(const json& record, const std::string& part) {
  for (const json& note : record["notes"])
    if (contains(note.get<std::string>(), part)) return note;
  return "";
}

constexpr const char* more_than_a_step = "10000000";

TEST_F(PhasesApart, WhereTheirEventsWouldTakeTooMuchOfAStep) {
  use_a_device_whose_events_take(more_than_a_step);
  const json record = record_of("warmup = 5\nsteps = 7");
  EXPECT_EQ(record["status"], "ok") << record["reason"];
  EXPECT_EQ(switched(), " off on off on off") << "on for the phases, and for kernels, which are told by phase";
  const json& pass = record["phase_pass"];
  EXPECT_EQ(pass["steps"], 7);
  EXPECT_EQ(pass["events"], 4);
  EXPECT_EQ(pass["event_us"], 1e4);
  EXPECT_GT(pass["step_mean_ms"], 0);
  EXPECT_EQ(record["phases"]["step"]["n"], 7);
  for (const char* phase : {"forward", "backward"}) {
    const json& reported = record["phases"][phase];
    EXPECT_EQ(reported["n"], 7) << phase;
    EXPECT_NEAR(reported["share"], reported["mean_ms"].get<double>() / pass["step_mean_ms"].get<double>(), 1e-6)
        << phase;
  }
  EXPECT_PRED2(contains, note_with(record, "phases come from"), "phases come from 7 separate steps");
  // The account is of the measured steps alone, and so are metrics.
  EXPECT_PRED2(contains, record["verify"]["text"], "12 steps counted by what they have done");
  EXPECT_EQ(record["step_metrics"]["step"]["n"], 7);
  EXPECT_EQ(record["step_metrics"]["step"]["last"], 12);
}

TEST_F(PhasesApart, WhereStepsAreNotReadOneByOne) {
  use_a_device_whose_events_take(more_than_a_step);
  for (const char* unread : {"sync = false", "inner = 3"}) {
    const json record = record_of(std::string("warmup = 5\nsteps = 7\n") + unread);
    EXPECT_EQ(record["phase_pass"]["steps"], 7) << unread;
    EXPECT_EQ(record["phases"]["forward"]["n"], 7) << unread;
    EXPECT_EQ(note_with(record, "the phases of a captured step are not timed"), "") << unread;
  }
}

TEST_F(PhasesApart, NotWhereTheirEventsAreLittleOfAStep) {
  use_a_device_whose_events_take("1");
  const json record = record_of("warmup = 5\nsteps = 7");
  EXPECT_EQ(switched(), "");
  EXPECT_FALSE(record.contains("phase_pass"));
  EXPECT_EQ(record["phases"]["forward"]["n"], 7);
  EXPECT_EQ(note_with(record, "events that time the phases"), "");
}

// The first step of all is asked for as it is, and there is none before it that would say how long one is.
TEST_F(PhasesApart, NotWithoutAWarmUpWhichANoteTells) {
  use_a_device_whose_events_take(more_than_a_step);
  const json record = record_of("warmup = 0\nsteps = 7");
  EXPECT_EQ(switched(), "");
  EXPECT_FALSE(record.contains("phase_pass"));
  EXPECT_EQ(record["phases"]["forward"]["n"], 7);
  EXPECT_PRED2(contains, note_with(record, "the 4 events that time the phases"), "[measure] warmup = 5");
}

TEST_F(PhasesApart, ADeviceWithoutTheSwitchRecordsThemInEachStep) {
  const json record = record_of("warmup = 5\nsteps = 7");
  EXPECT_FALSE(record.contains("phase_pass"));
  EXPECT_EQ(record["phases"]["forward"]["n"], 7);
  EXPECT_EQ(note_with(record, "events that time the phases"), "");
}

TEST_F(PhasesApart, RanksTakeThePassTogether) {
  use_a_device_whose_events_take(more_than_a_step);
  const json record = record_of("warmup = 5\nsteps = 7", "ranks = 2");
  EXPECT_EQ(record["status"], "ok") << record["reason"];
  EXPECT_EQ(record["phase_pass"]["steps"], 7);
  const json& reported = record["phases"]["forward"];
  EXPECT_EQ(reported["n"], 7);
  EXPECT_NEAR(reported["share"], reported["mean_ms"].get<double>() / record["phase_pass"]["step_mean_ms"].get<double>(),
              1e-6);
}

}  // namespace
}  // namespace assay::test
