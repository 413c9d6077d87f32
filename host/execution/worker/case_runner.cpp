#include "worker/case_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "measure/statistics.hpp"
#include "plugin/device_library.hpp"
#include "record/efficiency.hpp"
#include "record/figures.hpp"
#include "worker/account_check.hpp"
#include "worker/case_profiler.hpp"
#include "worker/chosen_algorithms.hpp"
#include "worker/cold_cache.hpp"
#include "worker/device_memory.hpp"
#include "worker/device_timeline.hpp"
#include "worker/findings.hpp"
#include "worker/graph_events.hpp"
#include "worker/host_services.hpp"
#include "worker/host_timeline.hpp"
#include "worker/loaded_libraries.hpp"
#include "worker/measured_steps.hpp"
#include "worker/observed_window.hpp"
#include "worker/peak_probe.hpp"
#include "worker/phase_pass.hpp"
#include "worker/plugin_status.hpp"
#include "worker/rank_kind.hpp"
#include "worker/rank_services.hpp"
#include "worker/silent_pass.hpp"
#include "worker/stage_times.hpp"
#include "worker/verification_result.hpp"
#include "worker/workload_object.hpp"

namespace assay::host::worker {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// One case in progress. Members are destroyed in reverse order: the object before the services, those before the
// device.
class CaseRun {
 public:
  CaseRun(const CaseSpec& spec, CaseObserver& observer, record::CaseResult& result)
      : spec_(spec), observer_(observer), result_(result) {}

  void run() {
    enter(Stage::load);
    window_ = std::make_unique<ObservedWindow>();  // before a library binds this thread to a processor
    ranks_ = std::make_unique<RankServices>(spec_, observer_);
    workload_.emplace(spec_);
    tell_rank_kind(spec_, schema(), workload_->abi_minor(), result_);
    device_ = std::make_unique<plugin::OpenDevice>(
        plugin::DeviceLibrary::open(spec_.device_file), spec_.device_ordinal,
        schema().steps_elsewhere ? plugin::Purpose::observation : plugin::Purpose::work);
    memory_use_.emplace(*device_);
    result_.device = device_of(device_->api(), spec_.device_ordinal, device_->info());
    const experiment::FoundFacts described = experiment::facts_of_device(spec_.device_kind, result_.device->name);
    facts_ = described.facts;
    for (const std::string& note : described.notes) result_.note(note);
    window_->sampler().attach(device_->api(), device_->handle(), power_readings_of(facts_));
    window_->sampler().add_limits(*result_.device);
    services_ = std::make_unique<HostServices>(*device_, observer_, *ranks_, schema());
    workload_->connect(*services_, *device_);
    if (spec_.device_kind == "cpu" && spec_.values.run.memory_limit_bytes)
      services_->memory().set_limit(*spec_.values.run.memory_limit_bytes);
    profiler_ = std::make_unique<CaseProfiler>(spec_, *device_, services_->memory(), result_);
    std::exception_ptr failure;
    try {
      live();
    } catch (...) {
      failure = std::current_exception();
      ranks_->give_up();
    }
    leave_traces();
    if (failure) std::rethrow_exception(failure);
    is_well_ = true;
  }

  // Takes down what there is, and says what is to be noted of that, and how long it took.
  CaseTeardown end() {
    // A rank may verify for long while the others have nothing to verify: taking down a communicator is for all of them
    // together.
    if (is_well_) try {
        ranks_->meet("teardown");
      } catch (const wireup::WireupError&) {  // another rank has failed in its verification, and says so itself
      }
    const auto begin = Clock::now();
    observer_.stage(Stage::destroy, 0);
    if (workload_) workload_->destroy();
    observer_.stage(Stage::deinit, 0);
    if (workload_) workload_->deinit();
    CaseTeardown teardown;
    teardown.destroy_s = seconds_since(begin);
    std::vector<std::string>& notes = teardown.notes;
    if (services_) {
      notes = services_->messages().warnings();
      notes.erase(notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(warnings_noted_));
      if (services_->memory().blocks_left() > 0)
        notes.push_back(
            fmt::format("the workload left {} blocks of device memory behind", services_->memory().blocks_left()));
    }
    observer_.stage(Stage::done, 0);
    if (is_well_) ranks_->leave();  // one that failed is a loss to whoever waits for it
    return teardown;
  }

