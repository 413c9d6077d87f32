#include "worker/findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"
#include "record/figures.hpp"
#include "record/verdict_note.hpp"

namespace assay::host::worker {
namespace {

constexpr double mib = 1024.0 * 1024.0;

std::vector<double> to_ms(const std::vector<double>& ns) {
  std::vector<double> ms(ns.size());
  std::transform(ns.begin(), ns.end(), ms.begin(), [](double v) { return v * 1e-6; });
  return ms;
}

record::Phase phase_of(const std::vector<double>& ns, const std::vector<double>& host_ns, double step_mean_ms,
                       double confidence) {
  return record::phase_figures(to_ms(ns), measure::summarize(to_ms(host_ns), confidence).mean, step_mean_ms,
                               confidence);
}

record::Named<double> amounts_mib(const measure::MemoryAmounts& amounts) {
  record::Named<double> out;
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (amounts.bytes[k] != 0) out.emplace_back(memory_kind_name(k), static_cast<double>(amounts.bytes[k]) / mib);
  return out;
}

// Null when the metric has no words, or none of this index.
const std::string* word_of(const plugin::MetricSpec& metric, double value) {
  if (!(value >= 0 && value < static_cast<double>(metric.words.size())) || value != std::floor(value)) return nullptr;
  return &metric.words[static_cast<std::size_t>(value)];
}

// "" where what measuring costs does not matter.
std::string note_on_instruments(const measure::LoopResult& result) {
  constexpr double noticed_share = 0.05;
  const double step_ns = measure::summarize(result.samples.step_ns).mean;
  const double share = result.instrument_ns / (step_ns * static_cast<double>(result.inner));
  if (!(share > noticed_share)) return "";
  return fmt::format(
      "timing costs {:.1f} us, {:.0f}% of a sample; [measure] inner = \"auto\" takes more steps in each sample",
      result.instrument_ns * 1e-3, share * 100);
}

std::string note_on_giving_up(const measure::LoopResult& result, const measure::StoppingRule& rule) {
  const measure::Correlation correlation = measure::correlation_of(result.samples.step_ns);
  const double error = measure::relative_error(result.samples.step_ns, correlation, rule.confidence);
  if (error > rule.relative_error)
    return fmt::format("stopped at max_steps = {} with a relative error of {:.2f}%, above the {:.2f}% asked for",
                       rule.max_steps, error * 100, rule.relative_error * 100);
  return fmt::format("stopped at max_steps = {}, worth {:.1f} independent steps; the interval of a mean wants {:.0f}",
                     rule.max_steps, correlation.effective_n, measure::fewest_independent);
}

// What to do where the threads of the case waited for processors.
std::string remedy_for_waiting(const telemetry::Contention& contention, std::int64_t threads) {
  const double taken = contention.others_share.value_or(0) * static_cast<double>(contention.processors);
  const auto left = std::max<std::int64_t>(1, std::llround(static_cast<double>(contention.processors) - taken));
  const auto busy = static_cast<std::int64_t>(contention.busy_threads.value_or(0));
  const std::int64_t fewer = std::clamp<std::int64_t>(threads - std::max<std::int64_t>(busy - left, 0), 1,
                                                      std::max<std::int64_t>(1, contention.processors));
  const std::string own = "give the run processors that nothing else uses (taskset, or a job of whole cores)";
  return fewer < threads ? fmt::format("use fewer threads ([run] threads = {}), or {}", fewer, own) : own;
}

}  // namespace

record::Device device_of(const assay_device_api& api, std::int32_t ordinal, const assay_device_info& info) {
  record::Device device;
  device.kind = api.kind;
  device.abi = fmt::format("{}.{}", api.abi_major, api.abi_minor);
  device.build = api.build;
  device.ordinal = ordinal;
  device.name = info.name;
  device.compute_units = info.compute_units;
  device.memory_total_mib = static_cast<double>(info.memory_total_bytes) / mib;
  device.libraries = info.libraries;
  device.bus_address = info.bus_address;
  device.uuid = info.uuid;
  return device;
}

telemetry::PowerReadings power_readings_of(const experiment::DeviceFacts& facts) {
  telemetry::PowerReadings power;
  if (facts.power_average_ms) power.average_s = *facts.power_average_ms * 1e-3;
  if (facts.energy_period_ms) power.energy_period_s = *facts.energy_period_ms * 1e-3;
  return power;
}

record::Memory memory_of(const measure::MemoryLedger& ledger, record::Status status,
                         const std::vector<double>& step_peaks_mib) {
  record::Memory memory;
  memory.process_peak_mib = process_peak_mib();
  // A case that was refused before it could take any memory has no figures: 0 would be none of it.
  if (status != record::Status::ok && ledger.moments().empty() && ledger.peak_total() == 0) return memory;
  memory.moments.emplace();
  for (const measure::MemoryMoment& m : ledger.moments())
    memory.moments->push_back({m.name, amounts_mib(m.current), amounts_mib(m.peak),
                               static_cast<double>(m.current.total()) / mib, static_cast<double>(m.peak_total) / mib});
  memory.peak_mib = amounts_mib(ledger.peak());
  memory.peak_total_mib = static_cast<double>(ledger.peak_total()) / mib;
  if (const measure::StepPeaks peaks = ledger.step_peaks(); peaks.steps > 0)
    memory.step_peak_mib = record::StepPeak{
        {peaks.mean() / mib, static_cast<double>(peaks.min) / mib, static_cast<double>(peaks.max) / mib},
        step_peaks_mib};
  return memory;
}

double process_peak_mib() {
  rusage usage{}, of_children{};
  getrusage(RUSAGE_SELF, &usage);
  getrusage(RUSAGE_CHILDREN, &of_children);  // the largest of those that it has waited for
  return static_cast<double>(std::max(usage.ru_maxrss, of_children.ru_maxrss)) / 1024.0;
}

record::Named<record::Phase> phases_of(const measure::Samples& samples, const measure::Samples& told_phases,
                                       const plugin::WorkloadSchema& schema, double confidence) {
  const double step_mean_ms = measure::summarize(to_ms(samples.step_ns), confidence).mean;
  record::Named<record::Phase> out;
  out.emplace_back("step", phase_of(samples.step_ns, samples.enqueue_ns, step_mean_ms, confidence));
  out.back().second.device_mean_ms = measure::summarize(to_ms(samples.step_device_ns), confidence).mean;
  const double phases_of_ms = measure::summarize(to_ms(told_phases.step_ns), confidence).mean;
  for (std::size_t i = 0; i < schema.phases.size(); ++i)
    if (told_phases.phase_seen[i])
      out.emplace_back(schema.phases[i], phase_of(told_phases.phases[i].device_ns, told_phases.phases[i].host_ns,
                                                  phases_of_ms, confidence));
  return out;
}

record::Sampling sampling_of(const measure::LoopResult& result, const measure::MeasurePlan& plan) {
  record::Sampling sampling;
  sampling.rule = plan.until ? "until" : plan.steps ? "steps" : "default";
  sampling.settling_steps = result.settling_steps;
  if (result.unrecorded_steps > 0) sampling.unrecorded_steps = result.unrecorded_steps;
  sampling.mode = plan.sync && result.inner == 1 ? "waited" : "back to back";
  sampling.inner = result.inner;
  sampling.is_cold = plan.cold_cache;
  sampling.instrument_us = result.instrument_ns * 1e-3;
  return sampling;
}

record::Named<record::StepMetric> step_metrics_of(const measure::Samples& samples, const plugin::WorkloadSchema& schema,
                                                  double confidence) {
  record::Named<record::StepMetric> out;
  for (std::size_t i = 0; i < schema.metrics.size(); ++i) {
    const plugin::MetricSpec& metric = schema.metrics[i];
    const std::vector<double>& reported = samples.metrics[i];
    if (!metric.per_step || reported.empty()) continue;
    record::StepMetric figures;
    figures.unit = metric.unit;
    figures.direction = metric.direction;
    record::set_metric_figures(figures, reported, confidence);
    out.emplace_back(metric.name, std::move(figures));
  }
  return out;
}

record::Named<record::CaseMetric> case_metrics_of(const std::vector<std::optional<double>>& values,
                                                  const plugin::WorkloadSchema& schema) {
  record::Named<record::CaseMetric> out;
  for (std::size_t i = 0; i < schema.metrics.size(); ++i) {
    const plugin::MetricSpec& metric = schema.metrics[i];
    if (metric.per_step || !values[i]) continue;
    record::CaseMetric figure{*values[i], metric.unit, metric.direction, std::nullopt};
    if (const std::string* word = word_of(metric, *values[i])) figure.word = *word;
    out.emplace_back(metric.name, std::move(figure));
  }
  return out;
}

std::string word_mistake(const std::vector<std::optional<double>>& values, const plugin::WorkloadSchema& schema) {
  for (std::size_t i = 0; i < schema.metrics.size(); ++i) {
    const plugin::MetricSpec& metric = schema.metrics[i];
    if (!metric.words.empty() && values[i] && !word_of(metric, *values[i]))
      return fmt::format("the metric '{}' is {}, which is no index into its {} words ({})", metric.name, *values[i],
                         metric.words.size(), fmt::join(metric.words, ", "));
  }
  return "";
}

record::ProcessorShares processor_shares_of(const telemetry::Contention& contention) {
  return {
      contention.window_s,    contention.others_share,       contention.steal_share,         contention.wait_share,
      contention.stall_share, contention.foreign_wait_share, contention.foreign_stall_share, contention.busy_threads};
}

std::vector<std::string> metric_notes(const record::CaseResult& result) {
  std::vector<std::string> notes;
  if (result.metrics)
    for (const auto& [name, metric] : *result.metrics)
      if (!std::isfinite(metric.value)) notes.push_back(fmt::format("the metric '{}' is not a finite number", name));
  if (result.step_metrics)
    for (const auto& [name, metric] : *result.step_metrics) {
      const auto& samples = metric.samples;
      const auto wrong = std::count_if(samples.begin(), samples.end(), [](double v) { return !std::isfinite(v); });
      if (wrong > 0)
        notes.push_back(
            fmt::format("the metric '{}' is not a finite number in {} of {} steps", name, wrong, samples.size()));
    }
  return notes;
}

std::vector<std::string> contention_notes(const telemetry::Contention& contention, std::int64_t threads,
                                          std::uint64_t threads_of_case) {
  std::vector<std::string> notes;
  const double stalled = contention.stall_share.value_or(0);
  const double stalled_by_others = contention.foreign_stall_share.value_or(stalled);
  const double others = contention.others_share.value_or(0);
  const char* processors = contention.processors == 1 ? "processor" : "processors";
  const auto contended = [&notes](const std::string& reason) {
    notes.push_back(record::verdict_note(record::ValidityVerdict::contended, reason));
  };
  const bool threads_waited = stalled_by_others > telemetry::contended_share;
  if (others > telemetry::contended_share && !threads_waited)
    contended(fmt::format("other processes took {:.0f}% of the processors while this case was measured", others * 100));
  if (contention.steal_share && *contention.steal_share > telemetry::contended_share)
    contended(
        fmt::format("the hypervisor gave {:.0f}% of the processors to other guests", *contention.steal_share * 100));
  if (threads_waited)
    contended(fmt::format(
        "its threads waited for other processes{} in {:.0f}% of the measured time: {} busy {} "
        "on {} {}; {}",
        others > telemetry::contended_share ? fmt::format(", which took {:.0f}% of the processors,", others * 100) : "",
        stalled_by_others * 100, contention.busy_threads.value_or(0),
        contention.busy_threads == 1u ? "thread" : "threads", contention.processors, processors,
        remedy_for_waiting(contention, threads)));
  else if (stalled > telemetry::contended_share && threads_of_case > contention.processors)
    notes.push_back(
        fmt::format("the case itself keeps {} threads busy on {} {}, so they wait for one another; with fewer "
                    "ranks or threads each would have a processor",
                    threads_of_case, contention.processors, processors));
  return notes;
}

std::vector<std::string> notes_on(const measure::LoopResult& result, const CaseSpec& spec,
                                  const measure::Recorder& recorder, std::int64_t allocations_while_measuring,
                                  bool phases_apart) {
  std::vector<std::string> notes = record::steadiness_notes(to_ms(result.samples.step_ns));
  if (result.verdict == measure::Verdict::gave_up) notes.push_back(note_on_giving_up(result, *spec.plan().until));
  if (!spec.plan().sync)
    notes.emplace_back("sync = false: the step's time is the device's own, without the host's wait");
  if (result.inner > 1)
    notes.push_back(
        fmt::format("each sample is {} steps back to back: its time is theirs divided by their number, its "
                    "metrics are means, and no phase is timed{}",
                    result.inner, recorder.leaves_out_captured() ? " in it" : ""));
  if (spec.plan().cold_cache) notes.emplace_back("cold_cache = true: the caches were flushed before each step");
  if (std::string note = note_on_instruments(result); !note.empty()) notes.push_back(std::move(note));
  if (recorder.captured_unread() && !phases_apart)
    notes.emplace_back(
        "sync = false: the phases of a captured step are not timed, its marks are one set for all steps");
  const bool starts_cold = !spec.values.measure.prepare;
  if (starts_cold && spec.plan().warmup == 0)
    notes.emplace_back("prepare = false: the first measured step took its memory and found its kernels");
  if (allocations_while_measuring > 0 && !starts_cold)
    notes.push_back(fmt::format("the workload took device memory {} times inside the measured window",
                                allocations_while_measuring));
  if (!recorder.misuse().empty()) notes.push_back("phase or metric misuse by the workload: " + recorder.misuse());
  return notes;
}

std::vector<std::string> overdrawn_memory(const measure::MemoryLedger& ledger) {
  std::vector<std::string> notes;
  const measure::MemoryAmounts lowest = ledger.lowest();
  for (std::size_t kind = 0; kind < memory_kind_count; ++kind)
    if (lowest.bytes[kind] < 0)
      notes.push_back(fmt::format(
          "the workload has freed {:.1f} MiB more of {} than it had taken: figures of its memory are too small",
          static_cast<double>(-lowest.bytes[kind]) / 1048576, memory_kind_name(kind)));
  return notes;
}

}  // namespace assay::host::worker
