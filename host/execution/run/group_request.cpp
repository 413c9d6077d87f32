#include "run/group_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/device_kinds.hpp"
#include "profile/ncu.hpp"
#include "profile/nsys.hpp"
#include "profile/program.hpp"
#include "run/counted_case.hpp"
#include "run/rank_report.hpp"
#include "run/thread_plan.hpp"
#include "telemetry/contention.hpp"

namespace assay::host::run {
namespace {

constexpr std::chrono::seconds probe_timeout{60};
// How long a rank that nobody waits for may take to end after its timeout.
constexpr std::chrono::milliseconds lone_rank_grace{2000};

// `arguments`: what goes between the profiler and the worker.
void put_under(launch::WorkerRequest& request, const worker::CaseSpec& spec, const std::filesystem::path& profiler,
               std::vector<std::string> arguments) {
  std::error_code error;
  arguments.push_back(std::filesystem::read_symlink("/proc/self/exe", error).string());
  arguments.insert(arguments.end(), request.arguments.begin(), request.arguments.end());
  request.executable = profiler;
  request.arguments = std::move(arguments);
  request.is_wrapped = true;
  // It writes its report when the worker has ended, which may take minutes.
  request.teardown_timeout = std::max(request.teardown_timeout, spec.values.measure.timeout);
}

// Without nsys on the PATH nothing changes: the run has said how to do without it.
void put_under_nsys(launch::WorkerRequest& request, const worker::CaseSpec& spec) {
  if (const auto nsys = profile::find_program("nsys"))
    put_under(
        request, spec, *nsys,
        profile::nsys_arguments(spec.file_of_run("nsys_" + spec.file_stem()).string(), spec.values.profile.nsys_trace));
}

// Without ncu the plan has refused the case.
void put_under_ncu(launch::WorkerRequest& request, const worker::CaseSpec& spec) {
  const auto ncu = profile::find_program("ncu");
  if (!ncu) return;
  put_under(request, spec, *ncu, profile::ncu_arguments(table_of_ncu(spec), spec.values.profile.ncu_launches));
  request.environment["LC_ALL"] = "C";  // numbers with points, whatever the user's language
}

// The processors of this process, cut into as many pieces as there are sharers, none of them empty.
std::vector<int> own_processors(const worker::RankSpec& rank) {
  const std::set<int> usable = telemetry::usable_processors();
  const std::vector<int> all(usable.begin(), usable.end());
  const auto sharers = static_cast<std::size_t>(rank.sharer_count);
  const auto place = static_cast<std::size_t>(rank.sharer);
  if (all.empty()) return {};
  if (all.size() < sharers) return {all[place % all.size()]};
  return {all.begin() + static_cast<std::ptrdiff_t>(place * all.size() / sharers),
          all.begin() + static_cast<std::ptrdiff_t>((place + 1) * all.size() / sharers)};
}

// These folders before those that the loader searches already.
std::string library_path(const std::vector<std::string>& folders) {
  const char* inherited = std::getenv("LD_LIBRARY_PATH");
  return fmt::format("{}{}{}", fmt::join(folders, ":"), inherited && *inherited ? ":" : "", inherited ? inherited : "");
}

launch::WorkerRequest worker_request(const nlohmann::json& spec, const std::filesystem::path& log_file,
                                     const std::string& threads) {
  launch::WorkerRequest request;
  request.executable = "/proc/self/exe";
  request.arguments = {"worker"};
  request.environment[threads_variable] = threads;
  request.log_file = log_file;
  request.spec = spec.dump();
  return request;
}

launch::WorkerRequest worker_request(const worker::CaseSpec& spec) {
  launch::WorkerRequest request = worker_request(to_json(spec), spec.log_file(), thread_setting(spec));
  request.environment.merge(wait_variables(thread_count(spec)));
  request.phase_names = spec.phase_names;
  request.memory_limit_bytes = spec.values.run.memory_limit_bytes;
  request.log_limit_bytes = spec.values.run.log_limit_bytes;
  request.teardown_timeout = spec.values.run.teardown_timeout;
  if (!spec.library_folders.empty()) {
    request.environment["LD_LIBRARY_PATH"] = library_path(spec.library_folders);
    // A program that a workload starts is to find its own libraries, not those that were taken for this run.
    const char* inherited = std::getenv("LD_LIBRARY_PATH");
    request.environment["ASSAY_OUTER_LIBRARY_PATH"] = inherited ? inherited : "";
  }
  if (spec.values.run.bind == "cores") request.processors = own_processors(spec.ranks);
  if (spec.values.profile.nsys && has_nvidia_tools(spec.device_kind)) put_under_nsys(request, spec);
  if (is_counted(spec)) put_under_ncu(request, spec);
  return request;
}

}  // namespace

launch::GroupRequest group_request(const std::vector<worker::CaseSpec>& here,
                                   const launch::InterruptHandler& interrupts) {
  launch::GroupRequest request;
  request.wake_fd = interrupts.wake_fd();
  for (const worker::CaseSpec& spec : here) {
    request.workers.push_back(worker_request(spec));
    request.ranks.push_back(spec.ranks.rank);
  }
  const worker::CaseSpec& any = here.front();
  request.timeout = any.values.measure.timeout;
  if (any.is_alone()) {
    request.end_grace = lone_rank_grace;
    return request;
  }
  request.stall_timeout = any.values.run.stall_timeout;
  request.judge_result = judge_result;
  return request;
}

launch::GroupRequest probe_request(const std::string& wanted_device, const std::filesystem::path& device_folder,
                                   const std::filesystem::path& log_file, const launch::InterruptHandler& interrupts) {
  launch::GroupRequest request;
  request.wake_fd = interrupts.wake_fd();
  request.workers = {worker_request(worker::probe_to_json(wanted_device), log_file, thread_setting({}))};
  if (!device_folder.empty()) {
    request.workers.front().environment["ASSAY_DEVICE_PATH"] = device_folder.string();
    request.workers.front().environment["LD_LIBRARY_PATH"] = library_path({device_folder.string()});
  }
  request.ranks = {0};
  request.timeout = probe_timeout;
  return request;
}

}  // namespace assay::host::run