  Stage stage() const { return stage_; }
  std::int64_t step() const { return step_; }
  const std::string& part() const { return part_; }
  std::string open_phase() const {
    const std::int32_t phase = recorder_ ? recorder_->open_phase() : -1;
    return phase >= 0 ? workload_->schema().phases[static_cast<std::size_t>(phase)] : "";
  }

 private:
  plugin::WorkloadSchema& schema() { return workload_->schema(); }

  void live() {
    create();
    // Before setup, where a workload may capture its step with the phase marks in it.
    timeline_ = schema().steps_elsewhere ? std::unique_ptr<measure::Timeline>(std::make_unique<HostTimeline>())
                                         : std::make_unique<DeviceTimeline>(*device_, observer_);
    recorder_ = std::make_unique<measure::Recorder>(*timeline_, schema().phases.size(), schema().metrics.size());
    make_phase_pass();
    enter(Stage::setup);
    workload_->setup(recorder_.get());
    end_stage();
    ranks_->meet("setup");
    services_->memory().ledger().moment("after_setup");
    account_.emplace(accounted_case());
    measure::LoopResult result = measured();
    account_->read(result);
    services_->memory().ledger().moment("after_measure");
    memory_use_->look(services_->memory().ledger(), window_->own_memory_bytes());
    tell_what_ran();  // before the verification, which loads and chooses for itself
    if (!workload_->takes_steps_after_finish()) trace_kernels(result.iterations);
    if (workload_->table().finish) {
      enter(Stage::finish);
      workload_->finish();
    }
    note_memory();  // a verification may take more than what is verified
    time_phases(result);
    if (workload_->takes_steps_after_finish()) trace_kernels(result.iterations + steps_of_phases_);
    phase_pass_.reset();
    recorder_.reset();  // no later step has phases
    take_silent_steps(result);
    verify(result);
    if (!account_->keeps_account()) services_->begin_part("new_objects");
    account_->try_anew(result);
    end_stage();
    if (work_.flops > 0 || work_.bytes > 0) measure_peak(result);
    if (const std::string mistake = word_mistake(services_->case_metrics(), schema()); !mistake.empty())
      throw CaseFailure{record::Status::failed,
                        fmt::format("plugin {}: {}; report one of 0 to their number less one",
                                    std::filesystem::path(spec_.plugin_file).filename().string(), mistake)};
    // Only now do the times enter the record: a number only if correct.
    record_figures(result);
  }

  void create() {
    enter(Stage::create);
    workload_->init_and_create();
    work_ = workload_->work();
    if (workload_->table().work)
      result_.work =
          record::Work{work_.flops, work_.bytes, work_.items, schema().item_unit, arithmetic_name(work_.arithmetic)};
  }

  measure::LoopResult measured() {
    measure::LoopHooks hooks;
    MeasuredSteps steps(spec_.plan());
    hooks.run_step = [&](std::uint64_t iteration, bool warmup) { run_step(iteration, warmup); };
    hooks.after_step = [&](bool warmup, std::int64_t done, std::int64_t) {
      if (!warmup) steps.end(services_->memory().ledger().end_step());
      step_ = done;
      observer_.step(done);
      ranks_->check_aborted();
    };
    if (!ranks_->is_alone()) {
      hooks.slowest = [&](std::span<const double> step_ns) { return ranks_->slowest(step_ns); };
      hooks.agree = [&](measure::Verdict mine) { return ranks_->agree(mine); };
    }
    hooks.flush_caches = flush_caches();
    hooks.choose_events = [&](double step_ns) { phase_pass_->choose(step_ns); };
    hooks.prepare_window = [&] {
      ranks_->meet("measure");  // what follows begins on all ranks at once
      window_->begin();
      profiler_->start_range();
    };
    hooks.begin_window = [&] {
      services_->memory().ledger().moment("after_warmup");
      enter(Stage::measure, spec_.plan().has_count() ? *spec_.plan().steps : 0);
      profiler_->begin_measure(*recorder_, schema().phases);
      services_->memory().ledger().begin_steps();
      account_->open();
      steps.begin();
    };
    enter(Stage::warmup, spec_.plan().warmup);
    measure::LoopResult result = measure::measure(*timeline_, *recorder_, spec_.plan(), hooks);
    window_->end();
    profiler_->end_measure(*recorder_);
    result_.wall.measure_s = result.window_s;
    step_peaks_mib_ = steps.peaks_mib();
    if (!spec_.values.profile.ncu)  // its times are not reported
      for (std::string& note : notes_on(result, spec_, *recorder_, services_->memory().allocations_while_measuring(),
                                        phase_pass_->is_apart()))
        result_.note(std::move(note));
    profiler_->write_memory_snapshot();
    window_->tell(result_, spec_, *ranks_, result.window_s, steps.bounds_s());
    return result;
  }

