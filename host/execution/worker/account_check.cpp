#include "worker/account_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "measure/statistics.hpp"
#include "worker/stage_trial.hpp"

namespace assay::host::worker {
namespace {

constexpr double longest_tried_step_s = 1;

// Returns the processor time of all threads of this process.
double processor_s() {
  timespec time{};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

StepAccount AccountCheck::account() const {
  StepAccount account;
  const assay_launch launch_of_read = launch();
  case_.check("account", read_account(*table_, case_.object, launch_of_read, account));
  return account;
}

double AccountCheck::slowest(double mine) const {
  return case_.ranks.is_alone() ? mine : case_.ranks.slowest(std::span(&mine, 1)).front();
}

bool AccountCheck::any_rank(bool mine) const { return slowest(mine ? 1 : 0) > 0; }

void AccountCheck::open() {
  if (!table_ || !ASSAY_HAS(table_, assay_account, open) || !table_->open) return;
  const assay_launch launch_of_open = launch();
  case_.check("account", table_->open(case_.object, &launch_of_open));
}

void AccountCheck::read(const measure::LoopResult& measured) {
  if (!table_) return;
  timed_ = account();
  if (const std::string mistake = mistake_in_count(*timed_, measured); !mistake.empty()) case_.wrong(mistake);
}

std::string AccountCheck::repeat(const measure::LoopResult& measured) {
  if (!table_) {
    try_stages(measured);
    return "";
  }
  const std::string counted = fmt::format("{} steps counted by what they have done, ", timed_->steps);
  if (!ASSAY_HAS(table_, assay_account, restart) || !table_->restart || timed_->marks_per_step == 0)
    return counted + "none of them repeated; ";
  const double step_s = slowest(measure::summarize(measured.samples.step_ns).mean * 1e-9);
  case_.services.ignore_metrics(true);
  const auto repeat_steps = [&](std::uint64_t steps) {
    const assay_launch launch_of_restart = launch();
    case_.check("restart", table_->restart(case_.object, &launch_of_restart));
    case_.ranks.meet("restart");
    const auto begin = std::chrono::steady_clock::now();
    const double processor_begin_s = processor_s();
    for (std::uint64_t step = 0; step < steps; ++step) {
      case_.run(step, false);
      case_.wait();
      case_.observer.step(static_cast<std::int64_t>(step + 1));
      case_.ranks.check_aborted();
    }
    StepAccount repeated = account();
    repeated.took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // Time spent waiting for a busy processor does not count.
    if (case_.computes_on_processors) repeated.took_s = std::min(repeated.took_s, processor_s() - processor_begin_s);
    return repeated;
  };
  const RepeatedSteps repeated =
      compare_repeated(*timed_, {steps_to_repeat(measured, step_s), measured.iterations_before_window, step_s},
                       repeat_steps, [&](bool mine) { return any_rank(mine); });
  case_.services.ignore_metrics(false);
  if (!repeated.mistake.empty()) case_.wrong(repeated.mistake);
  is_in_part_ = repeated.repeated_steps <= measured.iterations_before_window;
  return counted + repeated.text + "; ";
}

double AccountCheck::seconds_of_step(std::uint64_t iteration, bool measured) const {
  const auto begin = std::chrono::steady_clock::now();
  case_.run(iteration, measured);
  case_.wait();
  const double step_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  case_.ranks.check_aborted();
  return step_s;
}

std::string AccountCheck::why_in_part() const {
  if (!table_)
    return "whether the measured steps did their work is not known: the workload keeps no account of them "
           "(assay.account/1)";
  return is_in_part_
             ? "so many steps came before the first measured one that no measured step is among those that were "
               "repeated"
             : "";
}

void AccountCheck::try_stages(const measure::LoopResult& measured) const {
  // With other ranks a step's time is that of whoever comes last.
  if (!case_.takes_steps_after_finish || !case_.ranks.is_alone()) return;
  if (slowest(measure::summarize(measured.samples.step_ns).mean * 1e-9) > longest_tried_step_s) return;
  case_.services.ignore_metrics(true);
  std::uint64_t iteration = measured.iterations;
  const StageTrial trial = stage_trial([&](bool is_measured) { return seconds_of_step(iteration++, is_measured); });
  case_.services.ignore_metrics(false);
  if (const std::string mistake = mistake_in(trial); !mistake.empty()) case_.wrong(mistake);
}

void AccountCheck::try_anew(const measure::LoopResult& measured) const {
  constexpr std::uint64_t steps = 8;
  // A sample of several steps, or of steps that nobody waited for, is no time that a single step could be held against.
  if (table_ || !case_.ranks.is_alone() || !case_.waits_for_each_step || measured.inner != 1) return;
  std::vector<double> measured_s = measured.samples.step_ns;
  for (double& sample : measured_s) sample *= 1e-9;
  if (!is_suspicious(measured_s, measured.fastest_warm_up_ns * 1e-9)) return;
  if (measured.fastest_warm_up_ns * 1e-9 > longest_tried_step_s) return;
  // New objects in turns, since a neighbour may have slowed the warm-up down, and may do so again.
  const auto steps_of_new_object = [&](bool is_measured) {
    std::vector<double> seconds;
    case_.with_new_object([&] {
      (void)seconds_of_step(0, false);
      for (std::uint64_t step = 1; step <= steps; ++step) seconds.push_back(seconds_of_step(step, is_measured));
    });
    return seconds;
  };
  std::string mistake;
  case_.services.ignore_metrics(true);
  try {
    for (int round = 0; round < stage_trial_rounds && (round == 0 || !mistake.empty()); ++round) {
      const std::vector<double> again_s = steps_of_new_object(true);
      mistake = mistake_in(again_s, steps_of_new_object(false));
    }
  } catch (...) {  // where a second object cannot be made, or take steps, no more is known than before
    mistake.clear();
  }
  case_.services.ignore_metrics(false);
  if (!mistake.empty()) case_.wrong(mistake);
}

}  // namespace assay::host::worker
