#include "worker/case_runner.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "measure/statistics.hpp"
#include "plugin/search.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/validity.hpp"
#include "worker/case_profiler.hpp"
#include "worker/case_record.hpp"
#include "worker/device_timeline.hpp"
#include "worker/host_services.hpp"
#include "worker/rank_services.hpp"

namespace assay::host {
namespace {

using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct CaseFailure {
  std::string status;
  std::string reason;
  bool of_another_rank = false;
};

std::string status_name(assay_status status) {
  switch (status) {
    case ASSAY_OK: return "ok";
    case ASSAY_UNSUPPORTED: return "unsupported";
    case ASSAY_OUT_OF_MEMORY: return "oom";
    case ASSAY_WRONG_RESULT: return "wrong_result";
    default: return "failed";
  }
}

const char* kind_of_failure(assay_status status) {
  switch (status) {
    case ASSAY_INVALID_ARGUMENT: return "invalid argument";
    case ASSAY_DEVICE_ERROR: return "device error";
    case ASSAY_INTERNAL: return "internal error";
    case ASSAY_COMM_ERROR: return "communication error";
    default: return "";
  }
}

// One case in progress. Members are destroyed in reverse order: the object before the services, those before the
// device.
class CaseRun {
 public:
  CaseRun(const CaseSpec& spec, CaseObserver& observer, json& record)
      : spec_(spec), observer_(observer), record_(record) {}

  void run() {
    enter(Stage::load);
    telemetry_ = std::make_unique<TelemetrySampler>();  // before a library binds this thread to a processor
    ranks_ = std::make_unique<RankServices>(spec_, observer_);
    library_ = PluginLibrary::open(spec_.plugin_file);
    workload_ = &library_->workload(spec_.workload);
    schema_ = copy_schema(*workload_);
    refuse_device();
    device_ = std::make_unique<OpenDevice>(find_device(spec_.device_kind), spec_.device_ordinal);
    record_["device"] = device_record(device_->api().kind, spec_.device_ordinal, device_->info());
    telemetry_->attach(device_->api(), device_->handle());
    record_["device"].update(telemetry_->limits());
    services_ = std::make_unique<HostServices>(*device_, observer_, *ranks_, schema_.metrics.size());
    profiler_ = std::make_unique<CaseProfiler>(spec_, *device_, *services_, record_);
    std::exception_ptr failure;
    try {
      live();
    } catch (...) {
      failure = std::current_exception();
      ranks_->give_up();
    }
    leave_traces();
    end_object();
    if (failure) std::rethrow_exception(failure);
    ranks_->leave();
    enter(Stage::done);
  }

  Stage stage() const { return stage_; }
  std::int64_t step() const { return step_; }
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
      throw CaseFailure{"unsupported",
                        fmt::format("workload '{}' does not run on device '{}'", schema_.id, spec_.device_kind)};
  }

  void live() {
    create();
    // Before setup, where a workload may capture its step with the phase marks in it.
    timeline_ = std::make_unique<DeviceTimeline>(*device_, observer_);
    recorder_ = std::make_unique<Recorder>(*timeline_, schema_.phases.size(), schema_.metrics.size());
    enter(Stage::setup);
    const auto setup_begin = Clock::now();
    call("setup", workload_->setup, ASSAY_STAGE_SETUP);
    wall_["setup"] = seconds_since(setup_begin);
    ranks_->meet("setup");
    services_->ledger().moment("after_setup");
    LoopResult result = measured();
    services_->ledger().moment("after_measure");
    if (workload_->finish) {
      enter(Stage::finish);
      call("finish", workload_->finish, ASSAY_STAGE_FINISH);
    }
    note_memory();  // a verification may take more than what is verified
    verify();
    if (const std::string mistake = word_mistake(services_->case_metrics(), schema_); !mistake.empty())
      throw CaseFailure{"failed", fmt::format("plugin {}: {}; report one of 0 to their number less one",
                                              std::filesystem::path(spec_.plugin_file).filename().string(), mistake)};
    // Only now do the times enter the record: a number only if correct.
    record_figures(result);
  }

