#include "record/efficiency.hpp"

#include "record/device_peaks.hpp"
#include "record/merge_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace assay::host::record {
namespace {

bool is_positive(const Number& number) { return number && std::isfinite(*number) && *number > 0; }

Number ratio(const Number& rate, const Number& peak) {
  return is_positive(rate) && is_positive(peak) ? Number(*rate / *peak) : Number();
}

// The least time that the step's work takes at the peak, over the time that it took. A part of the work whose peak is
// unknown may be what takes longest: then nobody knows.
Number bound_percent(const Rates& rates, const Peak& peak) {
  const Number flops = ratio(rates.gflop_per_s, peak.gflop_per_s), bytes = ratio(rates.gbytes_per_s, peak.gbytes_per_s);
  if (is_positive(rates.gflop_per_s) != flops.has_value() || is_positive(rates.gbytes_per_s) != bytes.has_value())
    return {};
  if (!flops && !bytes) return {};
  return 100 * std::max(flops.value_or(0), bytes.value_or(0));
}

// Adds `more`, or forgets a figure that one of the two does not have.
void add(Peak& sum, const Peak& more) {
  for (Number Peak::*member : {&Peak::gflop_per_s, &Peak::gbytes_per_s})
    sum.*member = sum.*member && more.*member ? Number(*(sum.*member) + *(more.*member)) : Number();
}

void scale(Peak& peak, double factor) {
  for (Number Peak::*member : {&Peak::gflop_per_s, &Peak::gbytes_per_s})
    if (peak.*member) *(peak.*member) *= factor;
}

// A peak that the steps themselves exceed does not count. A few percent are the noise of both.
constexpr double most_of_a_measured_peak = 1.05;
// No neighbour and no clock makes a peak so much too small for so long.
constexpr double most_of_a_disturbed_peak = 2;

// A peak that the steps exceed is left out, with the reason.
void leave_out(const Peak& peak, double rate, CaseResult& result) {
  const double share = rate / *peak.gflop_per_s;
  if (share <= most_of_a_disturbed_peak)
    return result.note(
        fmt::format("the peak measured after the steps, {:.4g} GFLOP/s, is below the steps' {:.4g} GFLOP/s and is left "
                    "out: other programs took the processors, or the clocks had dropped",
                    *peak.gflop_per_s, rate));
  std::string text = fmt::format(
      "suspicious: the steps' {:.4g} GFLOP/s are {:.3g} times the peak of {:.4g} GFLOP/s measured after them, more "
      "than other programs or dropped clocks explain. A step may have skipped work, or the workload states too many "
      "operations. Find the cause before you rely on the times",
      rate, share, *peak.gflop_per_s);
  if (result.validity) {
    result.validity->verdict = std::max(result.validity->verdict, ValidityVerdict::unknown);
    result.validity->text = text + "; " + result.validity->text;
  }
  result.note(std::move(text));
}

void set_figures(Efficiency& efficiency, CaseResult& result, double items_of_a_step) {
  if (const auto& rates = result.rates) {
    if (const auto& peak = efficiency.stated) {
      efficiency.mfu = ratio(rates->gflop_per_s, peak->gflop_per_s);
      efficiency.bound_percent = bound_percent(*rates, *peak);
    }
    if (const auto& peak = efficiency.measured;
        peak && ratio(rates->gflop_per_s, peak->gflop_per_s).value_or(0) > most_of_a_measured_peak) {
      leave_out(*peak, *rates->gflop_per_s, result);
      efficiency.measured.reset();
    }
    if (const auto& peak = efficiency.measured) {
      efficiency.mfu_measured = ratio(rates->gflop_per_s, peak->gflop_per_s);
      efficiency.bound_percent_measured = bound_percent(*rates, *peak);
    }
  }
  const Phase* step = step_of(result);
  if (!step || !step->n || items_of_a_step <= 0 || !result.telemetry || !is_positive(result.telemetry->energy_j))
    return;
  const Sampling sampling = result.sampling.value_or(Sampling{});
  const std::int64_t steps_of_window = *step->n * sampling.inner.value_or(1) + sampling.unrecorded_steps.value_or(0);
  const double items = items_of_a_step * static_cast<double>(steps_of_window);
  efficiency.j_per_item = *result.telemetry->energy_j / items;
  efficiency.items_per_j = items / *result.telemetry->energy_j;
}

void keep_if_any(CaseResult& result, Efficiency efficiency) {
  const bool is_any = efficiency.stated || efficiency.measured || efficiency.j_per_item;
  result.efficiency = is_any ? std::optional(std::move(efficiency)) : std::nullopt;
}

std::optional<Peak> stated_peak_of(const CaseResult& result) {
  return result.device ? stated_peak(result.device->name, result.work ? result.work->arithmetic : std::string())
                       : std::nullopt;
}

}  // namespace