  void measure_peak(const measure::LoopResult& measured) {
    const double step_ns = measure::summarize(measured.samples.step_ns).mean;
    const bool is_shared = result_.telemetry && result_.telemetry->foreign_processes.value_or(0) > 0;
    services_->begin_part("peak");
    CheckedPeak checked = StageTimes::timed(result_.wall.peak_s, [&] {
      return checked_peak(workload_->table(), workload_->self(), *services_, static_cast<double>(work_.flops) / step_ns,
                          is_shared);
    });
    if (!checked.mistake.empty()) wrong_result(checked.mistake);
    services_->begin_part("");
    peak_ = std::move(checked.peak);
  }

  // Empty where the caches are left as they are.
  std::function<void()> flush_caches() const {
    if (!spec_.plan().cold_cache) return {};
    return [cold_cache = ColdCache(*device_)] { cold_cache.flush(); };
  }

  void run_step(std::uint64_t iteration, bool warmup) {
    workload_->run_step(warmup ? ASSAY_STAGE_WARMUP : ASSAY_STAGE_MEASURE, iteration, recorder_.get());
    services_->rethrow_mark_failure();
  }

  void make_phase_pass() {
    PhasePass::LargestOfRanks largest;
    if (!ranks_->is_alone()) largest = [this](std::span<const double> mine) { return ranks_->slowest(mine); };
    // A counted case reports no times.
    const bool may_follow = workload_->takes_steps_after_finish() && !spec_.values.profile.ncu;
    phase_pass_ =
        std::make_unique<PhasePass>(*recorder_, graph_events_of(*device_, facts_), std::move(largest), may_follow);
  }

  // After `finish`, as what follows, and by the recorder that knows the captured step.
  void time_phases(const measure::LoopResult& measured) {
    if (phase_pass_->is_apart()) {
      services_->ignore_metrics(true);
      TimedPhases timed =
          phase_pass_->take(*timeline_, spec_.plan(), measured,
                            {.run_step = [&](std::uint64_t step) { run_step(measured.iterations + step, true); },
                             .after_step = [&] { ranks_->check_aborted(); },
                             .begin = [&] { ranks_->meet("phases"); },
                             .flush_caches = flush_caches()});
      services_->ignore_metrics(false);
      told_phases_ = std::move(timed.samples);
      phases_told_by_ = timed.pass;
      steps_of_phases_ = timed.steps_run;
    }
    if (spec_.values.profile.ncu) return;
    if (std::string note = phase_pass_->note(measured, phases_told_by_ ? &*phases_told_by_ : nullptr); !note.empty())
      result_.note(std::move(note));
  }

  // After `finish`, and without an ear for metrics: the workload has reported its figures of the measured steps, and
  // what it counts in these belongs to none of them.
  void trace_kernels(std::uint64_t steps_done) {
    services_->ignore_metrics(true);
    const auto run_next = [&](std::uint64_t step) { run_step(steps_done + step, true); };
    profiler_->count_kernels(*timeline_, *recorder_, run_next);
    phase_pass_->record_events(true);  // which say in what phase a kernel ran
    profiler_->trace_kernels(*timeline_, *recorder_, schema().phases, run_next);
    phase_pass_->record_events(false);
    services_->ignore_metrics(false);
  }

  // After finish, so that no figure of the workload's own knows of them.
  void take_silent_steps(const measure::LoopResult& measured) {
    const assay_silence* silence = ranks_->is_alone() ? nullptr : silence_of(workload_->table(), workload_->self());
    if (!silence) return;
    measure::Recorder recorder(*timeline_, schema().phases.size(), schema().metrics.size());
    services_->ignore_metrics(true);
    workload_->check("silence", silence->set(workload_->self(), 1));
    ranks_->meet("silence");
    silent_ = silent_pass(*timeline_, recorder, spec_.plan(), measured,
                          {.run_step =
                               [&](std::uint64_t step) {
                                 workload_->run_step(ASSAY_STAGE_WARMUP, step, &recorder);
                                 services_->rethrow_mark_failure();
                               },
                           .after_step = [&] { ranks_->check_aborted(); },
                           .flush_caches = flush_caches()});
    workload_->check("silence", silence->set(workload_->self(), 0));
    services_->ignore_metrics(false);
  }