  void create() {
    enter(Stage::create);
    config_.params.insert(spec_.values.params.begin(), spec_.values.params.end());
    if (library_->entry().init) check("init", library_->entry().init(services_->abi()));
    initialized_ = true;
    assay_case c{};
    c.struct_size = sizeof c;
    c.config = &config_;
    c.seed = spec_.values.run.seed;
    c.rank = spec_.ranks.rank, c.rank_count = spec_.ranks.count;
    c.device_kind = spec_.device_kind.c_str();
    check("create", workload_->create(services_->abi(), &c, &object_));
    if (!object_) throw CaseFailure{"failed", "create returned ASSAY_OK and no object"};
    work_.struct_size = sizeof work_;
    if (workload_->work) {
      check("work", workload_->work(object_, &work_));
      record_["work"] = work_record(work_, schema_.item_unit);
    }
  }

  LoopResult measured() {
    LoopHooks hooks;
    hooks.run_step = [&](std::uint64_t iteration, bool warmup) {
      const assay_launch launch =
          services_->launch(warmup ? ASSAY_STAGE_WARMUP : ASSAY_STAGE_MEASURE, iteration, recorder_.get());
      const assay_status status = workload_->run(object_, &launch);
      if (status != ASSAY_OK) check("run", status);
      services_->rethrow_mark_failure();
    };
    hooks.after_step = [&](bool, std::int64_t done, std::int64_t) {
      step_ = done;
      observer_.step(done);
      ranks_->check_aborted();
    };
    if (!ranks_->is_alone()) {
      hooks.slowest = [&](std::span<const double> step_ns) { return ranks_->slowest(step_ns); };
      hooks.agree = [&](Verdict mine) { return ranks_->agree(mine); };
    }
    hooks.after_warmup = [&] {
      ranks_->meet("measure");  // the first measured step begins on all ranks at once
      services_->ledger().moment("after_warmup");
      enter(Stage::measure, spec_.plan().until ? 0 : spec_.plan().steps);
      contention_.begin();
      telemetry_->begin();
      profiler_->begin_measure();
    };
    enter(Stage::warmup, spec_.plan().warmup);
    LoopResult result = measure(*timeline_, *recorder_, spec_.plan(), hooks);
    const std::optional<TelemetryFigures> telemetry = telemetry_->end();
    Contention contention = contention_.end();
    profiler_->end_measure();
    if (!ranks_->is_alone()) {
      const double machine_cpu_s = ranks_->sum_of_this_machine(contention.own_cpu_s);
      if (spec_.shares_processors()) contention.leave_out(machine_cpu_s - contention.own_cpu_s);
    }
    wall_["measure"] = result.window_s;
    for (std::string& note : notes_on(result, spec_, *recorder_, services_->allocations_while_measuring()))
      record_["notes"].push_back(std::move(note));
    profiler_->write_memory_snapshot();
    const std::uint64_t steps_done = static_cast<std::uint64_t>(spec_.plan().warmup) + result.samples.step_ns.size();
    profiler_->trace_kernels(*timeline_, *recorder_, schema_.phases,
                             [&](std::uint64_t step) { hooks.run_step(steps_done + step, true); });
    record_["contention"] = contention_record(contention);
    for (std::string& note : contention_notes(contention)) record_["notes"].push_back(std::move(note));
    if (telemetry) record_["telemetry"] = telemetry->record();
    if (!telemetry_->note().empty()) record_["notes"].push_back(telemetry_->note());
    record_["validity"] =
        to_json(validity_of(spec_.device_kind == "cpu", telemetry ? &*telemetry : nullptr, contention));
    recorder_.reset();
    return result;
  }

  void verify() {
    if (!workload_->verify) {
      record_["verify"] = {{"status", "not checked"}, {"text", "the workload has no verification"}};
      return;
    }
    enter(Stage::verify);
    const assay_launch launch = services_->launch(ASSAY_STAGE_VERIFY, 0, nullptr);
    const assay_status status = workload_->verify(object_, &launch);
    if (status == ASSAY_OK || status == ASSAY_WRONG_RESULT || status == ASSAY_UNSUPPORTED) {
      const std::string text = services_->take_message();
      record_["verify"] = {{"status", status == ASSAY_OK             ? "ok"
                                      : status == ASSAY_WRONG_RESULT ? "wrong_result"
                                                                     : "not checked"},
                           {"text", text}};
      if (status == ASSAY_WRONG_RESULT)
        throw CaseFailure{"wrong_result", text.empty() ? "verify gave no reason" : text};
      return;
    }
    check("verify", status);
  }

  void record_figures(const LoopResult& result) {
    record_["phases"] = phases_record(result.samples, schema_, spec_.plan().confidence());
    record_["step_metrics"] = step_metrics_record(result.samples, schema_, spec_.plan().confidence());
    record_["rates"] = rates_record(work_, record_["phases"]["step"]["mean_ms"].get<double>());
    const auto d = drift(result.samples.step_ns);
    record_["drift"] = d ? json(*d) : json(nullptr);
  }