void set_efficiency(CaseResult& result) {
  Efficiency efficiency;
  if (result.efficiency) efficiency.measured = result.efficiency->measured;
  efficiency.stated = stated_peak_of(result);
  set_figures(efficiency, result, result.work ? static_cast<double>(result.work->items) : 0);
  keep_if_any(result, std::move(efficiency));
}

void set_efficiency(CaseResult& merged, const std::vector<const RankPart*>& ranks) {
  Efficiency efficiency;
  double items = 0;
  std::set<std::pair<std::string, std::string>> counted;  // host, device
  bool all_stated = true, all_measured = true;
  for (const RankPart* rank : ranks) {
    const CaseResult& own = rank->result;
    if (own.work) items += static_cast<double>(own.work->items);
    if (counted.emplace(rank->host, device_id_of(*rank)).second) {
      const std::optional<Peak> stated = stated_peak_of(own);
      all_stated = all_stated && stated;
      if (stated && efficiency.stated) add(*efficiency.stated, *stated);
      if (!efficiency.stated) efficiency.stated = stated;
    }
    // Ranks that share a device, or processors, have measured it beside one another: each its part.
    const std::optional<Peak> measured = own.efficiency ? own.efficiency->measured : std::nullopt;
    all_measured = all_measured && measured;
    if (measured && efficiency.measured) add(*efficiency.measured, *measured);
    if (!efficiency.measured) efficiency.measured = measured;
  }
  if (!all_stated) efficiency.stated.reset();
  if (!all_measured) efficiency.measured.reset();
  const double devices = static_cast<double>(counted.size());
  if (efficiency.stated && devices > 1) efficiency.stated->text += fmt::format(", of each of {} devices", devices);
  if (merged.copies)
    for (std::optional<Peak>* peak : {&efficiency.stated, &efficiency.measured})
      if (*peak) scale(**peak, 1 / static_cast<double>(ranks.size()));
  set_figures(efficiency, merged, items);
  keep_if_any(merged, std::move(efficiency));
}

void set_communication_tax(CaseResult& result) {
  const Phase* step = step_of(result);
  if (result.silent && step) {
    const Number over = ratio(step->mean_ms, result.silent->step_mean_ms);
    result.silent->communication_tax = over ? Number(*over - 1) : Number();
  }
}

void set_communication_tax(CaseResult& merged, const std::vector<const RankPart*>& ranks) {
  merged.silent.reset();
  for (const RankPart* rank : ranks) {
    const std::optional<SilentPass>& own = rank->result.silent;
    if (!own) {
      merged.silent.reset();
      return;
    }
    if (!merged.silent || own->step_mean_ms > merged.silent->step_mean_ms) merged.silent = own;
  }
  set_communication_tax(merged);
}

std::string energy_note(const Telemetry& telemetry) {
  constexpr double most_apart = 0.05;
  if (!is_positive(telemetry.energy_j) || !is_positive(telemetry.power_integral_j)) return "";
  const double apart = *telemetry.power_integral_j / *telemetry.energy_j - 1;
  if (std::abs(apart) <= most_apart) return "";
  return fmt::format(
      "energy: the device's counter says {:.4g} J, its samples of power {:.4g} J ({:+.0f}%): do not rely "
      "on figures per joule",
      *telemetry.energy_j, *telemetry.power_integral_j, apart * 100);
}

}  // namespace assay::host::record