  AccountedCase accounted_case() {
    return {.workload = workload_->table(),
            .object = workload_->self(),
            .services = *services_,
            .ranks = *ranks_,
            .observer = observer_,
            .check = [this](const char* function, assay_status status) { workload_->check(function, status); },
            .wrong = [this](const std::string& mistake) { wrong_result(mistake); },
            .run =
                [this](std::uint64_t iteration, bool measured) {
                  workload_->run_step(measured ? ASSAY_STAGE_MEASURE : ASSAY_STAGE_WARMUP, iteration, nullptr);
                },
            .wait = [this] { workload_->wait_for_device(); },
            .with_new_object =
                [this](const std::function<void()>& what) { workload_->with_new_object(recorder_.get(), what); },
            .waits_for_each_step = spec_.plan().sync,
            .computes_on_processors = spec_.device_kind == "cpu",
            .takes_steps_after_finish = workload_->takes_steps_after_finish() || !workload_->table().finish};
  }

  void wrong_result(const std::string& reason) {
    result_.verify = {record::Verification::wrong_result, reason, mode_of(spec_.verification)};
    throw CaseFailure{record::Status::wrong_result, reason};
  }

  // Whether the workload's own verification may be left out, as [run] verify asks: on all ranks or on none. Without an
  // account nothing would tie the figures to a right result.
  bool account_is_enough() {
    const VerificationAsked& asked = spec_.verification;
    if (!asked.by_account || !account_->keeps_account()) return false;
    if (!asked.first) return true;
    // Of more algorithms than a record holds, those that it leaves out may differ.
    const bool differs = result_.algorithms != asked.first->algorithms || result_.algorithms.size() == most_algorithms;
    if (!account_->any_rank(differs)) return true;
    result_.note(note_of_other_algorithms(asked, result_.algorithms == asked.first->algorithms));
    return false;
  }

  void verify(const measure::LoopResult& measured) {
    if (!workload_->table().verify) {
      result_.verify = {record::Verification::not_checked, "the workload has no verification",
                        mode_of(spec_.verification)};
      return;
    }
    enter(Stage::verify);
    services_->begin_part("repeated_steps");
    const std::string accounted = StageTimes::timed(result_.wall.repeat_s, [&] { return account_->repeat(measured); });
    services_->begin_part("");
    if (account_is_enough()) {
      result_.verify = verified_by_account(spec_.verification, accounted, account_->why_in_part());
      return;
    }
    const record::Verification verdict = workload_->verify();
    const std::string text = services_->messages().take();
    if (verdict == record::Verification::wrong_result) wrong_result(text.empty() ? "verify gave no reason" : text);
    result_.verify = verified_by_workload(spec_.verification, verdict, accounted + text, account_->why_in_part());
  }

  void record_figures(const measure::LoopResult& result) {
    result_.sampling = sampling_of(result, spec_.plan());
    result_.phases =
        phases_of(result.samples, told_phases_ ? *told_phases_ : result.samples, schema(), spec_.plan().confidence());
    result_.phase_pass = phases_told_by_;
    result_.step_metrics = step_metrics_of(result.samples, schema(), spec_.plan().confidence());
    const double step_mean_ms = *result_.phases->front().second.mean_ms;
    result_.rates = record::rate_figures(static_cast<double>(work_.flops), static_cast<double>(work_.bytes),
                                         static_cast<double>(work_.items), step_mean_ms);
    if (peak_) result_.efficiency = record::Efficiency{.measured = peak_};
    record::set_efficiency(result_);
    result_.silent = silent_;
    record::set_communication_tax(result_);
    result_.drift = measure::drift(result.samples.step_ns).value_or(std::numeric_limits<double>::quiet_NaN());
  }

  // The stage is over, and the next one has not begun.
  void end_stage() {
    const bool was_open = stage_times_.is_open();
    stage_times_.end();
    record::Named<double> parts = services_->take_part_times();
    if (was_open && stage_ == Stage::setup) result_.wall.setup_parts_s = std::move(parts);
    if (was_open && stage_ == Stage::verify) result_.wall.verify_parts_s = std::move(parts);
    observer_.part("");
  }