  // What is known however the case ended.
  void leave_traces() {
    profiler_->write_memory_snapshot();  // of a case that failed before its end
    record_["metrics"] = case_metrics_record(services_->case_metrics(), schema_);
    const json none = json::object();
    for (std::string& note : metric_notes(record_["metrics"], record_.value("step_metrics", none)))
      record_["notes"].push_back(std::move(note));
    if (!record_.contains("memory")) note_memory();
    for (const auto& [name, s] : wall_) record_["wall_s"][name] = s;
  }

  void note_memory() {
    record_["memory"] = memory_record(services_->ledger());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    record_["memory"]["process_peak_mib"] = static_cast<double>(usage.ru_maxrss) / 1024.0;
  }

  void end_object() {
    const Stage failed_in = stage_;
    observer_.stage(Stage::destroy, 0);
    if (object_) workload_->destroy(object_);
    object_ = nullptr;
    if (initialized_ && library_->entry().deinit) library_->entry().deinit();
    if (services_->blocks_left() > 0)
      record_["notes"].push_back(
          fmt::format("the workload left {} blocks of device memory behind", services_->blocks_left()));
    stage_ = failed_in;
  }

  void call(const char* name, assay_status (*function)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT,
            assay_stage stage) {
    const assay_launch launch = services_->launch(stage, 0, stage == ASSAY_STAGE_SETUP ? recorder_.get() : nullptr);
    check(name, function(object_, &launch));
    services_->rethrow_mark_failure();
    device_->check(device_->api().stream_synchronize(device_->handle(), device_->stream()), "waiting for the device");
  }

  void check(const char* function, assay_status status) {
    if (status == ASSAY_OK) return;
    std::string text = services_->take_message();
    if (text.empty()) text = "no text was given";
    const std::string kind = kind_of_failure(status);
    throw CaseFailure{status_name(status), fmt::format("{}: {}{}{}", function, kind, kind.empty() ? "" : ": ", text),
                      status == ASSAY_COMM_ERROR};
  }

  void enter(Stage stage, std::int64_t total_steps = 0) {
    stage_ = stage;
    step_ = 0;
    observer_.stage(stage, total_steps);
  }

  const CaseSpec& spec_;
  CaseObserver& observer_;
  json& record_;
  Stage stage_ = Stage::load;
  std::int64_t step_ = 0;  // of the stage
  std::map<std::string, double> wall_;
  std::shared_ptr<const PluginLibrary> library_;
  const assay_workload* workload_ = nullptr;
  WorkloadSchema schema_;
  assay_config config_;
  std::unique_ptr<RankServices> ranks_;
  std::unique_ptr<OpenDevice> device_;
  std::unique_ptr<TelemetrySampler> telemetry_;
  std::unique_ptr<HostServices> services_;
  std::unique_ptr<CaseProfiler> profiler_;
  std::unique_ptr<DeviceTimeline> timeline_;
  std::unique_ptr<Recorder> recorder_;
  ContentionProbe contention_;
  assay_workload_self* object_ = nullptr;
  bool initialized_ = false;
  assay_work work_{};
};

}  // namespace

json run_case(const CaseSpec& spec, CaseObserver& observer) {
  json record = {{"status", "ok"}, {"reason", ""},           {"stage", "done"},
                 {"phase", ""},    {"notes", json::array()}, {"wall_s", json::object()}};
  const auto begin = Clock::now();
  CaseRun run(spec, observer, record);
  const auto fail = [&](const std::string& status, const std::string& reason) {
    record["status"] = status;
    record["reason"] = reason;
    record["stage"] = name_of(run.stage());
    record["phase"] = run.open_phase();
    record["step"] = run.step();
  };
  try {
    run.run();
  } catch (const CaseFailure& e) {
    fail(e.status, e.reason);
    record["of_another_rank"] = e.of_another_rank;
  } catch (const WireupError& e) {
    fail("failed", e.what());
    record["of_another_rank"] = true;
  } catch (const DeviceError& e) {
    fail(status_name(e.status()), e.what());
  } catch (const PluginError& e) {
    fail("failed", e.what());
  } catch (const std::bad_alloc&) {
    fail("oom", "host memory: std::bad_alloc");
  } catch (const std::exception& e) {
    fail("failed", e.what());
  }
  record["wall_s"]["case"] = seconds_since(begin);
  return record;
}

}  // namespace assay::host
