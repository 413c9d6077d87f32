#include "plan/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::host::plan {
namespace {

constexpr double usual_seconds_an_operation = 2e-6;  // where no record says
constexpr double pull = 2e-3;                        // to the common factor, against squares of relative errors

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A setting that the experiment's table knows by its dotted name.
template <class T>
void take(const record::Named<Value>& settings, const char* name, T& into) {
  if (const Value* value = record::find(settings, name))
    if (const T* read = std::get_if<T>(value)) into = *read;
}

}  // namespace

std::vector<EarlierCase> earlier_cases(const std::vector<record::CaseRecord>& records,
                                       const plugin::WorkloadSchema& schema, const std::string& device_name) {
  std::vector<EarlierCase> cases;
  for (const record::CaseRecord& record : records) {
    const record::Phase* const step = record::step_of(record.result);
    if (!record.result.is_ok() || record.identity.workload != schema.id || !step || !step->mean_ms ||
        !(*step->mean_ms > 0) || !record.result.device || record.result.device->name != device_name)
      continue;
    EarlierCase earlier;
    // One whose parameters were others is another case than would be walked through. A parameter that the plugin has
    // gained since has a default that does what was done before.
    bool is_known = true;
    for (const plugin::ParamSpec& p : schema.params) {
      const Value* const recorded = record::find(record.identity.params, p.name);
      const Value& value = recorded ? *recorded : p.default_value;
      is_known = is_known && value.index() == p.default_value.index();
      if (is_known) earlier.request.values.params[p.name] = value;
    }
    if (!is_known) continue;
    take(record.identity.settings, "measure.prepare", earlier.request.values.measure.prepare);
    earlier.request.ranks = record.identity.ranks.value_or(1);
    earlier.step_s = *step->mean_ms / 1e3;
    std::int64_t warmup = 0;
    take(record.identity.settings, "measure.warmup", warmup);
    if (record.result.wall.case_s)
      earlier.other_s = std::max(0.0, *record.result.wall.case_s - record.result.wall.measure_s.value_or(0) -
                                          static_cast<double>(warmup) * earlier.step_s);
    earlier.verify_s = record.result.wall.verify_s.value_or(0) + record.result.wall.peak_s.value_or(0);
    cases.push_back(std::move(earlier));
  }
  return cases;
}

Features features_of(const Walk& walk) {
  Features features{};
  for (std::size_t i = 0; i < walk.operations.size(); ++i) {
    features[i] = walk.operations[i].least_s;
    features.back() += static_cast<double>(walk.operations[i].count);
  }
  return features;
}

double least_seconds(const Features& features) { return std::accumulate(features.begin(), features.end() - 1, 0.0); }

double Fit::seconds(const Features& features) const {
  return std::inner_product(features.begin(), features.end(), factors.begin(), 0.0);
}

Fit fit(const std::vector<Features>& features, const std::vector<double>& seconds) {
  Fit result;
  result.cases = seconds.size();
  std::vector<double> scales;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (const double least = least_seconds(features[i]); least > 0) scales.push_back(seconds[i] / least);
  const double common = scales.empty() ? 1 : median(scales);
  Features prior;
  prior.fill(common);
  prior.back() = usual_seconds_an_operation;
  result.factors = prior;
  // Coordinate descent on a convex quadratic over factors from 0 on: a handful of unknowns.
  for (int round = 0; round < 2000; ++round) {
    double change = 0;
    for (std::size_t j = 0; j < feature_count; ++j) {
      double curve = pull * static_cast<double>(seconds.size()) * (1 / (prior[j] * prior[j]));
      double target = pull * static_cast<double>(seconds.size()) /
                      prior[j];  // curve * factor = target at the best factor of this one
      for (std::size_t i = 0; i < seconds.size(); ++i) {
        const double x = features[i][j] / seconds[i];
        const double rest = 1 - (result.seconds(features[i]) / seconds[i] - x * result.factors[j]);
        target += x * rest;
        curve += x * x;
      }
      const double best = std::max(0.0, target / curve);
      change = std::max(change, std::abs(best - result.factors[j]) / prior[j]);
      result.factors[j] = best;
    }
    if (change < 1e-9) break;
  }
  for (std::size_t i = 0; i < seconds.size(); ++i)
    result.largest_error = std::max(result.largest_error, std::abs(result.seconds(features[i]) / seconds[i] - 1));
  return result;
}

