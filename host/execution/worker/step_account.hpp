// What a workload's state says of its steps (assay.account/1), held against the steps that the host has called: their
// number, and what the first of them leave when they are taken once more.
#pragma once
#include <assay/abi.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "measure/loop.hpp"

namespace assay::host::worker {

// The account after some steps. A mark is two numbers: value, magnitude.
struct StepAccount {
  std::uint64_t steps = 0, marks_per_step = 0;
  std::vector<double> marks;  // of the first steps
  double tolerance = 0;
  // Of repeated steps: from the first one's call until the account could be read; on a CPU no more than its threads had
  // of the processors.
  double took_s = 0;

  std::uint64_t marked_steps() const { return marks_per_step == 0 ? 0 : marks.size() / 2 / marks_per_step; }
};

// Null where the workload keeps none.
const assay_account* account_of(const assay_workload& workload, assay_workload_self* object);
// What the workload's `read` says; `out` is whole where the status is ASSAY_OK.
assay_status read_account(const assay_account& table, assay_workload_self* object, const assay_launch& launch,
                          StepAccount& out);

// "" where the account has the steps that were run; otherwise what is wrong.
std::string mistake_in_count(const StepAccount& account, const measure::LoopResult& measured);

// How many of the first steps are worth repeating: all, where that takes little; a few measured ones in any case.
std::uint64_t steps_to_repeat(const measure::LoopResult& measured, double step_s);

// What one repetition of the first steps, from the state after setup, has left.
using RepeatSteps = std::function<StepAccount(std::uint64_t steps)>;

struct RepeatedSteps {
  // "" where the repeated steps have left what the timed ones had, and took no more than a few times as long: a step
  // whose work goes on behind the window, on another stream or a thread, has a time of nothing.
  std::string mistake;
  std::string text;                  // what was compared
  std::uint64_t repeated_steps = 0;  // of the first ones, that were compared
};
struct TimedSteps {
  std::uint64_t steps = 0;          // the first ones, which are to be repeated
  std::uint64_t before_window = 0;  // those of them that were not measured
  double step_s = 0;                // mean of the measured ones
};
// Repeats the first steps, up to five times while a repetition differs from them. Nothing is compared where no step
// has marks. `any_rank`: whether it is so on any rank, since all repeat together.
RepeatedSteps compare_repeated(const StepAccount& account, const TimedSteps& timed, const RepeatSteps& repeat,
                               const std::function<bool(bool)>& any_rank);

}  // namespace assay::host::worker
