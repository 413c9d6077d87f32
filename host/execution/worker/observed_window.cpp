#include "worker/observed_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "launch/process.hpp"
#include "record/efficiency.hpp"
#include "record/verdict_note.hpp"
#include "telemetry/validity.hpp"
#include "worker/findings.hpp"

namespace assay::host::worker {
namespace {

std::int64_t threads_given() {
  const char* threads = std::getenv("OMP_NUM_THREADS");
  return threads ? std::max<std::int64_t>(std::strtol(threads, nullptr, 10), 1) : 1;
}

}  // namespace

std::string tag_of_descendants() {
  const char* tag = std::getenv(launch::worker_tag_variable);
  return tag ? fmt::format("{}={}", launch::worker_tag_variable, tag) : "";
}

void ObservedWindow::begin() {
  suspension_probe_.begin();
  probe_.begin();
  sampler_.begin();
  begin_ = std::chrono::steady_clock::now();
}

void ObservedWindow::end() {
  telemetry_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  telemetry_ = sampler_.end();
  contention_ = probe_.end();
  suspension_ = suspension_probe_.end();
}

void ObservedWindow::tell(record::CaseResult& result, const CaseSpec& spec, RankServices& ranks, double window_s,
                          const std::vector<double>& step_bounds_s) {
  auto threads_of_case = static_cast<double>(contention_.busy_threads.value_or(0));
  if (!ranks.is_alone()) {
    const double machine_cpu_s = ranks.sum_of_this_machine(contention_.own_cpu_s);
    const double machine_wanted_s = ranks.sum_of_this_machine(contention_.wanted_s);
    const double threads_of_machine = ranks.sum_of_this_machine(threads_of_case);
    if (spec.shares_processors()) {
      contention_.leave_out(machine_cpu_s - contention_.own_cpu_s, machine_wanted_s - contention_.wanted_s);
      threads_of_case = threads_of_machine;
    }
  }
  result.contention = processor_shares_of(contention_);
  if (!spec.values.profile.ncu)  // its times are not reported
    for (std::string& note :
         contention_notes(contention_, threads_given(), static_cast<std::uint64_t>(threads_of_case)))
      result.note(std::move(note));
  if (const std::string text = telemetry::text_of(suspension_); !text.empty())
    result.note(record::verdict_note(record::ValidityVerdict::contended, text));
  if (telemetry_) result.telemetry = telemetry_->telemetry(step_bounds_s);
  // The settling steps are as busy as the measured ones; of the energy these have the share of the time.
  if (result.telemetry && telemetry_s_ > window_s)
    for (record::Number* energy_j : {&result.telemetry->energy_j, &result.telemetry->power_integral_j})
      if (*energy_j) **energy_j *= window_s / telemetry_s_;
  if (std::string note = telemetry_ ? record::energy_note(*result.telemetry) : ""; !note.empty())
    result.note(std::move(note));
  if (!sampler_.note().empty()) result.note(sampler_.note());
  result.validity =
      telemetry::with_suspension(telemetry::validity_of(spec.device_kind == "cpu", telemetry_ ? &*telemetry_ : nullptr,
                                                        contention_, result.device->power_limit_w),
                                 suspension_);
}

}  // namespace assay::host::worker
