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
  std::string mistake;  // "" where the repeated steps have left what the timed ones had
  std::string text;     // what was compared
};
// Repeats the first steps, as long as one repetition differs from another up to three times. Nothing is compared where
// no step has marks. `steps_before_window`: which of them were measured, for a mistake's text.
// `any_rank`: whether it is so on any rank, since all repeat together.
RepeatedSteps compare_repeated(const StepAccount& timed, std::uint64_t steps, std::uint64_t steps_before_window,
                               const RepeatSteps& repeat, const std::function<bool(bool)>& any_rank);

}  // namespace assay::host::worker
