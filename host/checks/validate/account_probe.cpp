// The account that a workload keeps of its steps, and whether steps do the same in every stage.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <vector>

#include "validate/probe_parts.hpp"
#include "validate/probes.hpp"
#include "worker/stage_trial.hpp"
#include "worker/step_account.hpp"

namespace assay::host::validate {
namespace {

constexpr int warmup_steps = 2;

// The seconds of so many steps; nothing where one fails.
std::optional<std::vector<double>> timed_steps(Life& life, assay_stage stage, int count) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (!life.step(stage).is_ok()) return std::nullopt;
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return seconds;
}

// Finds an object that stops doing its work once it was measured, by a new one beside it.
void try_anew(Stage& stage, const Asker& asker) {
  constexpr int trial_steps = 8;
  const auto steps_of_new_object = [&](assay_stage of) -> std::optional<std::vector<double>> {
    stage.begin_anew();
    stage.services().ignore_metrics(true);
    Life life(stage);
    if (!begins(life, 1)) return std::nullopt;
    return timed_steps(life, of, trial_steps);
  };
  std::string mistake;
  for (int round = 0; round < worker::stage_trial_rounds && (round == 0 || !mistake.empty()); ++round) {
    const auto measured_s = steps_of_new_object(ASSAY_STAGE_MEASURE), anew_s = steps_of_new_object(ASSAY_STAGE_WARMUP);
    if (!measured_s || !anew_s) return;
    mistake = worker::mistake_in(*measured_s, *anew_s);
  }
  if (!mistake.empty()) asker.find(Check::run_stages, mistake);
}

// One object whose steps are accounted for, from set-up on.
class AccountedLife {
 public:
  AccountedLife(Stage& stage, const Asker& asker) : stage_(stage), asker_(asker), life_(stage) {}

  void live() {
    if (!life_.create().is_ok() || !life_.is_there() || !life_.setup().is_ok()) return;
    table_ = worker::account_of(stage_.workload(), life_.object());
    asker_.ask(Check::account_kept);
    if (!table_) asker_.find(Check::account_kept, "get_extension gives NULL for \"" ASSAY_EXT_ACCOUNT "\"");
    take_steps();
    try_stages();
  }

  bool is_accounted_for() const { return table_ != nullptr; }

 private:
  assay_launch launch() { return stage_.host().launch(ASSAY_STAGE_VERIFY, 0, nullptr); }

  bool is_ok(Check check, const char* function, assay_status status) {
    const Outcome outcome = stage_.outcome(status);
    if (!outcome.is_ok()) asker_.find(check, fmt::format("{}: {}", function, outcome.in_words()));
    return outcome.is_ok();
  }

  bool steps_in(assay_stage stage, int count) {
    for (int i = 0; i < count; ++i)
      if (!life_.step(stage).is_ok()) return false;
    return true;
  }

  bool read(worker::StepAccount& account, int expected_steps, const char* when) {
    asker_.ask(Check::account_counts);
    asker_.at(when);
    const assay_launch launch_of_read = launch();
    if (!is_ok(Check::account_counts, "read", worker::read_account(*table_, life_.object(), launch_of_read, account)))
      return false;
    if (account.steps == static_cast<std::uint64_t>(expected_steps)) return true;
    asker_.find(Check::account_counts, fmt::format("{} it has {} steps of {}", when, account.steps, expected_steps));
    return false;
  }

  void take_steps() {
    if (!steps_in(ASSAY_STAGE_WARMUP, warmup_steps)) return;
    if (table_ && ASSAY_HAS(table_, assay_account, open) && table_->open) {
      const assay_launch launch_of_open = launch();
      asker_.ask(Check::account_counts);
      if (!is_ok(Check::account_counts, "open", table_->open(life_.object(), &launch_of_open))) return;
    }
    if (!steps_in(ASSAY_STAGE_MEASURE, measured_steps)) return;
    constexpr int steps = warmup_steps + measured_steps;
    worker::StepAccount timed;
    if (!table_) {
      for (const Check check : {Check::account_counts, Check::account_repeats})
        asker_.leave_out(check, "the workload keeps no account");
    } else if (read(timed, steps, "after warm-up and measured steps") && life_.finish().is_ok()) {
      repeat(timed, steps);
    }
  }

  void repeat(const worker::StepAccount& timed, int steps) {
    if (!ASSAY_HAS(table_, assay_account, restart) || !table_->restart)
      return asker_.leave_out(Check::account_repeats, "the workload cannot restart");
    asker_.ask(Check::account_repeats);
    bool is_well = true;
    const worker::RepeatedSteps repeated = worker::compare_repeated(
        timed, {.steps = static_cast<std::uint64_t>(steps), .before_window = warmup_steps},
        [&](std::uint64_t count) {
          worker::StepAccount account;
          const assay_launch launch_of_restart = launch();
          is_well = is_well &&
                    is_ok(Check::account_repeats, "restart", table_->restart(life_.object(), &launch_of_restart)) &&
                    steps_in(ASSAY_STAGE_WARMUP, static_cast<int>(count)) &&
                    read(account, static_cast<int>(count), "after a restart and as many steps");
          return account;
        },
        [](bool mine) { return mine; });
    if (is_well && !repeated.mistake.empty()) asker_.find(Check::account_repeats, repeated.mistake);
  }

  void try_stages() {
    asker_.ask(Check::run_stages);
    const worker::StageTrial trial = worker::stage_trial([&](bool measured) {
      return timed_steps(life_, measured ? ASSAY_STAGE_MEASURE : ASSAY_STAGE_WARMUP, 1).value_or(std::vector{0.0})[0];
    });
    const std::string mistake = worker::mistake_in(trial);
    if (!mistake.empty()) asker_.find(Check::run_stages, mistake);
  }

  Stage& stage_;
  const Asker& asker_;
  Life life_;
  const assay_account* table_ = nullptr;
};

}  // namespace

void account_probe(const Subject& subject, const Asker& asker) {
  Stage stage(subject);
  stage.init();
  stage.services().ignore_metrics(true);
  bool is_accounted_for = false;
  {
    AccountedLife life(stage, asker);
    life.live();
    is_accounted_for = life.is_accounted_for();
  }
  if (!is_accounted_for) try_anew(stage, asker);
}

}  // namespace assay::host::validate
