#include "run/thread_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "telemetry/cgroup.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/processors_left.hpp"
#include "telemetry/wake_up_cost.hpp"

namespace assay::host::run {
namespace {

constexpr const char* spin_variable = "GOMP_SPINCOUNT";

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

record::Threads thread_count(const worker::CaseSpec& spec) {
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
  const std::size_t allowed = telemetry::allowed_processors(usable, quota);
  const auto sharers = static_cast<std::size_t>(std::max(spec.ranks.sharer_count, 1));
  threads.count = static_cast<std::int64_t>(std::max<std::size_t>(1, allowed / sharers));
  threads.count_from = fmt::format("{} usable {}", usable, usable == 1 ? "processor" : "processors");
  if (quota) threads.count_from += fmt::format(", the control group's quota of {:.3g}", *quota);
  if (sharers > 1) threads.count_from += fmt::format(", shared by {} ranks", sharers);
  return threads;
}

std::string thread_setting(const worker::CaseSpec& spec) {
  const record::Threads threads = thread_count(spec);
  if (threads.count) return std::to_string(*threads.count);
  return std::getenv(threads_variable);  // a list, or something that OpenMP has to say something about
}

std::map<std::string, std::optional<std::string>> wait_variables(const record::Threads& threads) {
  if (threads.count == 1 || !user_said_of_waiting().empty()) return {};
  return {{spin_variable, std::to_string(spin_bound().count)}};
}

void add_threads(const worker::CaseSpec& spec, record::CaseResult& result) {
  if (spec.device_kind == "cpu" && result.is_ok()) add_threads(spec, thread_count(spec), result);
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
}

}  // namespace assay::host::run
