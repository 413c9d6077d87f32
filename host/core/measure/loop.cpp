#include "measure/loop.hpp"

#include "measure/instruments.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::host::measure {
namespace {

// Samples that are not recorded, after a look at the samples has held the steps up.
constexpr std::int64_t samples_after_a_look = 2;
// The share of the step before: a step that takes less is getting shorter, and not by chance.
constexpr double falls_to = 0.9;

// The verdict over the step times of all ranks.
class SharedVerdict {
 public:
  SharedVerdict(const MeasurePlan& plan, const LoopHooks& hooks) : plan_(plan), hooks_(hooks) {
    if (needs_others()) agreed_ns_.reserve(static_cast<std::size_t>(plan.most_steps()));
  }

  bool needs_others() const { return hooks_.slowest && !plan_.has_count(); }

  // `step_ns`: of all steps measured so far on this rank.
  Verdict judge(std::span<const double> step_ns, std::int64_t inner) {
    if (!needs_others()) return measure::judge(plan_, step_ns, inner);
    const std::vector<double> slowest_ns = hooks_.slowest(step_ns.subspan(agreed_ns_.size()));
    agreed_ns_.insert(agreed_ns_.end(), slowest_ns.begin(), slowest_ns.end());
    return hooks_.agree(measure::judge(plan_, agreed_ns_, inner));
  }

 private:
  const MeasurePlan& plan_;
  const LoopHooks& hooks_;
  std::vector<double> agreed_ns_;
};

class Loop {
 public:
  Loop(Timeline& timeline, Recorder& recorder, const MeasurePlan& plan, const LoopHooks& hooks)
      : timeline_(timeline), recorder_(recorder), plan_(plan), hooks_(hooks) {}

  LoopResult run() {
    recorder_.prepare(std::max(plan_.warmup + most_settling_steps, plan_.most_steps()), plan_.sync);
    settling_ns_.reserve(static_cast<std::size_t>(most_settling_steps));
    warm_up();
    recorder_.discard();
    if (plan_.sync || result_.settling_steps == 0) timeline_.synchronize();
    choose_inner();
    result_.iterations_before_window = iteration_;
    hooks_.begin_window();
    if (plan_.sync) rehearse();
    take_samples();
    result_.samples = recorder_.take();
    result_.iterations = iteration_;
    return std::move(result_);
  }

 private:
  // The first steps show how long one takes, and so how many come after the host's own work.
  void warm_up() {
    std::int64_t left = plan_.warmup, settling = 0;
    while (left > 0 && settling == 0) {
      const double step_ns = warm_up_step(false);
      if (--left <= most_settling_steps) settling = settling_steps(left, slowest(step_ns));
    }
    if (settling > 0 && hooks_.choose_events) hooks_.choose_events(shortest_on_device_ns());
    prepare_window();
    while (result_.settling_steps < settling || are_times_falling()) settle();
  }

  // 0 where more of the warm-up is to come first, or where one step is more than a moment.
  std::int64_t settling_steps(std::int64_t left, double step_ns) const {
    const double fit = most_settling_s * 1e9 / std::max(step_ns, 1.0);
    const auto most = static_cast<std::int64_t>(std::min(fit, static_cast<double>(most_settling_steps)));
    if (left > most) return 0;
    const bool has_enough = plan_.warmup > fewest_settling_steps;
    return has_enough ? left : std::max(left, std::min(fewest_settling_steps, most));
  }

  // Returns the shortest of the warm-up's steps so far. What happens once in the first step shows less on the device's
  // timeline than on the host's clock.
  double shortest_on_device_ns() const {
    const std::vector<double>& ns = recorder_.step_device_ns();
    return *std::min_element(ns.begin(), ns.end());
  }

  void settle() {
    settling_ns_.push_back(warm_up_step(true));
    ++result_.settling_steps;
  }

  // Only where the number of steps depends on their times anyway, and where looking at these does not hold up the next.
  bool are_times_falling() const {
    const std::size_t n = settling_ns_.size();
    if (plan_.has_count() || !plan_.sync || hooks_.slowest || n < 3) return false;
    if (result_.settling_steps >= most_settling_steps ||
        std::accumulate(settling_ns_.begin(), settling_ns_.end(), 0.0) * 1e-9 >= most_settling_s)
      return false;
    return settling_ns_[n - 1] < falls_to * settling_ns_[n - 2] && settling_ns_[n - 2] < falls_to * settling_ns_[n - 3];
  }

  double slowest(double ns) const { return hooks_.slowest ? hooks_.slowest(std::span(&ns, 1)).front() : ns; }

  void prepare_window() {
    timeline_.synchronize();
    result_.instrument_ns = empty_sample_ns(timeline_, recorder_, plan_.sync);
    hooks_.prepare_window();
  }

  // Nothing, as a sample takes it: on an H200 the first step after an idle moment took 2 us longer than the others, and
  // that little makes it the slowest of a hundred more often than chance does.
  void rehearse() {
    for (int i = 0; i < rehearsals; ++i) {
      recorder_.mark_nothing();
      timeline_.synchronize();
    }
  }

