#include "cli/case_process.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "launch/supervise.hpp"
#include "profile/nsys.hpp"
#include "telemetry/contention.hpp"
#include "worker/case_runner.hpp"
#include "worker/device_probe.hpp"

namespace assay::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* threads_variable = "OMP_NUM_THREADS";

// An explicit [run] threads wins; then what the user's environment says; then every core this process may use.
std::string thread_setting(const RunSettings& run) {
  if (run.threads > 0) return std::to_string(run.threads);
  if (const char* given = std::getenv(threads_variable)) return given;
  return std::to_string(std::max<std::size_t>(1, usable_processors().size()));
}

// "case-0001": the stem of the files that belong to one case.
std::string file_stem(const Case& c) { return fmt::format("case-{:04}", c.index + 1); }

// Relative to the run folder, whatever the process that writes it takes as its own folder.
std::string file_of_run(const CaseContext& context, const std::string& name) {
  return (fs::absolute(context.run_folder) / name).lexically_normal().string();
}

CaseSpec make_spec(const Case& c, const std::string& device_kind, const CaseContext& context) {
  CaseSpec spec;
  spec.plugin_file = context.target.found.library->file().string();
  spec.workload = context.target.schema.id;
  spec.device_kind = device_kind;
  spec.params = c.params;
  for (const ParamSpec& p : context.target.schema.params) {
    std::string* path = p.output_path ? std::get_if<std::string>(&spec.params[p.name]) : nullptr;
    if (path && !path->empty()) *path = file_of_run(context, *path);
  }
  spec.plan = {c.measure.warmup, c.measure.steps, std::nullopt, c.measure.sync};
  if (const auto& u = c.measure.until) {
    spec.plan.until = UntilRule{u->relative_error, u->confidence, u->min_steps, u->max_steps};
    spec.confidence = u->confidence;
  }
  spec.seed = c.run.seed;
  spec.profile.ranges = c.profile.nvtx || c.profile.nsys;
  if (c.profile.kernels) spec.profile.kernels_file = file_of_run(context, "kernels_" + file_stem(c) + ".md");
  if (c.profile.memory_snapshot)
    spec.profile.memory_snapshot_file = file_of_run(context, "memory_" + file_stem(c) + ".pickle");
  return spec;
}

class TerminalObserver final : public CaseObserver {
 public:
  explicit TerminalObserver(const StageProgress& progress) : progress_(progress) {}
  void stage(Stage stage, std::int64_t total_steps) override {
    stage_ = stage, total_ = total_steps;
    progress_(name_of(stage_), 0, total_, "");
  }
  void step(std::int64_t done) override { progress_(name_of(stage_), done, total_, ""); }

 private:
  const StageProgress& progress_;
  Stage stage_ = Stage::load;
  std::int64_t total_ = 0;
};

// What became of a worker that gave no record of its own.
Record record_of_lost_worker(const WorkerOutcome& outcome) {
  Record record = {{"status", name_of(outcome.status)},
                   {"reason", outcome.reason},
                   {"stage", name_of(outcome.where.stage)},
                   {"phase", outcome.phase},
                   {"step", outcome.where.step}};
  Record held = Record::object();
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (outcome.where.peak_bytes[k] > 0)
      held[memory_kind_name(k)] = static_cast<double>(outcome.where.peak_bytes[k]) / (1024.0 * 1024.0);
  record["memory"] = {{"peak_mib", held},
                      {"process_peak_mib", static_cast<double>(outcome.peak_rss_bytes) / (1024.0 * 1024.0)}};
  record["wall_s"] = {{"case", outcome.wall_s}};
  if (!outcome.log_tail.empty()) record["log_tail"] = outcome.log_tail;
  return record;
}

// Without nsys on the PATH nothing changes: the session has told the user how to do without it.
void put_under_nsys(WorkerRequest& request, const std::string& report) {
  const char* path = std::getenv("PATH");
  const auto nsys = find_program("nsys", path ? path : "");
  if (!nsys) return;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  std::vector<std::string> arguments = nsys_arguments(report);
  arguments.push_back(self.string());
  arguments.insert(arguments.end(), request.arguments.begin(), request.arguments.end());
  request.executable = *nsys;
  request.arguments = std::move(arguments);
}

WorkerRequest make_request(const Case& c, const CaseSpec& spec, const CaseContext& context) {
  WorkerRequest request;
  request.executable = "/proc/self/exe";
  request.arguments = {"worker"};
  request.environment[threads_variable] = thread_setting(c.run);
  request.log_file = context.run_folder / "logs" / (file_stem(c) + ".log");
  request.spec = to_json(spec).dump();
  request.phase_names = context.target.schema.phases;
  request.timeout = c.measure.timeout;
  request.memory_limit_bytes = c.run.memory_limit_bytes;
  request.wake_fd = context.interrupts.wake_fd();
  if (c.profile.nsys && spec.device_kind == "cuda")
    put_under_nsys(request, file_of_run(context, "nsys_" + file_stem(c)));
  return request;
}

std::optional<Record> result_of(const WorkerOutcome& outcome, const char* key) {
  if (!outcome.events.result) return std::nullopt;
  Record event = Record::parse(*outcome.events.result, nullptr, false);
  if (!event.is_object() || !event.contains(key)) return std::nullopt;
  return event[key];
}

}  // namespace

CaseOutcome run_case_on(const Case& c, const std::string& device_kind, const CaseContext& context) {
  const CaseSpec spec = make_spec(c, device_kind, context);
  if (context.in_process || !c.run.isolate) {
    setenv(threads_variable, thread_setting(c.run).c_str(), 1);
    TerminalObserver observer(context.on_progress);
    return {run_case(spec, observer), context.interrupts.count()->load() > 0};
  }
  const WorkerRequest request = make_request(c, spec, context);
  const WorkerOutcome outcome = supervise(
      request,
      [&](const BoardView& view) {
        const bool in_phase = view.phase >= 0 && static_cast<std::size_t>(view.phase) < request.phase_names.size();
        context.on_progress(name_of(view.stage), static_cast<std::int64_t>(view.step),
                            static_cast<std::int64_t>(view.total_steps),
                            in_phase ? request.phase_names[static_cast<std::size_t>(view.phase)] : "");
      },
      context.interrupts.count());
  if (outcome.status == WorkerStatus::interrupted) return {Record(), true};
  if (outcome.status == WorkerStatus::finished)
    if (auto record = result_of(outcome, "record")) return {std::move(*record), false};
  return {record_of_lost_worker(outcome), false};
}

Record probe_in_process_of_its_own(const std::string& wanted, const fs::path& log_file,
                                   const InterruptHandler& interrupts) {
  WorkerRequest request;
  request.executable = "/proc/self/exe";
  request.arguments = {"worker"};
  request.environment[threads_variable] = thread_setting({});
  request.log_file = log_file;
  request.spec = nlohmann::json{{"probe", wanted}}.dump();
  request.timeout = std::chrono::seconds(60);
  request.wake_fd = interrupts.wake_fd();
  const WorkerOutcome outcome = supervise(request, {}, interrupts.count());
  if (outcome.status == WorkerStatus::finished)
    if (auto probe = result_of(outcome, "probe")) return *probe;
  return {{"status", "failed"}, {"reason", fmt::format("asking for device '{}': {}", wanted, outcome.reason)}};
}

}  // namespace assay::host
