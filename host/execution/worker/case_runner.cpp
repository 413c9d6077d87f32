#include "worker/case_runner.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

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
#include "plugin/plugin_library.hpp"
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

namespace assay::host::worker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t first_minor_with_steps_after_finish = 3;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct CaseFailure {
  record::Status status;
  std::string reason;
  bool of_another_rank = false;
};

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
    library_ = plugin::PluginLibrary::open(spec_.plugin_file);
    workload_ = &library_->workload(spec_.workload);
    schema_ = plugin::copy_schema(*workload_, library_->entry().abi_minor);
    refuse_device();
    tell_rank_kind(spec_, schema_, library_->entry().abi_minor, result_);
    device_ = std::make_unique<plugin::OpenDevice>(
        plugin::DeviceLibrary::open(spec_.device_file), spec_.device_ordinal,
        schema_.steps_elsewhere ? plugin::Purpose::observation : plugin::Purpose::work);
    memory_use_.emplace(*device_);
    result_.device = device_of(device_->api(), spec_.device_ordinal, device_->info());
    window_->sampler().attach(device_->api(), device_->handle());
    window_->sampler().add_limits(*result_.device);
    services_ = std::make_unique<HostServices>(*device_, observer_, *ranks_, schema_);
    if (spec_.device_kind == "cpu" && spec_.values.run.memory_limit_bytes)
      services_->set_memory_limit(*spec_.values.run.memory_limit_bytes);
    profiler_ = std::make_unique<CaseProfiler>(spec_, *device_, *services_, result_);
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
    if (object_) workload_->destroy(object_);
    object_ = nullptr;
    observer_.stage(Stage::deinit, 0);
    if (initialized_ && library_->entry().deinit) library_->entry().deinit();
    CaseTeardown teardown;
    teardown.destroy_s = seconds_since(begin);
    std::vector<std::string>& notes = teardown.notes;
    if (services_) {
      notes = services_->warnings();
      notes.erase(notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(warnings_noted_));
      if (services_->blocks_left() > 0)
        notes.push_back(fmt::format("the workload left {} blocks of device memory behind", services_->blocks_left()));
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
    return phase >= 0 ? schema_.phases[static_cast<std::size_t>(phase)] : "";
  }

 private:
  void refuse_device() const {
    const bool runs = spec_.device_kind == "cpu"    ? schema_.runs_on_cpu
                      : spec_.device_kind == "cuda" ? schema_.runs_on_cuda
                                                    : workload_->device_flags == ASSAY_ANY_DEVICE;
    if (!runs)
      throw CaseFailure{record::Status::unsupported,
                        fmt::format("workload '{}' does not run on device '{}'", schema_.id, spec_.device_kind)};
    if (schema_.steps_elsewhere && spec_.plan().cold_cache && spec_.device_kind != "cpu")
      throw CaseFailure{
          record::Status::unsupported,
          fmt::format("[measure] cold_cache = true: the steps of '{}' are those of other processes, and a device whose "
                      "caches this process emptied between them would change from one to the other in each step; let "
                      "the program empty them, and leave out cold_cache",
                      schema_.id)};
  }

  void live() {
    create();
    // Before setup, where a workload may capture its step with the phase marks in it.
    timeline_ = schema_.steps_elsewhere ? std::unique_ptr<measure::Timeline>(std::make_unique<HostTimeline>())
                                        : std::make_unique<DeviceTimeline>(*device_, observer_);
    recorder_ = std::make_unique<measure::Recorder>(*timeline_, schema_.phases.size(), schema_.metrics.size());
    make_phase_pass();
    enter(Stage::setup);
    call("setup", workload_->setup, ASSAY_STAGE_SETUP);
    end_stage();
    ranks_->meet("setup");
    services_->ledger().moment("after_setup");
    account_.emplace(accounted_case());
    measure::LoopResult result = measured();
    account_->read(result);
    services_->ledger().moment("after_measure");
    memory_use_->look(services_->ledger(), window_->own_memory_bytes());
    tell_what_ran();  // before the verification, which loads and chooses for itself
    if (!takes_steps_after_finish()) trace_kernels(result.iterations);
    if (workload_->finish) {
      enter(Stage::finish);
      call("finish", workload_->finish, ASSAY_STAGE_FINISH);
    }
    note_memory();  // a verification may take more than what is verified
    time_phases(result);
    if (takes_steps_after_finish()) trace_kernels(result.iterations + steps_of_phases_);
    phase_pass_.reset();
    recorder_.reset();  // no later step has phases
    take_silent_steps(result);
    verify(result);
    if (!account_->keeps_account()) services_->begin_part("new_objects");
    account_->try_anew(result);
    end_stage();
    if (work_.flops > 0 || work_.bytes > 0) measure_peak(result);
    if (const std::string mistake = word_mistake(services_->case_metrics(), schema_); !mistake.empty())
      throw CaseFailure{record::Status::failed,
                        fmt::format("plugin {}: {}; report one of 0 to their number less one",
                                    std::filesystem::path(spec_.plugin_file).filename().string(), mistake)};
    // Only now do the times enter the record: a number only if correct.
    record_figures(result);
  }

  void create() {
    enter(Stage::create);
    config_.params.insert(spec_.values.params.begin(), spec_.values.params.end());
    if (library_->entry().init) check("init", library_->entry().init(services_->abi()));
    initialized_ = true;
    make_object();
    work_.struct_size = sizeof work_;
    if (workload_->work) {
      check("work", workload_->work(object_, &work_));
      result_.work =
          record::Work{work_.flops, work_.bytes, work_.items, schema_.item_unit, arithmetic_name(work_.arithmetic)};
    }
  }

  void make_object() {
    assay_case c{};
    c.struct_size = sizeof c;
    c.config = &config_;
    c.seed = spec_.values.run.seed;
    c.rank = spec_.ranks.rank, c.rank_count = spec_.ranks.count;
    c.device_kind = spec_.device_kind.c_str();
    c.prepare = spec_.values.measure.prepare ? 1 : 0;
    check("create", workload_->create(services_->abi(), &c, &object_));
    if (!object_) throw CaseFailure{record::Status::failed, "create returned ASSAY_OK and no object"};
  }

  measure::LoopResult measured() {
    measure::LoopHooks hooks;
    MeasuredSteps steps(spec_.plan());
    hooks.run_step = [&](std::uint64_t iteration, bool warmup) { run_step(iteration, warmup); };
    hooks.after_step = [&](bool warmup, std::int64_t done, std::int64_t) {
      if (!warmup) steps.end(services_->ledger().end_step());
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
      services_->ledger().moment("after_warmup");
      enter(Stage::measure, spec_.plan().has_count() ? *spec_.plan().steps : 0);
      profiler_->begin_measure(*recorder_, schema_.phases);
      services_->ledger().begin_steps();
      account_->open();
      steps.begin();
    };
    enter(Stage::warmup, spec_.plan().warmup);
    measure::LoopResult result = measure::measure(*timeline_, *recorder_, spec_.plan(), hooks);
    window_->end();
    profiler_->end_measure(*recorder_);
    result_.wall.measure_s = result.window_s;
    step_peaks_mib_ = steps.peaks_mib();
    if (!spec_.values.profile.ncu)  // whose times nobody is told
      for (std::string& note :
           notes_on(result, spec_, *recorder_, services_->allocations_while_measuring(), phase_pass_->is_apart()))
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
      return checked_peak(*workload_, object_, *services_, static_cast<double>(work_.flops) / step_ns, is_shared);
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
    const assay_launch launch =
        services_->launch(warmup ? ASSAY_STAGE_WARMUP : ASSAY_STAGE_MEASURE, iteration, recorder_.get());
    const assay_status status = workload_->run(object_, &launch);
    if (status != ASSAY_OK) check("run", status);
    services_->rethrow_mark_failure();
  }

  void make_phase_pass() {
    PhasePass::LargestOfRanks largest;
    if (!ranks_->is_alone()) largest = [this](std::span<const double> mine) { return ranks_->slowest(mine); };
    // Of a counted case nobody is told times.
    const bool may_follow = takes_steps_after_finish() && !spec_.values.profile.ncu;
    phase_pass_ = std::make_unique<PhasePass>(*recorder_, graph_events_of(*device_), std::move(largest), may_follow);
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

  // After `finish`, and without an ear for metrics: the workload has told its figures of the measured steps, and what
  // it counts in these belongs to none of them.
  void trace_kernels(std::uint64_t steps_done) {
    services_->ignore_metrics(true);
    const auto run_next = [&](std::uint64_t step) { run_step(steps_done + step, true); };
    profiler_->count_kernels(*timeline_, *recorder_, run_next);
    phase_pass_->record_events(true);  // which say in what phase a kernel ran
    profiler_->trace_kernels(*timeline_, *recorder_, schema_.phases, run_next);
    phase_pass_->record_events(false);
    services_->ignore_metrics(false);
  }

  // After finish, so that no figure of the workload's own knows of them.
  void take_silent_steps(const measure::LoopResult& measured) {
    const assay_silence* silence = ranks_->is_alone() ? nullptr : silence_of(*workload_, object_);
    if (!silence) return;
    measure::Recorder recorder(*timeline_, schema_.phases.size(), schema_.metrics.size());
    services_->ignore_metrics(true);
    check("silence", silence->set(object_, 1));
    ranks_->meet("silence");
    silent_ = silent_pass(*timeline_, recorder, spec_.plan(), measured,
                          {.run_step =
                               [&](std::uint64_t step) {
                                 const assay_launch launch = services_->launch(ASSAY_STAGE_WARMUP, step, &recorder);
                                 check("run", workload_->run(object_, &launch));
                                 services_->rethrow_mark_failure();
                               },
                           .after_step = [&] { ranks_->check_aborted(); },
                           .flush_caches = flush_caches()});
    check("silence", silence->set(object_, 0));
    services_->ignore_metrics(false);
  }

  AccountedCase accounted_case() {
    const auto run = [this](std::uint64_t iteration, bool measured) {
      const assay_stage stage = measured ? ASSAY_STAGE_MEASURE : ASSAY_STAGE_WARMUP;
      const assay_launch launch = services_->launch(stage, iteration, nullptr);
      check("run", workload_->run(object_, &launch));
    };
    return {.workload = *workload_,
            .object = object_,
            .services = *services_,
            .ranks = *ranks_,
            .observer = observer_,
            .check = [this](const char* function, assay_status status) { check(function, status); },
            .wrong = [this](const std::string& mistake) { wrong_result(mistake); },
            .run = run,
            .wait = [this] { wait_for_device(); },
            .with_new_object = [this](const std::function<void()>& what) { with_new_object(what); },
            .waits_for_each_step = spec_.plan().sync,
            .computes_on_processors = spec_.device_kind == "cpu",
            .takes_steps_after_finish = takes_steps_after_finish() || !workload_->finish};
  }

  // Beside the case's own object, whose place it takes meanwhile.
  void with_new_object(const std::function<void()>& what) {
    struct Restored {
      CaseRun& run;
      assay_workload_self* own;
      ~Restored() {
        if (run.object_) run.workload_->destroy(run.object_);
        run.object_ = own;
      }
    };
    const Restored restored{*this, std::exchange(object_, nullptr)};
    make_object();
    call("setup", workload_->setup, ASSAY_STAGE_SETUP);
    what();
  }

  void wrong_result(const std::string& reason) {
    result_.verify = {record::Verification::wrong_result, reason, mode_of_verification()};
    throw CaseFailure{record::Status::wrong_result, reason};
  }

  std::string mode_of_verification() const { return spec_.verification.mode == "full" ? "" : spec_.verification.mode; }

  // Whether the workload's own verification may be left out, as [run] verify asks: on all ranks or on none. Without an
  // account nothing would tie the figures to a right result.
  bool account_is_enough() {
    const VerificationAsked& asked = spec_.verification;
    if (!asked.by_account || !account_->keeps_account()) return false;
    if (!asked.first) return true;
    // Of more algorithms than a record holds, those that it leaves out may differ.
    const bool differs = result_.algorithms != asked.first->algorithms || result_.algorithms.size() == most_algorithms;
    if (!account_->any_rank(differs)) return true;
    result_.note(fmt::format("it was verified by itself: {} the algorithms of {} ([run] verify = \"first\")",
                             result_.algorithms == asked.first->algorithms ? "it is not known to have run all of"
                                                                           : "libraries have not chosen",
                             record::text_of(asked.first->which)));
    return false;
  }

  void verify_by_account(const std::string& accounted) {
    const VerificationAsked& asked = spec_.verification;
    const std::string in_part = account_->why_in_part();
    const std::string rest = in_part.empty() ? "" : "; " + in_part;
    if (!asked.first) {
      result_.verify = {record::Verification::by_account,
                        accounted + "nothing else was checked ([run] verify = \"sampled\")" + rest, asked.mode};
      return;
    }
    const record::VerifiedCase& first = asked.first->which;
    result_.verify = {record::Verification::as_case,
                      fmt::format("{}computes what {} does, which is verified{}{}", accounted, record::text_of(first),
                                  first.status == record::Verification::partial ? " in part" : "", rest),
                      asked.mode, first};
  }

  void verify(const measure::LoopResult& measured) {
    if (!workload_->verify) {
      result_.verify = {record::Verification::not_checked, "the workload has no verification", mode_of_verification()};
      return;
    }
    enter(Stage::verify);
    services_->begin_part("repeated_steps");
    const std::string accounted = StageTimes::timed(result_.wall.repeat_s, [&] { return account_->repeat(measured); });
    services_->begin_part("");
    if (account_is_enough()) return verify_by_account(accounted);
    const assay_launch launch = services_->launch(ASSAY_STAGE_VERIFY, 0, nullptr);
    const assay_status status = workload_->verify(object_, &launch);
    const std::optional<record::Verification> verdict = verification_after(status);
    if (!verdict) return check("verify", status);
    std::string text = services_->take_message();
    if (*verdict == record::Verification::wrong_result) wrong_result(text.empty() ? "verify gave no reason" : text);
    result_.verify = {*verdict, accounted + text, mode_of_verification()};
    if (const std::string in_part = account_->why_in_part(); *verdict == record::Verification::ok && !in_part.empty()) {
      result_.verify->status = record::Verification::partial;
      result_.verify->text += (result_.verify->text.empty() ? "" : "; ") + in_part;
    }
  }

  void record_figures(const measure::LoopResult& result) {
    result_.sampling = sampling_of(result, spec_.plan());
    result_.phases =
        phases_of(result.samples, told_phases_ ? *told_phases_ : result.samples, schema_, spec_.plan().confidence());
    result_.phase_pass = phases_told_by_;
    result_.step_metrics = step_metrics_of(result.samples, schema_, spec_.plan().confidence());
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
    result_.metrics = case_metrics_of(services_->case_metrics(), schema_);
    for (std::string& note : metric_notes(result_)) result_.note(std::move(note));
    if (!result_.memory) note_memory();
    for (std::string& note : overdrawn_memory(services_->ledger())) result_.note(std::move(note));
    if (result_.libraries.empty()) tell_what_ran();
    std::vector<std::string> warnings = services_->warnings();
    warnings_noted_ = warnings.size();
    for (std::string& warning : warnings) result_.note(std::move(warning));
  }

  void tell_what_ran() {
    const std::array<const void*, 2> recorded_as_files{workload_, reinterpret_cast<const void*>(device_->api().open)};
    result_.libraries = loaded_libraries(recorded_as_files);
    tell_algorithms(*device_, result_);
  }

  void note_memory() {
    const measure::MemoryLedger& ledger = services_->ledger();
    result_.memory = memory_of(ledger);
    // Of a case that was refused before it could take any, 0 would be no figure of it.
    if (result_.status != record::Status::ok && ledger.moments().empty() && ledger.peak_total() == 0)
      result_.memory = record::Memory{};
    rusage usage{}, of_children{};
    getrusage(RUSAGE_SELF, &usage);
    getrusage(RUSAGE_CHILDREN, &of_children);  // the largest of those that it has waited for
    if (result_.memory->step_peak_mib) result_.memory->step_peak_mib->samples = step_peaks_mib_;
    result_.memory->process_peak_mib = static_cast<double>(std::max(usage.ru_maxrss, of_children.ru_maxrss)) / 1024.0;
    memory_use_->tell(*result_.memory, result_.telemetry);
  }

  void call(const char* name, assay_status (*function)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT,
            assay_stage stage) {
    const assay_launch launch = services_->launch(stage, 0, stage == ASSAY_STAGE_SETUP ? recorder_.get() : nullptr);
    check(name, function(object_, &launch));
    services_->rethrow_mark_failure();
    wait_for_device();
  }

  void wait_for_device() const {
    if (device_->is_observed()) return;
    device_->check(device_->api().stream_synchronize(device_->handle(), device_->stream()), "waiting for the device");
  }

  // A plugin that was promised that no step follows `finish` may release there what a step needs.
  bool takes_steps_after_finish() const { return library_->entry().abi_minor >= first_minor_with_steps_after_finish; }

  void check(const char* function, assay_status status) {
    if (status == ASSAY_OK) return;
    std::string text = services_->take_message();
    if (text.empty()) text = "no text was given";
    const std::string kind = kind_of_failure(status);
    throw CaseFailure{status_after(status), fmt::format("{}: {}{}{}", function, kind, kind.empty() ? "" : ": ", text),
                      status == ASSAY_COMM_ERROR};
  }

  void enter(Stage stage, std::int64_t total_steps = 0) {
    stage_times_.enter(stage);
    stage_ = stage;
    step_ = 0;
    observer_.stage(stage, total_steps);
  }

  const CaseSpec& spec_;
  CaseObserver& observer_;
  record::CaseResult& result_;
  Stage stage_ = Stage::load;
  StageTimes stage_times_{result_.wall};
  std::int64_t step_ = 0;  // of the stage
  std::string part_;       // in which the case has ended
  std::shared_ptr<const plugin::PluginLibrary> library_;
  const assay_workload* workload_ = nullptr;
  plugin::WorkloadSchema schema_;
  assay_config config_;
  std::unique_ptr<RankServices> ranks_;
  std::unique_ptr<plugin::OpenDevice> device_;
  std::optional<DeviceMemoryUse> memory_use_;
  std::unique_ptr<ObservedWindow> window_;
  std::unique_ptr<HostServices> services_;
  std::unique_ptr<CaseProfiler> profiler_;
  std::unique_ptr<measure::Timeline> timeline_;
  std::unique_ptr<measure::Recorder> recorder_;
  std::unique_ptr<PhasePass> phase_pass_;
  std::optional<measure::Samples> told_phases_;  // of a pass of their own
  std::optional<record::PhasePass> phases_told_by_;
  std::uint64_t steps_of_phases_ = 0;
  std::optional<AccountCheck> account_;
  std::vector<double> step_peaks_mib_;
  assay_workload_self* object_ = nullptr;
  bool initialized_ = false;
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
    // Whatever fails in a rank that somebody has told to end fails for that reason, as if the rank were killed.
    const std::string outsider = status == record::Status::failed ? termination_from_outside() : "";
    result.status = outsider.empty() ? status : record::Status::crashed;
    result.reason = outsider.empty() ? reason : outsider;
    result.stage = run->stage();
    result.phase = run->open_phase();
    result.part = run->part();
    result.step = run->step();
    answer.of_another_rank = of_another_rank && outsider.empty();
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
