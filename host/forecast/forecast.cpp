#include "forecast/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::host::forecast {
namespace {

constexpr double record_mib = 0.04;       // a case's line in cases.jsonl, its log and its part of the tables
constexpr double taken_files_mib = 45.0;  // the copies of assay's libraries below a run
constexpr double seconds_of_a_case = 3;   // opening, choosing kernels and verifying, where nothing tells

// What the process of such a case holds beside its account.
double beside_mib(const Walk& walk, const DeviceDescription& device) {
  if (device.kind == "cpu") return 0;
  const bool multiplies = walk.operations[product_kind].count > 0;
  return device.context_mib.value_or(usual_context_mib) + device.kernels_mib.value_or(usual_kernels_mib) +
         (multiplies ? device.products_mib.value_or(usual_products_mib) : 0) +
         (walk.communicates ? device.communicator_mib.value_or(usual_communicator_mib) : 0);
}

Fits fits_into(const Walk& walk, const DeviceDescription& device) {
  if (walk.state == WalkState::too_large) return Fits::no;
  if (walk.state != WalkState::walked) return Fits::not_known;
  const double wanted = static_cast<double>(walk.peak_total) / mib + beside_mib(walk, device);
  return wanted <= device.memory_total_mib ? Fits::yes : Fits::no;
}

// A lower bound: no step is shorter than its own statement of work at the device's peaks, nor than its messages at the
// link's. Operations of a step that are not stated count by their products alone, since bytes may come from a cache.
void add_least_time(CaseForecast& c, const DeviceDescription& device) {
  double flops_s = 0, bytes_s = 0, link_s = 0;
  if (const double peak = device.flops_per_s(c.walk.arithmetic); peak > 0) flops_s = c.walk.flops / peak;
  if (flops_s == 0)
    for (const std::size_t kind : {product_kind, attention_kind}) flops_s += c.walk.operations[kind].flops_s;
  if (device.memory_gbytes_per_s > 0) bytes_s = c.walk.bytes / (device.memory_gbytes_per_s * 1e9);
  if (device.link_gbytes_per_s > 0)
    link_s = c.walk.operations[collective_kind].bytes / (device.link_gbytes_per_s * 1e9);
  c.least_step_s = std::max({flops_s, bytes_s, link_s});
  if (c.least_step_s > 0) c.bound = c.least_step_s == flops_s ? "flops" : c.least_step_s == bytes_s ? "bytes" : "link";
}

void add_wall_time(CaseForecast& c) {
  const measure::MeasurePlan& plan = c.request->values.measure;
  const auto steps = static_cast<double>(plan.warmup + plan.fewest_steps()) *
                     static_cast<double>(std::max<std::int64_t>(plan.inner, 1));
  c.least_s = steps * c.least_step_s;
  if (!c.expected) return;
  double measured_steps = static_cast<double>(plan.fewest_steps());
  if (!plan.steps && !plan.until)
    measured_steps = std::clamp(measure::DefaultLength::enough_s / c.expected->step_s,
                                static_cast<double>(measure::DefaultLength::min_steps),
                                static_cast<double>(measure::DefaultLength::max_steps));
  c.expected_s = (static_cast<double>(plan.warmup) + measured_steps) * c.expected->step_s +
                 std::max(c.expected->other_s, seconds_of_a_case);
}

}  // namespace

Forecast make_forecast(const ForecastRequest& request) {
  Forecast forecast;
  forecast.device = request.device;
  const std::vector<Walk> walks = walk_cases(request.plugin, request.device, request.cases);
  const std::vector<EarlierCase> earlier = earlier_cases(request.earlier, request.plugin.schema, request.device.name);
  std::vector<WalkRequest> again;
  for (const EarlierCase& each : earlier) again.push_back(each.request);
  std::vector<Walk> earlier_walks = walk_cases(request.plugin, request.device, again);
  const Calibration calibration(request.plugin.schema, earlier, std::move(earlier_walks));
  std::vector<Largest> largest;
  if (!request.largest.empty())
    largest = largest_that_fit(request.plugin, request.device, request.cases, request.largest,
                               [&](const Walk& walk) { return fits_into(walk, request.device) == Fits::yes; });
  std::size_t without_time = 0;
  for (std::size_t i = 0; i < walks.size(); ++i) {
    CaseForecast& c = forecast.cases.emplace_back();
    c.request = &request.cases[i];
    c.walk = walks[i];
    c.fits = fits_into(c.walk, request.device);
    if (!request.largest.empty()) c.largest = largest[i];
    if (c.walk.state != WalkState::walked) continue;
    const double beside = beside_mib(c.walk, request.device);
    c.process_mib = static_cast<double>(c.walk.at_step.total()) / mib + beside;
    c.peak_mib = static_cast<double>(c.walk.peak_total) / mib + beside;
    add_least_time(c, request.device);
    c.expected = calibration.expected(c.request->values, c.request->ranks, c.walk);
    add_wall_time(c);
    if (!c.expected_s) ++without_time;
    const double nodes = static_cast<double>(std::max<std::int64_t>(c.request->values.cluster.nodes, 1));
    forecast.node_hours += nodes * c.expected_s.value_or(c.least_s + seconds_of_a_case) / 3600;
  }
  forecast.node_hours_are_least = without_time > 0;
  forecast.disk_mib = taken_files_mib + record_mib * static_cast<double>(walks.size());
  if (!request.earlier.empty() && earlier.empty())
    forecast.notes.push_back(
        fmt::format("the earlier run has no case of workload '{}' on a device '{}'; times are not "
                    "expected by it",
                    request.plugin.schema.id, request.device.name));
  if (request.device.kind == "cuda" && !request.device.context_mib)
    forecast.notes.push_back(
        fmt::format("{} does not say what a process holds of the device by itself; as much is taken as on an H200, {} "
                    "MiB and more; `assay describe-device` measures it",
                    request.device.file, usual_context_mib));
  if (request.device.kind == "cpu")
    forecast.notes.push_back(
        "on the CPU the workspace of its kernels is not known before they run, and is not counted");
  return forecast;
}

}  // namespace assay::host::forecast
