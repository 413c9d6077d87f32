#include "report/case_data.hpp"

#include "common/text_format.hpp"
#include "experiment/units.hpp"
#include "report/thinning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace assay::host::report {
namespace {

constexpr std::size_t histogram_bins = 24;

Json numbers(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push_back(rounded(value));
  return out;
}

Json steps_json(const record::Phase& step, std::size_t samples) {
  Json out{{"n", step.n.value_or(static_cast<std::int64_t>(step.samples_ms.size()))},
           {"mean", rounded(step.mean_ms)},
           {"low", rounded(step.ci_low_ms)},
           {"high", rounded(step.ci_high_ms)}};
  if (step.samples_ms.empty()) return out;
  const Thinned kept = thinned(step.samples_ms, samples);
  out["ms"] = numbers(kept.values);
  if (!kept.places.empty()) out["at"] = kept.places;
  const Distribution spread = distribution_of(step.samples_ms, histogram_bins);
  if (spread.counts.empty()) return out;
  out["quantiles"] = numbers({spread.quantiles.begin(), spread.quantiles.end()});
  out["counts"] = spread.counts;
  return out;
}

// The workload's phases; the step stands elsewhere.
Json phases_json(const record::Named<record::Phase>& phases, NameList& names) {
  Json out = Json::array();
  for (const auto& [name, phase] : phases)
    if (name != "step" && phase.mean_ms) out.push_back({names.place_of(name), rounded(phase.mean_ms)});
  return out;
}

// What the memory of a case must stay below: the limit of its processes, or else all that the device has.
Json limit_json(const record::CaseRecord& record) {
  if (const Value* limit = record::find(record.identity.settings, "run.memory_limit"))
    if (const auto bytes = experiment::parse_bytes(to_text(*limit)))
      return {{"mib", rounded(static_cast<double>(*bytes) / (1024.0 * 1024.0))}, {"of", "process"}};
  const auto& device = record.result.device;
  if (device && device->memory_total_mib) return {{"mib", rounded(device->memory_total_mib)}, {"of", "device"}};
  return nullptr;
}

Json memory_json(const record::CaseRecord& record, NameList& names) {
  const record::Memory& memory = *record.result.memory;
  Json kinds = Json::array();
  if (memory.peak_mib)
    for (const auto& [kind, mib] : *memory.peak_mib)
      if (mib > 0) kinds.push_back({names.place_of(kind), rounded(mib)});
  Json out{{"kinds", std::move(kinds)}};
  if (memory.peak_total_mib) out["total"] = rounded(memory.peak_total_mib);
  if (memory.process_peak_mib) out["process"] = rounded(memory.process_peak_mib);
  if (memory.device_used_mib) out["device"] = rounded(memory.device_used_mib);
  if (Json limit = limit_json(record); !limit.is_null()) out["limit"] = std::move(limit);
  return out;
}

std::vector<std::string> rates_of(const record::Peak& peak) {
  std::vector<std::string> rates;
  if (peak.gflop_per_s) rates.push_back(significant_digits(*peak.gflop_per_s, 4) + " GFLOP/s");
  if (peak.gbytes_per_s) rates.push_back(significant_digits(*peak.gbytes_per_s, 4) + " GB/s");
  return rates;
}

// The kernels that take longest of those that have both figures: name, GFLOP/s, operations for each byte.
Json counted_kernels_json(const record::CounterProfile& profile) {
  constexpr std::size_t most_kernels = 40;
  Json kernels = Json::array();
  for (const record::CountedKernel& kernel : profile.kernels) {
    if (!(kernel.flops.value_or(0) > 0) || !(kernel.dram_bytes.value_or(0) > 0) || !(kernel.time_us > 0)) continue;
    kernels.push_back(
        {kernel.name, rounded(*kernel.flops / kernel.time_us * 1e-3), rounded(*kernel.flops / *kernel.dram_bytes)});
    if (kernels.size() == most_kernels) break;
  }
  return kernels;
}

// The step's rates, or the kernels' in a case that Nsight Compute has counted, which has no rate of its step.
Json roofline_json(const record::CaseResult& result, SharedNames& names) {
  Json out = Json::object();
  if (result.ncu) {
    out["kernels"] = counted_kernels_json(*result.ncu);
  } else {
    out["gflop_per_s"] = rounded(result.rates->gflop_per_s);
    if (result.work->bytes > 0)
      out["flops_per_byte"] =
          rounded(static_cast<double>(result.work->flops) / static_cast<double>(result.work->bytes));
  }
  Json peaks = Json::array();
  const auto add = [&](const std::optional<record::Peak>& peak, bool is_stated) {
    if (!peak) return;
    const std::string name =
        fmt::format("{}: {} ({})", is_stated ? "stated" : "measured", peak->text, fmt::join(rates_of(*peak), ", "));
    const std::size_t place = names.peaks.place_of(name);
    if (place == names.peak_figures.size()) {
      names.peak_figures.push_back(*peak);
      names.peak_is_stated.push_back(is_stated);
    }
    peaks.push_back(place);
  };
  if (result.efficiency) {
    add(result.efficiency->stated, true);
    add(result.efficiency->measured, false);
  }
  out["peaks"] = std::move(peaks);
  return out;
}

Json telemetry_json(const record::CaseResult& result, NameList& names) {
  const record::Telemetry& telemetry = *result.telemetry;
  Json figures = Json::array();
  const auto add = [&](const char* name, const std::optional<record::Figure>& figure) {
    if (!figure) return;
    Json shown{names.place_of(name), rounded(figure->mean)};
    if (figure->min != figure->max) shown.insert(shown.end(), {rounded(figure->min), rounded(figure->max)});
    figures.push_back(std::move(shown));
  };
  add("GPU utilisation, %", telemetry.gpu_utilisation_percent);
  add("CPU utilisation, %", telemetry.cpu_utilisation_percent);
  add("SM clock, MHz", telemetry.sm_clock_mhz);
  add("memory clock, MHz", telemetry.memory_clock_mhz);
  add("power, W", telemetry.power_w);
  add("temperature, °C", telemetry.temperature_c);
  Json out{{"figures", std::move(figures)}};
  if (telemetry.samples) out["samples"] = *telemetry.samples;
  if (telemetry.energy_j) out["energy_j"] = rounded(telemetry.energy_j);
  if (telemetry.throttle && !telemetry.throttle->empty()) {
    Json throttle = Json::array();
    for (const auto& [reason, share] : *telemetry.throttle) throttle.push_back({reason, rounded(share)});
    out["throttle"] = std::move(throttle);
  }
  if (result.device && result.device->power_limit_w) out["power_limit_w"] = rounded(result.device->power_limit_w);
  if (result.device && result.device->max_sm_clock_mhz)
    out["max_sm_clock_mhz"] = rounded(result.device->max_sm_clock_mhz);
  return out;
}

// The part of a rank's step in which it stood still for other ranks, the transfers included. Where a workload does not
// report it, it is the phases that wait for nothing but ranks.
std::optional<double> wait_ms(const record::RankEntry& rank) {
  if (const Value* exposed = rank.metrics ? record::find(*rank.metrics, "exposed_ms") : nullptr)
    if (const double* ms = std::get_if<double>(exposed)) return *ms;
  std::optional<double> wait;
  for (const char* name : {"communication_wait", "gradient_wait", "parameter_wait"})
    if (const double* ms = rank.phases ? record::find(*rank.phases, name) : nullptr) wait = wait.value_or(0) + *ms;
  return wait;
}

// Ranks whose steps end together take as long as each other, whoever is late: it is the one that waits least.
void add_waits(const record::CaseResult& result, Json& out) {
  const record::RankEntry* least = nullptr;
  for (std::size_t i = 0; i < result.by_rank.size(); ++i) {
    const record::RankEntry& rank = result.by_rank[i];
    const std::optional<double> wait = wait_ms(rank);
    if (!wait || !std::isfinite(*wait)) return;
    out["list"][i]["wait"] = rounded(*wait);
    if (!least || *wait < *wait_ms(*least)) least = &rank;
  }
  if (least) out["waited_for"] = least->rank;
}

Json ranks_json(const record::CaseResult& result) {
  Json list = Json::array();
  for (const record::RankEntry& rank : result.by_rank) {
    Json entry{{"rank", rank.rank}, {"host", rank.host}};
    if (rank.step_mean_ms)
      entry["ms"] = {rounded(rank.step_mean_ms), rounded(rank.step_min_ms), rounded(rank.step_max_ms)};
    if (rank.status) entry["status"] = record::name_of(*rank.status);
    if (!rank.reason.empty()) entry["reason"] = one_line(rank.reason);
    list.push_back(std::move(entry));
  }
  Json out{{"list", std::move(list)}};
  if (result.straggler) out["straggler"] = {result.straggler->rank, rounded(result.straggler->share)};
  if (result.spread) out["spread"] = rounded(result.spread);
  add_waits(result, out);
  return out;
}

Json failure_json(const record::CaseResult& result) {
  Json out{{"reason", result.reason.empty() ? "no reason was given" : result.reason}};
  std::vector<std::string> where;
  if (result.stage && *result.stage != Stage::done) where.push_back(fmt::format("stage {}", name_of(*result.stage)));
  if (!result.phase.empty()) where.push_back(fmt::format("phase {}", one_line(result.phase)));
  if (result.step) where.push_back(fmt::format("step {}", *result.step + 1));
  if (result.rank) where.push_back(fmt::format("rank {}", *result.rank));
  out["where"] = where;
  if (!result.log_tail.empty()) out["log"] = result.log_tail;
  return out;
}

}  // namespace

