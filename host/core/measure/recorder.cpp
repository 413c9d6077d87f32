#include "measure/recorder.hpp"

#include <algorithm>
#include <utility>

namespace assay::host::measure {
namespace {

constexpr std::uint32_t most_marks = 1u << 16;  // a device event each; beyond it the pool grows as it is used

}  // namespace

Recorder::Recorder(Timeline& timeline, std::size_t phase_count, std::size_t metric_count)
    : timeline_(timeline), phase_count_(phase_count), metric_count_(metric_count) {
  metric_now_.assign(metric_count, {});
  metrics_.resize(metric_count);
  samples_.phases.resize(phase_count);
  samples_.phase_seen.assign(phase_count, false);
}

void Recorder::grow(std::size_t phase_count, std::size_t metric_count) {
  if (phase_count > phase_count_) {
    phase_count_ = phase_count;
    const std::vector<double> none(samples_.step_device_ns.size(), 0.0);
    samples_.phases.resize(phase_count, {none, none});
    samples_.phase_seen.resize(phase_count, false);
  }
  if (metric_count > metric_count_) {
    metric_count_ = metric_count;
    metric_now_.resize(metric_count);
    metrics_.resize(metric_count);
  }
}

void Recorder::prepare(std::int64_t steps, bool read_each_step) {
  const auto n = static_cast<std::size_t>(steps);
  read_each_step_ = read_each_step;
  const std::size_t unread = read_each_step ? 1 : n;
  const std::size_t marks_per_step = 2 + 4 * phase_count_;  // each phase twice: a guess that a workload may exceed
  marks_.reserve(std::max(marks_.capacity(), unread * 2 * phase_count_ + 64));
  stack_.reserve(64);
  steps_.reserve(unread + 1);
  step_ns_.reserve(n), samples_.step_ns.reserve(n), samples_.step_device_ns.reserve(n), samples_.enqueue_ns.reserve(n);
  for (PhaseSamples& p : samples_.phases) p.device_ns.reserve(n), p.host_ns.reserve(n);
  for (std::vector<double>& m : metrics_) m.reserve(n);
  const auto wanted =
      static_cast<std::uint32_t>(std::min<std::size_t>(most_marks, captured_marks_ + unread * marks_per_step + 64));
  if (wanted > marks_reserved_) timeline_.reserve(marks_reserved_ = wanted);
}

std::uint32_t Recorder::next_mark() {
  if (marks_used_ == marks_reserved_) timeline_.reserve(marks_reserved_ = marks_reserved_ * 2 + 64);
  timeline_.mark(marks_used_);
  return marks_used_++;
}

void Recorder::begin_capture() {
  if (capturing_ || !stack_.empty()) return blame("a capture was begun inside a phase or another capture");
  capturing_ = true;
  captured_.clear();
  around_capture_.swap(marks_);
  marks_.clear();
  if (!in_step_) marks_used_ = captured_marks_ = 0;  // in a step its marks so far stay, and stay out of use later
}

void Recorder::end_capture() {
  if (!capturing_) return blame("a capture was ended that was not begun");
  if (!stack_.empty()) blame("a phase was begun and not ended in the captured step");
  capturing_ = false;
  stack_.clear();
  captured_marks_ = marks_used_;
  captured_.swap(marks_);
  marks_.swap(around_capture_);
  around_capture_.clear();
  if (!in_step_) marks_.clear();
}

void Recorder::replayed() {
  if (!in_step_) return;
  if (captured_.empty()) return blame("a replay of a captured step, but nothing was captured");
  steps_.back().replayed = steps_.back().steps == 1 && !leaves_out_captured_;
}

void Recorder::begin_step(std::int64_t steps) {
  in_step_ = true;
  if (ranges_) ranges_->begin_step();
  for (ReportedMetric& m : metric_now_) m = {};
  Step step{};
  step.steps = steps;
  step.first_mark = marks_.size();
  step.host_begin_ns = timeline_.host_now_ns();
  step.begin_mark = next_mark();
  steps_.push_back(step);
}

void Recorder::end_step() {
  Step& step = steps_.back();
  if (!stack_.empty()) {
    blame("a phase was begun and not ended in the same step");
    if (ranges_)
      for (std::size_t open = stack_.size(); open > 0; --open) ranges_->end();
    stack_.clear();
  }
  step.end_mark = next_mark();
  step.host_end_ns = timeline_.host_now_ns();
  step.mark_count = marks_.size() - step.first_mark;
  for (std::size_t i = 0; i < metric_count_; ++i)
    if (const ReportedMetric& m = metric_now_[i]; m.count > 0)
      metrics_[i].push_back(m.sum / static_cast<double>(m.count));
  if (ranges_) ranges_->end();
  in_step_ = false;
}

void Recorder::phase_begin(std::uint32_t phase) {
  if (!takes_phases()) return;
  if (phase >= phase_count_)
    return blame("phase_begin with index " + std::to_string(phase) + ", but the workload names " +
                 std::to_string(phase_count_) + " phases");
  // Outside the marks, so that a range holds what it names.
  if (ranges_ && in_step_ && !capturing_) ranges_->begin_phase(phase);
  const std::uint32_t begin_mark = next_mark();
  stack_.push_back(marks_.size());
  marks_.push_back({phase, begin_mark, 0, timeline_.host_now_ns(), -1});
}

void Recorder::phase_end(std::uint32_t phase) {
  if (!takes_phases()) return;
  if (stack_.empty() || marks_[stack_.back()].phase != phase)
    return blame("phase_end with index " + std::to_string(phase) + " does not match the innermost open phase");
  Mark& mark = marks_[stack_.back()];
  mark.end_mark = next_mark();
  mark.host_end_ns = timeline_.host_now_ns();
  stack_.pop_back();
  if (ranges_ && in_step_ && !capturing_) ranges_->end();
}

void Recorder::metric(std::uint32_t metric, double value) {
  if (metric >= metric_count_)
    return blame(
        "metric with index " + std::to_string(metric) + ", but the workload declares " + std::to_string(metric_count_),
        true);
  if (!in_step_) return;
  ReportedMetric& now = metric_now_[metric];
  if (steps_.back().steps == 1) now = {};  // the last value of a step counts
  now.sum += value, ++now.count;
}

void Recorder::blame(std::string text, bool is_of_metric) {
  if (!misuse_.empty()) return;
  misuse_ = std::move(text);
  misuse_is_of_metric_ = is_of_metric;
}

void Recorder::flush() {
  for (const Step& step : steps_) {
    const auto steps = static_cast<double>(step.steps);
    samples_.step_device_ns.push_back(timeline_.elapsed_ns(step.begin_mark, step.end_mark) / steps);
    samples_.enqueue_ns.push_back(static_cast<double>(step.host_end_ns - step.host_begin_ns) / steps);
    for (PhaseSamples& p : samples_.phases) p.device_ns.push_back(0), p.host_ns.push_back(0);
    for (std::size_t i = step.first_mark; i < step.first_mark + step.mark_count; ++i) add_times(marks_[i]);
    if (step.replayed && read_each_step_)
      for (Mark mark : captured_) {
        mark.host_end_ns = mark.host_begin_ns;  // the host had no part in it
        add_times(mark);
      }
    captured_unread_ = captured_unread_ || (step.replayed && !read_each_step_);
  }
  steps_.clear(), marks_.clear();
  marks_used_ = captured_marks_;
}

void Recorder::add_times(const Mark& mark) {
  if (mark.host_end_ns < 0) return;  // never ended: blamed already
  PhaseSamples& p = samples_.phases[mark.phase];
  p.device_ns.back() += timeline_.elapsed_ns(mark.begin_mark, mark.end_mark);
  p.host_ns.back() += static_cast<double>(mark.host_end_ns - mark.host_begin_ns);
  samples_.phase_seen[mark.phase] = true;
}

std::vector<PhaseSpan> Recorder::last_phases() {
  const Step& step = steps_.back();
  const auto first = marks_.begin() + static_cast<std::ptrdiff_t>(step.first_mark);
  std::vector<Mark> marks(first, first + static_cast<std::ptrdiff_t>(step.mark_count));
  std::erase_if(marks, [](const Mark& mark) { return mark.host_end_ns < 0; });
  if (step.replayed) marks.insert(marks.end(), captured_.begin(), captured_.end());
  std::vector<PhaseSpan> spans;
  for (const Mark& mark : marks)
    spans.push_back({mark.phase, timeline_.elapsed_ns(step.begin_mark, mark.begin_mark),
                     timeline_.elapsed_ns(step.begin_mark, mark.end_mark)});
  return spans;
}

double Recorder::last_step_ns() {
  const Step& step = steps_.back();
  return timeline_.elapsed_ns(step.begin_mark, step.end_mark);
}

void Recorder::discard() {
  steps_.clear(), marks_.clear(), step_ns_.clear();
  marks_used_ = captured_marks_;
  samples_.step_ns.clear(), samples_.step_device_ns.clear(), samples_.enqueue_ns.clear();
  for (PhaseSamples& p : samples_.phases) p.device_ns.clear(), p.host_ns.clear();
  samples_.phase_seen.assign(phase_count_, false);
  for (std::vector<double>& m : metrics_) m.clear();
}

void Recorder::mark_nothing() {
  const std::uint32_t used = marks_used_;
  (void)next_mark(), (void)next_mark();
  marks_used_ = used;
}

Samples Recorder::take() {
  // Whatever the loop did not time on the host's clock is timed on the device's.
  samples_.step_ns = step_ns_;
  for (std::size_t i = step_ns_.size(); i < samples_.step_device_ns.size(); ++i)
    samples_.step_ns.push_back(samples_.step_device_ns[i]);
  samples_.metrics = metrics_;
  Samples taken = std::exchange(samples_, {});
  samples_.phases.resize(phase_count_);
  discard();
  return taken;
}

}  // namespace assay::host::measure