  void choose_inner() {
    result_.inner = plan_.inner;
    if (plan_.inner != inner_auto) return;
    const double wanted_ns = worthwhile_sample_ns(slowest(result_.instrument_ns));
    result_.inner = 1;
    for (double ns = undisturbed_sample(); ns < wanted_ns && result_.inner < most_inner_steps;
         ns = undisturbed_sample())
      result_.inner = larger_inner(result_.inner, ns, wanted_ns);
    unrecorded_sample();  // after the last words with the other ranks
  }

  // A neighbour makes a sample longer, and would make too few steps seem enough.
  double undisturbed_sample() {
    double shortest_ns = unrecorded_sample();
    for (int again = 0; again < 2; ++again) shortest_ns = std::min(shortest_ns, unrecorded_sample());
    return slowest(shortest_ns);
  }

  double unrecorded_sample() {
    const std::int64_t begin_ns = timeline_.host_now_ns();
    for (std::int64_t i = 0; i < result_.inner; ++i) hooks_.run_step(iteration_++, true);
    timeline_.synchronize();
    return static_cast<double>(timeline_.host_now_ns() - begin_ns);
  }

  // Returns its time. Where measured steps follow each other unread, so do those before them: the device must not have
  // fallen idle, and no time is known.
  double warm_up_step(bool is_settling) {
    flush_caches();
    double ns = 0;
    if (is_settling && !plan_.sync) {
      hooks_.run_step(iteration_++, true);
    } else {
      ns = synchronized_sample(true, 1);
      if (iteration_ > 1) result_.fastest_warm_up_ns = std::fmin(result_.fastest_warm_up_ns, ns);
      recorder_.flush();
    }
    hooks_.after_step(true, static_cast<std::int64_t>(iteration_), plan_.warmup);
    return ns;
  }

  void flush_caches() {
    if (!hooks_.flush_caches) return;
    hooks_.flush_caches();
    if (plan_.sync) timeline_.synchronize();
  }

  // The user's view of steps, from the call to the last result: the time of one of them.
  double synchronized_sample(bool warmup, std::int64_t steps) {
    const std::int64_t begin_ns = timeline_.host_now_ns();
    enqueue_sample(warmup, steps);
    timeline_.synchronize();
    const double elapsed_ns = static_cast<double>(timeline_.host_now_ns() - begin_ns) / static_cast<double>(steps);
    recorder_.set_step_ns(elapsed_ns);
    return elapsed_ns;
  }

  void enqueue_sample(bool warmup, std::int64_t steps) {
    recorder_.begin_step(steps);
    for (std::int64_t i = 0; i < steps; ++i) hooks_.run_step(iteration_++, warmup);
    recorder_.end_step();
  }

  void take_samples() {
    std::vector<double> step_ns;
    step_ns.reserve(static_cast<std::size_t>(plan_.most_steps()));
    const std::int64_t total = plan_.has_count() ? *plan_.steps : 0;
    const std::int64_t window_begin_ns = timeline_.host_now_ns();
    SharedVerdict verdict(plan_, hooks_);
    const bool looks_disturb = !plan_.sync || verdict.needs_others();
    for (std::int64_t done = 0;;) {
      for (const std::int64_t look = next_look(plan_, done); done < look;) {
        flush_caches();
        if (plan_.sync) {
          step_ns.push_back(synchronized_sample(false, result_.inner));
          recorder_.flush();
        } else {
          // Samples follow each other without a look at the device; their times are known after the last of them.
          enqueue_sample(false, result_.inner);
        }
        hooks_.after_step(false, ++done, total);
      }
      if (!plan_.sync) {
        timeline_.synchronize();
        recorder_.flush();
        step_ns = recorder_.step_device_ns();
      }
      result_.verdict = verdict.judge(step_ns, result_.inner);
      if (result_.verdict != Verdict::go_on) break;
      if (looks_disturb) settle_again();
    }
    result_.window_s = static_cast<double>(timeline_.host_now_ns() - window_begin_ns) * 1e-9;
  }

  // Steps of the measured stage: a workload that met the warm-up's now would forget what it has counted. So its own
  // means over steps (of bandwidths, say) hold these few, too.
  void settle_again() {
    if (result_.settling_steps == 0) return;
    for (std::int64_t sample = 0; sample < samples_after_a_look; ++sample) {
      flush_caches();
      for (std::int64_t i = 0; i < result_.inner; ++i) hooks_.run_step(iteration_++, false);
      if (plan_.sync) timeline_.synchronize();
      result_.unrecorded_steps += result_.inner;
    }
  }

  Timeline& timeline_;
  Recorder& recorder_;
  const MeasurePlan& plan_;
  const LoopHooks& hooks_;
  std::uint64_t iteration_ = 0;
  std::vector<double> settling_ns_;  // 0 each where nobody waits for them
  LoopResult result_;
};

}  // namespace

LoopResult measure(Timeline& timeline, Recorder& recorder, const MeasurePlan& plan, const LoopHooks& hooks) {
  return Loop(timeline, recorder, plan, hooks).run();
}

}  // namespace assay::host::measure
