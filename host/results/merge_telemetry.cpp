#include "results/merge_telemetry.hpp"

#include "results/rank_parts.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace assay::host {
namespace {

bool is_figure(const Record& value) { return value.is_object() && value.contains("mean"); }

// Over the ranks that tell it.
Record merged_figure(const std::vector<const RankPart*>& ranks, const std::string& name) {
  double sum = 0, least = 0, most = 0;
  int count = 0;
  for (const RankPart* rank : ranks) {
    const Record& own = value_at(value_at(rank->part, "telemetry"), name);
    if (!is_figure(own)) continue;
    const double min = own.value("min", 0.0), max = own.value("max", 0.0);
    least = count == 0 ? min : std::min(least, min);
    most = count == 0 ? max : std::max(most, max);
    sum += own.value("mean", 0.0);
    ++count;
  }
  return {{"mean", sum / count}, {"min", least}, {"max", most}};
}

double energy_of_all_devices(const std::vector<const RankPart*>& ranks) {
  std::set<std::pair<std::string, std::string>> counted;  // host, device
  double sum_j = 0;
  for (const RankPart* rank : ranks) {
    const Record& own = value_at(value_at(rank->part, "telemetry"), "energy_j");
    const std::string device =
        rank->device_id.empty() ? value_at(value_at(rank->part, "device"), "ordinal").dump() : rank->device_id;
    if (own.is_number() && counted.emplace(rank->host, device).second) sum_j += own.get<double>();
  }
  return sum_j;
}

// The worse the later.
std::size_t severity(const Record& validity) {
  constexpr std::array verdicts{"valid", "unknown", "throttled", "contended"};
  const auto found = std::find(verdicts.begin(), verdicts.end(), validity.value("verdict", ""));
  return static_cast<std::size_t>(found - verdicts.begin());
}

}  // namespace

Record merged_telemetry(const std::vector<const RankPart*>& ranks) {
  Record out = largest_of(ranks, "telemetry");
  if (out.is_null()) return out;
  for (const std::string& name : names_in(ranks, "telemetry"))
    if (is_figure(out[name])) out[name] = merged_figure(ranks, name);
  if (out.contains("energy_j")) out["energy_j"] = energy_of_all_devices(ranks);
  return out;
}

Record merged_validity(const std::vector<const RankPart*>& ranks) {
  const RankPart* worst = nullptr;
  for (const RankPart* rank : ranks) {
    const Record& own = value_at(rank->part, "validity");
    if (own.is_null()) continue;
    if (!worst || severity(own) > severity(worst->part["validity"])) worst = rank;
  }
  if (!worst) return {};
  Record validity = worst->part["validity"];
  const bool everywhere = std::all_of(ranks.begin(), ranks.end(), [&](const RankPart* rank) {
    return value_at(value_at(rank->part, "validity"), "verdict") == validity["verdict"];
  });
  if (!everywhere) validity["text"] = with_rank(*worst, validity.value("text", ""));
  return validity;
}

Record telemetry_means(const RankPart& rank) {
  Record means = Record::object();
  for (const auto& [name, value] : value_at(rank.part, "telemetry").items())
    if (is_figure(value)) means[name] = value["mean"];
  if (const Record& energy = value_at(value_at(rank.part, "telemetry"), "energy_j"); !energy.is_null())
    means["energy_j"] = energy;
  return means;
}

}  // namespace assay::host
