#include "run/thread_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "telemetry/cgroup.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/processors_left.hpp"
#include "telemetry/wake_up_cost.hpp"

namespace assay::host::run {
namespace {

constexpr std::chrono::milliseconds neighbours_window{200};
constexpr const char* spin_variable = "GOMP_SPINCOUNT";

std::optional<double>& kept_taken_processors() {
  static std::optional<double> kept;
  return kept;
}

double taken_processors() {
  std::optional<double>& kept = kept_taken_processors();
  if (!kept) kept = std::round(telemetry::measure_taken_processors(neighbours_window));
  return *kept;
}

const telemetry::SpinBound& spin_bound() {
  static const telemetry::SpinBound bound = telemetry::spin_bound(telemetry::measure_wait_costs());
  return bound;
}

// "OMP_WAIT_POLICY=passive", as far as the user has said anything of it when the run began: a case that runs in this
// process puts our own choice there.
const std::string& user_said_of_waiting() {
  static const std::string said = [] {
    std::string text;
    for (const char* name : {"OMP_WAIT_POLICY", spin_variable})
      if (const char* value = std::getenv(name)) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
    return text;
  }();
  return said;
}

}  // namespace

void keep_taken_processors(double taken) { kept_taken_processors() = taken; }

bool has_machine_to_itself(const std::vector<worker::CaseSpec>& here) {
  return here.size() >= static_cast<std::size_t>(here.front().ranks.local_count);
}

record::Threads thread_count(const worker::CaseSpec& spec, bool minds_neighbours) {
  record::Threads threads;
  if (spec.values.run.threads > 0) {
    threads.count = spec.values.run.threads;
    threads.count_from = "[run] threads";
    return threads;
  }
  if (const char* given = std::getenv(threads_variable)) {
    if (const long count = std::strtol(given, nullptr, 10); count > 0) threads.count = count;
    threads.count_from = fmt::format("{}={}", threads_variable, given);
    return threads;
  }
  const std::size_t usable = telemetry::usable_processors().size();
  const std::optional<double> quota = telemetry::cgroup_cpu_quota_cores("/");
  double taken = 0;
  if (minds_neighbours && spec.device_kind == "cpu" && telemetry::processors_left(usable, quota, 0) > 1)
    threads.taken_processors = taken = taken_processors();
  const std::size_t left = telemetry::processors_left(usable, quota, taken);
  const auto sharers = static_cast<std::size_t>(std::max(spec.ranks.sharer_count, 1));
  threads.count = static_cast<std::int64_t>(std::max<std::size_t>(1, left / sharers));
  threads.count_from = fmt::format("{} usable {}", usable, usable == 1 ? "processor" : "processors");
  if (quota) threads.count_from += fmt::format(", the control group's quota of {:.3g}", *quota);
  if (taken > 0) threads.count_from += fmt::format(", {:.0f} kept busy by other processes when the run began", taken);
  if (sharers > 1) threads.count_from += fmt::format(", shared by {} ranks", sharers);
  return threads;
}

std::string thread_setting(const worker::CaseSpec& spec, bool minds_neighbours) {
  const record::Threads threads = thread_count(spec, minds_neighbours);
  if (threads.count) return std::to_string(*threads.count);
  return std::getenv(threads_variable);  // a list, or something that OpenMP has to say something about
}

std::map<std::string, std::optional<std::string>> wait_variables(const record::Threads& threads) {
  if (threads.count == 1 || !user_said_of_waiting().empty()) return {};
  return {{spin_variable, std::to_string(spin_bound().count)}};
}

void add_threads(const worker::CaseSpec& spec, bool minds_neighbours, record::CaseResult& result) {
  if (spec.device_kind == "cpu" && result.is_ok()) add_threads(spec, thread_count(spec, minds_neighbours), result);
}

void add_threads(const worker::CaseSpec& spec, const record::Threads& counted, record::CaseResult& result) {
  if (spec.device_kind != "cpu" || !result.is_ok()) return;
  record::Threads& threads = result.threads = counted;
  if (!user_said_of_waiting().empty()) {
    threads.waiting = user_said_of_waiting();
  } else if (threads.count != 1) {
    threads.waiting = "spins for as long as a sleep costs, then sleeps";
    threads.spin_count = spin_bound().count;
    threads.spin_us = spin_bound().us;
  }
  if (threads.taken_processors.value_or(0) > 0)
    result.note(fmt::format("{} {} for {}; [run] threads sets another number", threads.count.value_or(0),
                            threads.count == 1 ? "thread" : "threads", threads.count_from));
}

}  // namespace assay::host::run
