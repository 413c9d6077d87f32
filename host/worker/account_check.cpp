#include "worker/account_check.hpp"

#include <fmt/format.h>

#include "measure/statistics.hpp"

namespace assay::host::worker {

StepAccount AccountCheck::account() const {
  StepAccount account;
  const assay_launch launch_of_read = launch();
  case_.check("account", read_account(*table_, case_.object, launch_of_read, account));
  return account;
}

bool AccountCheck::any_rank(bool mine) const {
  if (case_.ranks.is_alone()) return mine;
  const double is_so = mine ? 1 : 0;
  return case_.ranks.slowest(std::span(&is_so, 1)).front() > 0;
}

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
  if (!table_) return "";
  const std::string counted = fmt::format("{} steps counted by what they have done, ", timed_->steps);
  if (!ASSAY_HAS(table_, assay_account, restart) || !table_->restart || timed_->marks_per_step == 0)
    return counted + "none of them repeated; ";
  double step_s = measure::summarize(measured.samples.step_ns).mean * 1e-9;
  if (!case_.ranks.is_alone()) step_s = case_.ranks.slowest(std::span(&step_s, 1)).front();
  case_.services.ignore_metrics(true);
  const auto repeat_steps = [&](std::uint64_t steps) {
    const assay_launch launch_of_restart = launch();
    case_.check("restart", table_->restart(case_.object, &launch_of_restart));
    case_.ranks.meet("restart");
    for (std::uint64_t step = 0; step < steps; ++step) {
      case_.run_unmeasured(step);
      case_.wait();
      case_.observer.step(static_cast<std::int64_t>(step + 1));
      case_.ranks.check_aborted();
    }
    return account();
  };
  const RepeatedSteps repeated =
      compare_repeated(*timed_, steps_to_repeat(measured, step_s), measured.iterations_before_window, repeat_steps,
                       [&](bool mine) { return any_rank(mine); });
  case_.services.ignore_metrics(false);
  if (!repeated.mistake.empty()) case_.wrong(repeated.mistake);
  return counted + repeated.text + "; ";
}

}  // namespace assay::host::worker
