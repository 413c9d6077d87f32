#include "cli/worker_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "profile/nsys.hpp"
#include "telemetry/contention.hpp"

namespace assay::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* threads_variable = "OMP_NUM_THREADS";

// "case-0001", "case-0001.rank2": the stem of the files that belong to one rank of a case.
std::string file_stem(const Case& c, const RankSpec& rank) {
  const std::string stem = fmt::format("case-{:04}", c.index + 1);
  return rank.count == 1 ? stem : fmt::format("{}.rank{}", stem, rank.rank);
}

// Relative to the run folder, whatever the process that writes it takes as its own folder.
std::string file_of_run(const CaseContext& context, const std::string& name) {
  return (fs::absolute(context.run_folder) / name).lexically_normal().string();
}

CaseSpec make_spec(const Case& c, const std::string& device_kind, const CaseContext& context, const RankSpec& rank) {
  CaseSpec spec;
  spec.plugin_file = fs::absolute(context.target.found.library->file()).lexically_normal().string();
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
  spec.ranks = rank;
  spec.profile.ranges = c.profile.nvtx || c.profile.nsys;
  const std::string stem = file_stem(c, rank);
  if (c.profile.kernels) spec.profile.kernels_file = file_of_run(context, "kernels_" + stem + ".md");
  if (c.profile.memory_snapshot) spec.profile.memory_snapshot_file = file_of_run(context, "memory_" + stem + ".pickle");
  return spec;
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

// The processors of this process, cut into as many pieces as there are sharers, none of them empty.
std::vector<int> own_processors(const ProcessorShare& share) {
  const std::set<int> usable = usable_processors();
  const std::vector<int> all(usable.begin(), usable.end());
  const auto sharers = static_cast<std::size_t>(share.sharers);
  const auto place = static_cast<std::size_t>(share.place);
  if (all.empty()) return {};
  if (all.size() < sharers) return {all[place % all.size()]};
  return {all.begin() + static_cast<std::ptrdiff_t>(place * all.size() / sharers),
          all.begin() + static_cast<std::ptrdiff_t>((place + 1) * all.size() / sharers)};
}

}  // namespace

std::string thread_setting(const WorkerOrder& order) {
  if (order.threads > 0) return std::to_string(order.threads);
  if (const char* given = std::getenv(threads_variable)) return given;
  const std::size_t share = usable_processors().size() / static_cast<std::size_t>(order.share.sharers);
  return std::to_string(std::max<std::size_t>(1, share));
}

WorkerOrder make_order(const Case& c, const std::string& device_kind, const CaseContext& context) {
  return make_order(c, device_kind, context, RankSpec{}, 0);
}

WorkerOrder make_order(const Case& c, const std::string& device_kind, const CaseContext& context, const RankSpec& rank,
                       std::int32_t device_ordinal) {
  WorkerOrder order;
  order.spec = make_spec(c, device_kind, context, rank);
  order.spec.device_ordinal = device_ordinal;
  const std::string stem = file_stem(c, rank);
  order.log_file = fs::absolute(context.run_folder / "logs" / (stem + ".log")).lexically_normal();
  order.phase_names = context.target.schema.phases;
  order.timeout = c.measure.timeout;
  order.stall_timeout = c.run.stall_timeout;
  order.memory_limit_bytes = c.run.memory_limit_bytes;
  order.log_limit_bytes = c.run.log_limit_bytes;
  order.threads = c.run.threads;
  order.bind = c.run.bind == "cores";
  if (c.profile.nsys && device_kind == "cuda") order.nsys_report = file_of_run(context, "nsys_" + stem);
  return order;
}

WorkerRequest make_request(const WorkerOrder& order, int wake_fd) {
  WorkerRequest request;
  request.executable = "/proc/self/exe";
  request.arguments = {"worker"};
  request.environment[threads_variable] = thread_setting(order);
  request.log_file = order.log_file;
  request.spec = to_json(order.spec).dump();
  request.phase_names = order.phase_names;
  request.timeout = order.timeout;
  request.memory_limit_bytes = order.memory_limit_bytes;
  request.log_limit_bytes = order.log_limit_bytes;
  if (order.bind) request.processors = own_processors(order.share);
  request.wake_fd = wake_fd;
  if (!order.nsys_report.empty()) put_under_nsys(request, order.nsys_report);
  return request;
}

nlohmann::json to_json(const WorkerOrder& order) {
  nlohmann::json json = {{"spec", to_json(order.spec)},
                         {"log_file", order.log_file.string()},
                         {"phase_names", order.phase_names},
                         {"timeout_ms", order.timeout.count()},
                         {"stall_timeout_ms", order.stall_timeout.count()},
                         {"log_limit_bytes", order.log_limit_bytes},
                         {"threads", order.threads},
                         {"place", order.share.place},
                         {"sharers", order.share.sharers},
                         {"bind", order.bind},
                         {"nsys_report", order.nsys_report}};
  if (order.memory_limit_bytes) json["memory_limit_bytes"] = *order.memory_limit_bytes;
  return json;
}

WorkerOrder worker_order_from_json(const nlohmann::json& json) {
  WorkerOrder order;
  order.spec = case_spec_from_json(json.at("spec"));
  order.log_file = json.at("log_file").get<std::string>();
  json.at("phase_names").get_to(order.phase_names);
  order.timeout = std::chrono::milliseconds(json.at("timeout_ms").get<std::int64_t>());
  order.stall_timeout = std::chrono::milliseconds(json.at("stall_timeout_ms").get<std::int64_t>());
  json.at("log_limit_bytes").get_to(order.log_limit_bytes);
  json.at("threads").get_to(order.threads);
  json.at("place").get_to(order.share.place);
  json.at("sharers").get_to(order.share.sharers);
  json.at("bind").get_to(order.bind);
  json.at("nsys_report").get_to(order.nsys_report);
  if (json.contains("memory_limit_bytes")) order.memory_limit_bytes = json["memory_limit_bytes"].get<std::uint64_t>();
  return order;
}

}  // namespace assay::host