Calibration::Calibration(const plugin::WorkloadSchema& schema, std::vector<EarlierCase> cases, std::vector<Walk> walks)
    : schema_(schema) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Features features = features_of(walks[i]);
    const std::string key = group_of(cases[i].request.values, cases[i].request.ranks);
    if (walks[i].state != WalkState::walked) unused_.emplace(key, WhyNoTime::not_planned);
    if (walks[i].state == WalkState::walked && !(least_seconds(features) > 0)) unused_[key] = WhyNoTime::no_peaks;
    if (walks[i].state != WalkState::walked || !(least_seconds(features) > 0)) continue;
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.key == key; });
    if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{key, {}, {}, {}, {}, {}, {}});
    group->features.push_back(features);
    group->step_s.push_back(cases[i].step_s);
    group->other_s.push_back(cases[i].other_s);
    group->verify_s.push_back(cases[i].verify_s);
    group->least_s.push_back(least_seconds(features));
  }
  for (Group& group : groups_) group.fit = fit(group.features, group.step_s);
}

// The choices and switches of a case, but those that stand for sizes: of them the sizes count.
std::string Calibration::group_of(const experiment::Case& values, std::int32_t ranks) const {
  std::string key = fmt::format("{} {}", ranks, values.measure.prepare);
  for (const plugin::ParamSpec& p : schema_.params) {
    const bool is_size =
        std::any_of(schema_.presets.begin(), schema_.presets.end(),
                    [&](const plugin::PresetSpec& preset) { return preset.when == p.name && preset.param != p.name; });
    if ((p.choices.empty() && p.type != plugin::ParamType::boolean) || is_size) continue;
    if (const auto value = values.params.find(p.name); value != values.params.end())
      key += "\n" + to_text(value->second);
  }
  return key;
}

WhyNoTime Calibration::why_none(const experiment::Case& values, std::int32_t ranks) const {
  const auto unused = unused_.find(group_of(values, ranks));
  return unused == unused_.end() ? WhyNoTime::nothing_alike : unused->second;
}

double median_of_nearest(const std::vector<double>& sizes, const std::vector<double>& values, double here) {
  constexpr double alike = 1.25;
  const auto distance = [here](double size) { return here > 0 ? std::max(size / here, here / size) : size; };
  const double nearest = distance(
      *std::min_element(sizes.begin(), sizes.end(), [&](double a, double b) { return distance(a) < distance(b); }));
  std::vector<double> near;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (distance(sizes[i]) <= alike * nearest) near.push_back(values[i]);
  return median(std::move(near));
}

std::optional<Calibration::Expected> Calibration::expected(const experiment::Case& values, std::int32_t ranks,
                                                           const Walk& walk) const {
  const std::string key = group_of(values, ranks);
  const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.key == key; });
  if (group == groups_.end()) return std::nullopt;
  const Features features = features_of(walk);
  Expected expected;
  expected.step_s = group->fit.seconds(features);
  const double here = least_seconds(features);
  expected.other_s = median_of_nearest(group->least_s, group->other_s, here);
  expected.verify_s = median_of_nearest(group->least_s, group->verify_s, here);
  expected.cases = group->fit.cases;
  expected.largest_error = group->fit.largest_error;
  const auto [least, most] = std::minmax_element(group->least_s.begin(), group->least_s.end());
  expected.beyond = std::max({1.0, here / *most, here > 0 ? *least / here : 1.0});
  return expected;
}

}  // namespace assay::host::plan
