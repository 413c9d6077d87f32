#include "worker/case_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "measure/figures.hpp"
#include "measure/statistics.hpp"

namespace assay::host {
namespace {

using json = nlohmann::ordered_json;

constexpr double mib = 1024.0 * 1024.0;

std::vector<double> to_ms(const std::vector<double>& ns) {
  std::vector<double> ms(ns.size());
  std::transform(ns.begin(), ns.end(), ms.begin(), [](double v) { return v * 1e-6; });
  return ms;
}

json phase_record(const std::vector<double>& ns, const std::vector<double>& host_ns, double step_mean_ms,
                  double confidence) {
  return phase_figures(to_ms(ns), summarize(to_ms(host_ns), confidence).mean, step_mean_ms, confidence);
}

json amounts_record(const MemoryAmounts& amounts) {
  json out = json::object();
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (amounts.bytes[k] != 0) out[memory_kind_name(k)] = static_cast<double>(amounts.bytes[k]) / mib;
  return out;
}

// Null when the metric has no words, or none of this index.
const std::string* word_of(const MetricSpec& metric, double value) {
  if (!(value >= 0 && value < static_cast<double>(metric.words.size())) || value != std::floor(value)) return nullptr;
  return &metric.words[static_cast<std::size_t>(value)];
}

}  // namespace

json device_record(const char* kind, std::int32_t ordinal, const assay_device_info& info) {
  json record = {{"kind", kind},
                 {"ordinal", ordinal},
                 {"name", info.name},
                 {"compute_units", info.compute_units},
                 {"memory_total_mib", static_cast<double>(info.memory_total_bytes) / mib},
                 {"libraries", info.libraries}};
  if (info.bus_address[0] != '\0') record["bus_address"] = info.bus_address;
  return record;
}

json memory_record(const MemoryLedger& ledger) {
  json moments = json::array();
  for (const MemoryMoment& m : ledger.moments())
    moments.push_back({{"name", m.name},
                       {"current_mib", amounts_record(m.current)},
                       {"peak_mib", amounts_record(m.peak)},
                       {"current_total_mib", static_cast<double>(m.current.total()) / mib},
                       {"peak_total_mib", static_cast<double>(m.peak_total) / mib}});
  return {{"moments", std::move(moments)},
          {"peak_mib", amounts_record(ledger.peak())},
          {"peak_total_mib", static_cast<double>(ledger.peak_total()) / mib}};
}

json phases_record(const Samples& samples, const WorkloadSchema& schema, double confidence) {
  const double step_mean_ms = summarize(to_ms(samples.step_ns), confidence).mean;
  json out = json::object();
  out["step"] = phase_record(samples.step_ns, samples.enqueue_ns, step_mean_ms, confidence);
  out["step"]["device_mean_ms"] = summarize(to_ms(samples.step_device_ns), confidence).mean;
  for (std::size_t i = 0; i < schema.phases.size(); ++i)
    if (samples.phase_seen[i])
      out[schema.phases[i]] =
          phase_record(samples.phases[i].device_ns, samples.phases[i].host_ns, step_mean_ms, confidence);
  return out;
}

json step_metrics_record(const Samples& samples, const WorkloadSchema& schema, double confidence) {
  json out = json::object();
  for (std::size_t i = 0; i < schema.metrics.size(); ++i) {
    const MetricSpec& metric = schema.metrics[i];
    if (!metric.per_step) continue;
    const std::vector<double>& reported = samples.metrics[i];
    if (reported.empty()) continue;
    out[metric.name] = {{"unit", metric.unit}, {"direction", static_cast<int>(metric.direction)}};
    out[metric.name].update(metric_figures(reported, confidence));
  }
  return out;
}

json case_metrics_record(const std::vector<std::optional<double>>& values, const WorkloadSchema& schema) {
  json out = json::object();
  for (std::size_t i = 0; i < schema.metrics.size(); ++i) {
    const MetricSpec& metric = schema.metrics[i];
    if (metric.per_step || !values[i]) continue;
    json value = *values[i];
    // Counts stay counts: 128625408, not 128625408.0.
    if (std::abs(*values[i]) < 9e15 && *values[i] == std::floor(*values[i]))
      value = static_cast<std::int64_t>(*values[i]);
    out[metric.name] = {{"value", value}, {"unit", metric.unit}, {"direction", static_cast<int>(metric.direction)}};
    if (const std::string* word = word_of(metric, *values[i])) out[metric.name]["word"] = *word;
  }
  return out;
}

std::string word_mistake(const std::vector<std::optional<double>>& values, const WorkloadSchema& schema) {
  for (std::size_t i = 0; i < schema.metrics.size(); ++i) {
    const MetricSpec& metric = schema.metrics[i];
    if (!metric.words.empty() && values[i] && !word_of(metric, *values[i]))
      return fmt::format("the metric '{}' is {}, which is no index into its {} words ({})", metric.name, *values[i],
                         metric.words.size(), fmt::join(metric.words, ", "));
  }
  return "";
}

json work_record(const assay_work& work, const std::string& item_unit) {
  return {{"flops", work.flops}, {"bytes", work.bytes}, {"items", work.items}, {"item_unit", item_unit}};
}

json rates_record(const assay_work& work, double step_mean_ms) {
  return rate_figures(static_cast<double>(work.flops), static_cast<double>(work.bytes), static_cast<double>(work.items),
                      step_mean_ms);
}

std::vector<std::string> metric_notes(const json& metrics, const json& step_metrics) {
  std::vector<std::string> notes;
  for (const auto& [name, metric] : metrics.items())
    if (!metric["value"].is_number() || !std::isfinite(metric["value"].get<double>()))
      notes.push_back(fmt::format("the metric '{}' is not a finite number", name));
  for (const auto& [name, metric] : step_metrics.items()) {
    const auto& samples = metric["samples"];
    const auto wrong =
        std::count_if(samples.begin(), samples.end(), [](const json& v) { return !std::isfinite(v.get<double>()); });
    if (wrong > 0)
      notes.push_back(
          fmt::format("the metric '{}' is not a finite number in {} of {} steps", name, wrong, samples.size()));
  }
  return notes;
}

json contention_record(const Contention& contention) {
  json out = {{"window_s", contention.window_s}};
  if (contention.others_share) out["others_share"] = *contention.others_share;
  if (contention.steal_share) out["steal_share"] = *contention.steal_share;
  if (contention.wait_share) out["wait_share"] = *contention.wait_share;
  return out;
}

std::vector<std::string> contention_notes(const Contention& contention) {
  std::vector<std::string> notes;
  if (contention.others_share && *contention.others_share > contended_share)
    notes.push_back(
        fmt::format("contended: other processes took {:.0f}% of the processors while this case was measured",
                    *contention.others_share * 100));
  if (contention.steal_share && *contention.steal_share > contended_share)
    notes.push_back(fmt::format("contended: the hypervisor gave {:.0f}% of the processors to other guests",
                                *contention.steal_share * 100));
  return notes;
}

std::vector<std::string> notes_on(const LoopResult& result, const CaseSpec& spec, const Recorder& recorder,
                                  std::int64_t allocations_while_measuring) {
  std::vector<std::string> notes = steadiness_notes(to_ms(result.samples.step_ns));
  if (result.verdict == Verdict::gave_up)
    notes.push_back(fmt::format(
        "stopped at max_steps = {} with a relative error of {:.2f}%, above the {:.2f}% asked for",
        spec.plan().until->max_steps, relative_error(result.samples.step_ns, spec.plan().until->confidence) * 100,
        spec.plan().until->relative_error * 100));
  if (!spec.plan().sync)
    notes.emplace_back("sync = false: the step's time is the device's own, without the host's wait");
  if (recorder.captured_unread())
    notes.emplace_back(
        "sync = false: the phases of a captured step are not timed, its marks are one set for all steps");
  if (allocations_while_measuring > 0)
    notes.push_back(fmt::format("the workload took device memory {} times inside the measured window",
                                allocations_while_measuring));
  if (!recorder.misuse().empty()) notes.push_back("phase or metric misuse by the workload: " + recorder.misuse());
  return notes;
}

}  // namespace assay::host
