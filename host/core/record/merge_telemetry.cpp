#include "record/merge_telemetry.hpp"

#include "record/merge_parts.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::record {
namespace {

// Over the ranks that report it.
std::optional<Figure> merged_figure(const std::vector<const RankPart*>& ranks,
                                    std::optional<Figure> Telemetry::*member) {
  Figure merged{0, 0, 0};
  int count = 0;
  for (const RankPart* rank : ranks) {
    if (!rank->result.telemetry || !((*rank->result.telemetry).*member)) continue;
    const Figure& own = *((*rank->result.telemetry).*member);
    merged.min = count == 0 ? own.min : std::min(merged.min, own.min);
    merged.max = count == 0 ? own.max : std::max(merged.max, own.max);
    merged.mean += own.mean;
    ++count;
  }
  if (count == 0) return std::nullopt;
  merged.mean /= count;
  return merged;
}

// The sum over the devices; those that ranks share count once.
Number of_all_devices(const std::vector<const RankPart*>& ranks, Number Telemetry::*energy) {
  std::set<std::pair<std::string, std::string>> counted;  // host, device
  Number sum_j;
  for (const RankPart* rank : ranks)
    if (rank->result.telemetry && (*rank->result.telemetry).*energy)
      if (counted.emplace(rank->host, device_id_of(*rank)).second)
        sum_j = sum_j.value_or(0) + *((*rank->result.telemetry).*energy);
  return sum_j;
}

// The mean over the ranks, where each of them reports it for every step.
std::vector<double> mean_of_steps(const std::vector<const RankPart*>& ranks) {
  std::vector<double> means;
  double count = 0;
  for (const RankPart* rank : ranks) {
    if (!rank->result.telemetry) return {};
    const std::vector<double>& own = rank->result.telemetry->step_utilisation_percent;
    if (count == 0) means.assign(own.size(), 0);
    if (own.empty() || own.size() != means.size()) return {};
    std::transform(own.begin(), own.end(), means.begin(), means.begin(), std::plus<>());
    ++count;
  }
  for (double& mean : means) mean /= count;
  return means;
}

}  // namespace

std::optional<Telemetry> merged_telemetry(const std::vector<const RankPart*>& ranks) {
  std::optional<Telemetry> merged;
  for (const RankPart* rank : ranks) {
    if (!rank->result.telemetry) continue;
    const Telemetry& own = *rank->result.telemetry;
    if (!merged) {
      merged = own;
      continue;
    }
    keep_larger(merged->samples, own.samples);
    keep_larger(merged->period_ms, own.period_ms);
    keep_larger(merged->utilisation_span_s, own.utilisation_span_s);
    keep_larger(merged->throttle, own.throttle);
    keep_larger(merged->foreign_processes, own.foreign_processes);
    keep_larger(merged->foreign_memory_mib, own.foreign_memory_mib);
  }
  if (!merged) return merged;
  for (const TelemetryFigure& figure : telemetry_figures)
    (*merged).*figure.member = merged_figure(ranks, figure.member);
  merged->step_utilisation_percent = mean_of_steps(ranks);
  merged->energy_j = of_all_devices(ranks, &Telemetry::energy_j);
  merged->power_integral_j = of_all_devices(ranks, &Telemetry::power_integral_j);
  return merged;
}

std::optional<Validity> merged_validity(const std::vector<const RankPart*>& ranks) {
  const RankPart* worst = nullptr;
  for (const RankPart* rank : ranks)
    if (rank->result.validity && (!worst || rank->result.validity->verdict > worst->result.validity->verdict))
      worst = rank;
  if (!worst) return std::nullopt;
  Validity validity = *worst->result.validity;
  const bool everywhere = std::all_of(ranks.begin(), ranks.end(), [&](const RankPart* rank) {
    return rank->result.validity && rank->result.validity->verdict == validity.verdict;
  });
  if (!everywhere) validity.text = with_rank(*worst, validity.text);
  return validity;
}

std::optional<Named<double>> telemetry_means(const CaseResult& rank) {
  if (!rank.telemetry) return std::nullopt;
  Named<double> means;
  for (const TelemetryFigure& figure : telemetry_figures)
    if (const std::optional<Figure>& own = (*rank.telemetry).*figure.member) means.emplace_back(figure.name, own->mean);
  if (rank.telemetry->energy_j) means.emplace_back("energy_j", *rank.telemetry->energy_j);
  return means.empty() ? std::nullopt : std::optional(std::move(means));
}

}  // namespace assay::host::record
