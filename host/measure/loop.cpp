#include "measure/loop.hpp"

#include "measure/instruments.hpp"

#include <algorithm>
#include <optional>

namespace assay::host::measure {
namespace {

// Samples that are not recorded, after a look at the samples has held the steps up.
constexpr std::int64_t samples_after_a_look = 2;

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
    recorder_.prepare(std::max<std::int64_t>(1, std::max(plan_.warmup, plan_.most_steps())), plan_.sync);
    warm_up();
    recorder_.discard();
    if (plan_.sync || result_.settling_steps == 0) timeline_.synchronize();
    choose_inner();
    hooks_.begin_window();
    take_samples();
    result_.samples = recorder_.take();
    result_.iterations = iteration_;
    return std::move(result_);
  }

 private:
  void warm_up() {
    bool is_prepared = false;
    std::optional<double> last_ns;
    for (std::int64_t done = 0; done < plan_.warmup; ++done) {
      const std::int64_t left = plan_.warmup - done;
      if (!is_prepared && last_ns && left <= most_settling_steps && are_a_moment(left, *last_ns)) {
        prepare_window(left);
        is_prepared = true;
      }
      last_ns = warm_up_step(is_prepared);
      hooks_.after_step(true, done + 1, plan_.warmup);
    }
    if (!is_prepared) prepare_window(0);
  }

  bool are_a_moment(std::int64_t steps, double step_ns) const {
    return static_cast<double>(steps) * slowest(step_ns) * 1e-9 <= most_settling_s;
  }

  double slowest(double ns) const { return hooks_.slowest ? hooks_.slowest(std::span(&ns, 1)).front() : ns; }

  void prepare_window(std::int64_t settling_steps) {
    timeline_.synchronize();
    result_.instrument_ns = empty_sample_ns(timeline_, recorder_, plan_.sync);
    hooks_.prepare_window();
    result_.settling_steps = settling_steps;
  }

  // In the measured stage, as all that follows the warm-up: what a workload counts there it divides by these steps,
  // too.
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
    for (std::int64_t i = 0; i < result_.inner; ++i) hooks_.run_step(iteration_++, false);
    timeline_.synchronize();
    return static_cast<double>(timeline_.host_now_ns() - begin_ns);
  }

  // Where measured steps follow each other unread, so do those before them: the device must not have fallen idle.
  double warm_up_step(bool is_settling) {
    flush_caches();
    if (is_settling && !plan_.sync) {
      hooks_.run_step(iteration_++, true);
      return 0;
    }
    const double ns = synchronized_sample(true, 1);
    recorder_.flush();
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

  // Steps of the measured stage, which the workload counts as such, so that its means over steps stay what they are.
  void settle_again() {
    if (result_.settling_steps == 0) return;
    for (std::int64_t sample = 0; sample < samples_after_a_look; ++sample) {
      flush_caches();
      for (std::int64_t i = 0; i < result_.inner; ++i) hooks_.run_step(iteration_++, false);
      if (plan_.sync) timeline_.synchronize();
    }
  }

  Timeline& timeline_;
  Recorder& recorder_;
  const MeasurePlan& plan_;
  const LoopHooks& hooks_;
  std::uint64_t iteration_ = 0;
  LoopResult result_;
};

}  // namespace

LoopResult measure(Timeline& timeline, Recorder& recorder, const MeasurePlan& plan, const LoopHooks& hooks) {
  return Loop(timeline, recorder, plan, hooks).run();
}

}  // namespace assay::host::measure
