// Collects what happens in a step: phase marks on both clocks, and reported metrics. Used by one thread.
#pragma once
#include "measure/step_ranges.hpp"
#include "measure/timeline.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::measure {

struct PhaseSamples {
  std::vector<double> device_ns;  // one entry a step; the sum of the phase's occurrences
  std::vector<double> host_ns;
};

struct Samples {
  std::vector<double> step_ns;  // sync: the host's clock to the end of a synchronisation; else the device's timeline
  std::vector<double> step_device_ns;  // always the device's timeline
  std::vector<double> enqueue_ns;      // the host's clock over the run call alone
  std::vector<PhaseSamples> phases;    // by phase index; a phase that never occurred has only zeros
  std::vector<bool> phase_seen;
  std::vector<std::vector<double>> metrics;  // by metric index; one entry per step that reported it
};

// One occurrence of a phase, counted from the begin of its step on the device's timeline.
struct PhaseSpan {
  std::uint32_t phase;
  double begin_ns, end_ns;
};

class Recorder {
 public:
  Recorder(Timeline& timeline, std::size_t phase_count, std::size_t metric_count);

  // The workload has more phases and metrics than before: steps that are over had none of them.
  void grow(std::size_t phase_count, std::size_t metric_count);

  // Room for `steps` steps whose marks are read only when flush() is called. Allocates; not for the measured window.
  void prepare(std::int64_t steps, bool read_each_step);

  // Reports steps from the next one on to `ranges`, which outlives them; null: to nobody. Phases that are marked while
  // a step is captured do not happen then and are not reported; a replayed step is a range without phases.
  void mark_ranges_by(StepRanges* ranges) { ranges_ = ranges; }

  // A sample of one step, or of several that follow each other: its times are the mean of theirs, and so are their
  // metrics. Of several steps no phase is timed: they are many because one is short against its marks.
  void begin_step(std::int64_t steps = 1);
  void end_step();  // records the end mark; no waiting
  // After the device is idle: reads the marks of all steps since the last flush into samples().
  void flush();
  void discard();  // forget everything recorded: the end of warm-up
  // A step's two marks, neither kept nor reported. Between steps, when all are read.
  void mark_nothing();

  // A step recorded once as a graph: the marks between begin_capture and end_capture (outside any step, or in one while
  // no phase is open) are part of it, and happen in every step that calls replayed(). There is one set of them, so
  // their times can be read only while no later replay has begun: with unread steps in flight they are left out, and
  // captured_unread() says so.
  void begin_capture();
  void end_capture();
  void replayed();
  bool captured_unread() const { return captured_unread_; }
  // Events of the captured step: two for each of its phases.
  std::int64_t captured_events() const { return 2 * static_cast<std::int64_t>(captured_.size()); }
  // While true, replays do not record them, so that a replayed step has no captured phases.
  void leave_out_captured(bool leave_out) { leaves_out_captured_ = leave_out; }
  bool leaves_out_captured() const { return leaves_out_captured_; }

  // The phases of the step that ended last, while it is not flushed and the device is idle.
  std::vector<PhaseSpan> last_phases();
  double last_step_ns();  // that step's length on the device's timeline

  // By the workload, inside a step; outside one they are ignored. A misuse is remembered, not thrown: it comes from C.
  void phase_begin(std::uint32_t phase);
  void phase_end(std::uint32_t phase);
  void metric(std::uint32_t metric, double value);

  void set_step_ns(double ns) { step_ns_.push_back(ns); }  // of the step just ended, by the loop when it synchronised
  const std::vector<double>& step_device_ns() const { return samples_.step_device_ns; }  // of the flushed steps
  const std::string& misuse() const { return misuse_; }  // the first one; "" while all marks and metrics were sound
  bool misuse_is_of_metric() const { return misuse_is_of_metric_; }
  std::int32_t open_phase() const {
    return stack_.empty() ? -1 : static_cast<std::int32_t>(marks_[stack_.back()].phase);
  }
  // Returns what was recorded. Afterwards the recorder is as new, but it keeps the captured step.
  Samples take();

 private:
  struct Mark {
    std::uint32_t phase;
    std::uint32_t begin_mark, end_mark;
    std::int64_t host_begin_ns, host_end_ns;
  };
  struct Step {
    std::uint32_t begin_mark, end_mark;
    std::int64_t host_begin_ns, host_end_ns;
    std::size_t first_mark, mark_count;  // in marks_
    bool replayed;
    std::int64_t steps;
  };
  struct ReportedMetric {
    double sum = 0;
    std::int64_t count = 0;  // 0: not reported in this sample
  };
  bool takes_phases() const { return capturing_ || (in_step_ && steps_.back().steps == 1); }
  std::uint32_t next_mark();
  void add_times(const Mark& mark);
  void blame(std::string text, bool is_of_metric = false);

  Timeline& timeline_;
  StepRanges* ranges_ = nullptr;
  std::size_t phase_count_, metric_count_;
  std::uint32_t marks_used_ = 0, marks_reserved_ = 0;
  std::uint32_t captured_marks_ = 0;  // the first ones of the timeline belong to the captured step
  std::vector<Mark> captured_;
  bool capturing_ = false, captured_unread_ = false, read_each_step_ = true, leaves_out_captured_ = false;
  std::vector<Mark> marks_;           // closed and open phases of the steps not yet flushed, or of the capture
  std::vector<Mark> around_capture_;  // those of the step in which something is captured
  std::vector<std::size_t> stack_;    // open phases, as places in marks_; the innermost last
  std::vector<Step> steps_;
  std::vector<double> step_ns_;
  std::vector<ReportedMetric> metric_now_;
  std::vector<std::vector<double>> metrics_;
  Samples samples_;
  bool in_step_ = false;
  std::string misuse_;
  bool misuse_is_of_metric_ = false;
};

}  // namespace assay::host::measure
