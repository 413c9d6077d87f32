#include "run/experiment_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "common/exit_code.hpp"
#include "common/sha256.hpp"
#include "launch/signals.hpp"
#include "record/json.hpp"
#include "results/reader.hpp"
#include "results/store.hpp"
#include "run/build_note.hpp"
#include "run/found_device.hpp"
#include "run/nsys_note.hpp"
#include "run/plan_basis.hpp"
#include "run/recorded_case.hpp"
#include "run/resumption.hpp"
#include "run/run_records.hpp"
#include "telemetry/environment.hpp"

namespace assay::host::run {
namespace {

class ExperimentRun {
 public:
  ExperimentRun(const experiment::Experiment& experiment, const RunTarget& target, const RunOptions& options,
                RunListener& listener)
      : experiment_(experiment), target_(target), options_(options), listener_(listener) {}

  int run() {
    try {
      gather_crew();
    } catch (const wireup::WireupError&) {
      if (interrupts_.count()->load() == 0) throw;
      listener_.message("interrupted while the ranks of the launch were waiting for one another");
      return exit_interrupted;
    }
    open_folder();
    RunPlan plan;
    try {
      plan = planned();
    } catch (const ReadingStopped& e) {
      listener_.message(std::string(e.what()) + " (its hash stands in the records); no case has run");
      crew_->dismiss(exit_interrupted);
      return exit_interrupted;
    }
    const std::vector<const CasePlan*> to_run = plan.to_run();
    listener_.run_started(experiment_, folder_->path().string(), earlier_.has_value(),
                          plan.cases.size() - to_run.size());
    listener_.estimated(estimate_by_earlier_runs(experiment_, target_.schema, to_run));
    if (const auto note = nsys_note(plan, options_.in_process, folder_->path(), target_.plugin_file))
      listener_.message(*note);
    std::set<std::string> notes_on_code;
    for (const CasePlan* planned : to_run)
      if (planned->device.is_usable()) notes_on_code.insert(note_on_builds(target_, planned->device.device));
    for (const std::string& note : notes_on_code)
      if (!note.empty()) listener_.message("note: " + note);
    const bool interrupted = run_cases(to_run);
    const experiment::Experiment planned_experiment = as_planned(experiment_, plan);
    const results::Views views = results::write_views(folder_->path(), planned_experiment, options_.view_file);
    std::vector<std::string> allow = plan.settings.allow;
    // A launcher takes an exit code for a crash of its program. A value of a sweep that this launch is too small for,
    // or that the workload does not support, is none.
    if (options_.launched) allow.emplace_back(record::name_of(record::Status::unsupported));
    const bool is_good = views.named_file_error.empty() && are_ok_or_allowed(views.records, planned_experiment, allow);
    const int code = interrupted ? exit_interrupted : is_good ? exit_ok : exit_failed;
    if (const std::string refused = crew_->strangers_text(); !refused.empty()) listener_.message("note: " + refused);
    listener_.run_finished(planned_experiment, views, folder_->path().string(), interrupted, code);
    crew_->dismiss(code);
    return code;
  }

 private:
  void gather_crew() {
    crew_ = options_.launched ? std::make_unique<Crew>(*options_.launched, experiment_.output.dir,
                                                       run_wide_settings(experiment_).wireup_timeout, interrupts_)
                              : std::make_unique<Crew>();
  }

  void open_folder() {
    if (options_.resume) earlier_ = find_earlier_run(experiment_, suffix_of_part(options_.part));
    if (options_.resume && !earlier_)
      listener_.message(
          fmt::format("--resume: there is no earlier run of '{}' below {} with a record of a case; this is "
                      "a new run",
                      experiment_.name, experiment_.output.dir.string()));
    if (earlier_)
      if (const std::string note = note_on_passed_over(*earlier_); !note.empty()) listener_.message("note: " + note);
    if (earlier_ && !earlier_->differences.empty()) {
      if (!options_.start_new) throw ResumeRefused(refusal_text(*earlier_));
      listener_.message(fmt::format("a new run, since {} is of another experiment: {}", earlier_->folder.string(),
                                    fmt::join(earlier_->differences, "; ")));
      earlier_.reset();
    }
    if (earlier_) {
      folder_ = results::RunFolder::reopen(earlier_->folder);
      folder_->begin_invocation(record::json_text(telemetry::capture_environment(), 2));
      earlier_->records = results::read_cases(folder_->cases_path()).records;  // under the lock
      folder_->replace_experiment(experiment_.resolved_toml);
    } else {
      folder_ = results::RunFolder::create(experiment_.output.dir, experiment_.name, experiment_.resolved_toml,
                                           record::json_text(telemetry::capture_environment(), 2),
                                           std::chrono::system_clock::now(), suffix_of_part(options_.part));
    }
    tell_notes();
    files_.emplace(target_, folder_->path());
  }