  // What is known however the case ended.
  void leave_traces() {
    part_ = services_->open_part();
    end_stage();
    profiler_->write_memory_snapshot();  // of a case that failed before its end
    result_.metrics = case_metrics_of(services_->case_metrics(), schema());
    for (std::string& note : metric_notes(result_)) result_.note(std::move(note));
    if (!result_.memory) note_memory();
    for (std::string& note : overdrawn_memory(services_->memory().ledger())) result_.note(std::move(note));
    if (result_.libraries.empty()) tell_what_ran();
    std::vector<std::string> warnings = services_->messages().warnings();
    warnings_noted_ = warnings.size();
    for (std::string& warning : warnings) result_.note(std::move(warning));
  }

  void tell_what_ran() {
    const std::array<const void*, 2> recorded_as_files{&workload_->table(),
                                                       reinterpret_cast<const void*>(device_->api().open)};
    result_.libraries = loaded_libraries(recorded_as_files);
    tell_algorithms(*device_, result_);
  }

  void note_memory() {
    result_.memory = memory_of(services_->memory().ledger(), result_.status, step_peaks_mib_);
    memory_use_->tell(*result_.memory, result_.telemetry);
  }

  void enter(Stage stage, std::int64_t total_steps = 0) {
    stage_times_.enter(stage);
    stage_ = stage;
    step_ = 0;
    observer_.stage(stage, total_steps);
  }

  const CaseSpec& spec_;
  experiment::DeviceFacts facts_;  // of the device, where a file describes it
  CaseObserver& observer_;
  record::CaseResult& result_;
  Stage stage_ = Stage::load;
  StageTimes stage_times_{result_.wall};
  std::int64_t step_ = 0;  // of the stage
  std::string part_;       // in which the case has ended
  std::optional<WorkloadObject> workload_;
  std::unique_ptr<RankServices> ranks_;
  std::unique_ptr<plugin::OpenDevice> device_;
  std::optional<DeviceMemoryUse> memory_use_;
  std::unique_ptr<ObservedWindow> window_;
  std::unique_ptr<HostServices> services_;
  std::unique_ptr<CaseProfiler> profiler_;
  std::unique_ptr<measure::Timeline> timeline_;
  std::unique_ptr<measure::Recorder> recorder_;
  std::unique_ptr<PhasePass> phase_pass_;
  std::optional<measure::Samples> told_phases_;  // of a separate pass
  std::optional<record::PhasePass> phases_told_by_;
  std::uint64_t steps_of_phases_ = 0;
  std::optional<AccountCheck> account_;
  std::vector<double> step_peaks_mib_;
  bool is_well_ = false;            // nothing has failed up to the end of the verification
  std::size_t warnings_noted_ = 0;  // of the services' warnings
  assay_work work_{};
  std::optional<record::SilentPass> silent_;
  std::optional<record::Peak> peak_;
};

}  // namespace

CaseTeardown run_case(const CaseSpec& spec, CaseObserver& observer,
                      const std::function<void(const CaseAnswer& answer)>& give) {
  CaseAnswer answer;
  record::CaseResult& result = answer.result;
  result.stage = Stage::done;
  result.notes.emplace();
  const auto begin = Clock::now();
  std::optional<CaseRun> run(std::in_place, spec, observer, result);
  const auto fail = [&](record::Status status, const std::string& reason, bool of_another_rank = false) {
    // Whatever fails in a rank that was asked to end fails for that reason, as if the rank were killed.
    const std::string outsider = status == record::Status::failed ? termination_from_outside() : "";
    result.status = outsider.empty() ? status : record::Status::crashed;
    result.reason = outsider.empty() ? reason : outsider;
    result.stage = run->stage();
    result.phase = run->open_phase();
    result.part = run->part();
    result.step = run->step();
    answer.of_another_rank = of_another_rank && outsider.empty();
    answer.asked_to_end = !outsider.empty();
  };
  try {
    run->run();
  } catch (const CaseFailure& e) {
    fail(e.status, e.reason, e.of_another_rank);
  } catch (const wireup::WireupError& e) {
    fail(record::Status::failed, e.what(), true);
  } catch (const plugin::DeviceError& e) {
    fail(status_after(e.status()), e.what());
  } catch (const plugin::PluginError& e) {
    fail(record::Status::failed, e.what());
  } catch (const std::bad_alloc&) {
    fail(record::Status::oom, "host memory: std::bad_alloc");
  } catch (const std::exception& e) {
    fail(record::Status::failed, e.what());
  }
  result.wall.case_s = seconds_since(begin);
  give(answer);
  CaseTeardown teardown = run->end();
  run.reset();
  teardown.case_s = seconds_since(begin);
  return teardown;
}

}  // namespace assay::host::worker