std::size_t NameList::place_of(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  names_.push_back(name);
  return names_.size() - 1;
}

Json case_json(const record::CaseRecord& record, std::size_t samples, SharedNames& names) {
  const record::CaseResult& result = record.result;
  Json out{{"case", record.identity.index + 1}, {"status", result.status_text()}};
  if (record.identity.repeat) out["repeat"] = *record.identity.repeat;
  if (result.verify) out["verify"] = record::name_of(result.verify->status);
  if (result.validity) out["validity"] = record::name_of(result.validity->verdict);
  Json axes = Json::array();
  for (const auto& [key, value] : record.identity.axes) axes.push_back({key, one_line(to_text(value))});
  out["axes"] = std::move(axes);
  if (!result.is_ok()) out["failure"] = failure_json(result);
  if (const record::Phase* step = record::step_of(result)) {
    out["steps"] = steps_json(*step, samples);
    if (Json phases = phases_json(*result.phases, names.phases); !phases.empty()) {
      out["phases"] = std::move(phases);
      if (result.phase_pass) out["phasesOf"] = rounded(result.phase_pass->step_mean_ms);
    }
  }
  if (result.memory) out["memory"] = memory_json(record, names.memory_kinds);
  if (result.ncu || (result.work && result.rates && result.work->flops > 0))
    out["roofline"] = roofline_json(result, names);
  if (result.telemetry) out["telemetry"] = telemetry_json(result, names.telemetry);
  if (result.by_rank.size() > 1) out["ranks"] = ranks_json(result);
  return out;
}

}  // namespace assay::host::report