  // Those of the run folder that were not reported yet.
  void tell_notes() {
    for (; notes_told_ < folder_->notes().size(); ++notes_told_)
      listener_.message("note: " + folder_->notes()[notes_told_]);
  }

  RunPlan planned() {
    PlanBasis basis = plan_basis(target_, *files_, options_.launched, options_.in_process, *interrupts_.count());
    const std::vector<std::string> allow = run_wide_settings(experiment_).allow;
    if (earlier_) {
      basis.finished = finished_cases(earlier_->records, allow, options_.any_machine, experiment_.output.verify);
      basis.cases_of_index = cases_of_index(earlier_->records);
    }
    basis.ask_device = [this](const std::string& wanted) {
      // In a separate process even if the cases run in this one: opening the CPU's device starts OpenMP's runtime,
      // which would be too early for the threads of the first case.
      worker::FoundDevice found =
          ask_for_device(wanted, files_->take_devices(wanted), folder_->logs_path() / "devices.log", interrupts_);
      if (!found.note.empty()) listener_.message("note: " + found.note);
      return found;
    };
    RunPlan plan = make_plan(experiment_, basis);
    if (earlier_)
      set_aside_outdated(plan,
                         outdated_cases(plan, earlier_->records,
                                        {allow, options_.any_machine, basis.files_of, experiment_.output.verify}));
    verified_.emplace(experiment_.output.verify);
    if (earlier_) take_verified(plan);
    return plan;
  }

  // What the run has verified in this environment before counts for the cases that are left.
  void take_verified(const RunPlan& plan) {
    std::map<std::string, const record::CaseRecord*> last;
    for (const record::CaseRecord& record : earlier_->records)
      if (record.environment == folder_->environment_id())
        last[finished_key(record.identity.hash, record.identity.axes, record.identity.repeat)] = &record;
    for (const CasePlan& planned : plan.cases)
      if (const auto found = last.find(finished_key(planned.hash, planned.values.axes, planned.values.repeat));
          planned.is_finished && found != last.end())
        verified_->add(planned, *found->second);
  }

  // Before anything runs: figures of other code must not stand among those of this run, however it ends.
  void set_aside_outdated(const RunPlan& plan, const std::vector<OutdatedCase>& cases) {
    for (const OutdatedCase& each : cases) folder_->append(each.record);
    if (!cases.empty()) results::write_views(folder_->path(), as_planned(experiment_, plan));
    for (const std::string& note : outdated_notes(cases)) listener_.message("note: " + note);
    std::vector<std::string> ignored;  // read again with the views, which report them
    for (const std::string& note : notes_on_kept_cases(
             plan, earlier_->records, results::read_environments(folder_->path(), ignored), folder_->environment_id()))
      listener_.message("note: " + note);
  }

  // Returns whether the run was interrupted.
  bool run_cases(const std::vector<const CasePlan*>& to_run) {
    const CaseContext context{target_,
                              *files_,
                              interrupts_,
                              *crew_,
                              folder_->path(),
                              [this](const char* stage, std::int64_t step, std::int64_t total, const std::string& phase,
                                     const std::string& part) { listener_.progress(stage, step, total, phase, part); },
                              *verified_};
    for (std::size_t i = 0; i < to_run.size(); ++i) {
      const CasePlan& planned = *to_run[i];
      if (interrupts_.count()->load() > 0) return true;
      listener_.case_started(planned.values, i, to_run.size());
      RecordedCase ran = run_and_record(planned, context);
      if (ran.record) {
        ran.record->environment = folder_->environment_id();
        folder_->append(*ran.record);
        tell_notes();
        listener_.case_finished(*ran.record);
      }
      if (ran.interrupted) return true;
    }
    return false;
  }

  const experiment::Experiment& experiment_;
  const RunTarget& target_;
  const RunOptions& options_;
  RunListener& listener_;
  launch::InterruptHandler interrupts_;
  std::unique_ptr<Crew> crew_;
  std::optional<results::RunFolder> folder_;
  std::size_t notes_told_ = 0;         // of the run folder's
  std::optional<EarlierRun> earlier_;  // which is resumed
  std::optional<TakenFiles> files_;
  std::optional<VerifiedCases> verified_;
};

}  // namespace

std::string suffix_of_part(const std::optional<SweepPart>& part) {
  return part ? fmt::format("-part-{}-of-{}", part->number, part->count) : "";
}

int run_experiment(const experiment::Experiment& experiment, const RunTarget& target, const RunOptions& options,
                   RunListener& listener) {
  return ExperimentRun(experiment, target, options, listener).run();
}

}  // namespace assay::host::run
