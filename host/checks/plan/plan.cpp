#include "plan/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace assay::host::plan {
namespace {

constexpr double record_mib = 0.04;       // a case's line in cases.jsonl, its log and its part of the tables
constexpr double taken_files_mib = 45.0;  // the copies of assay's libraries below a run
// A worker's code, libraries and heap on the CPU: 17 to 25 of small cases.
constexpr double usual_cpu_process_mib = 22;

// What the process of such a case holds beside its account.
double beside_mib(const Walk& walk, const experiment::DeviceDescription& device) {
  if (device.kind == "cpu") return device.context_mib.value_or(usual_cpu_process_mib);
  const bool multiplies = walk.operations[product_kind].count > 0;
  return device.context_mib.value_or(usual_context_mib) + device.kernels_mib.value_or(usual_kernels_mib) +
         (multiplies ? device.products_mib.value_or(usual_products_mib) : 0) +
         (walk.communicates ? device.communicator_mib.value_or(usual_communicator_mib) : 0);
}

// The keys of [process] that a GPU's file leaves out.
std::string unsaid_of_process(const experiment::DeviceDescription& device) {
  if (device.kind == "cpu") return "";
  std::vector<const char*> keys;
  if (!device.context_mib) keys.push_back("context_mib");
  if (!device.kernels_mib) keys.push_back("kernels_mib");
  if (!device.products_mib) keys.push_back("products_mib");
  if (!device.communicator_mib) keys.push_back("communicator_mib");
  return fmt::format("{}", fmt::join(keys, ", "));
}

// Ranks of one machine share the memory of its processors. Of a GPU each is thought to have one for itself.
double sharers_of(const WalkRequest& request, const experiment::DeviceDescription& device) {
  if (device.kind != "cpu") return 1;
  const double nodes = static_cast<double>(std::max<std::int64_t>(request.values.cluster.nodes, 1));
  return std::ceil(static_cast<double>(request.ranks) / nodes);
}

// [run] memory_limit is of the host's memory that a worker holds: on a CPU that is the device's.
std::optional<double> limit_of_rank_mib(const WalkRequest& request, const experiment::DeviceDescription& device) {
  const auto& limit = request.values.run.memory_limit_bytes;
  if (!limit || device.kind != "cpu") return std::nullopt;
  return static_cast<double>(*limit) / mib;
}

double peak_mib(const Walk& walk, const WalkRequest& request, const experiment::DeviceDescription& device) {
  return sharers_of(request, device) * (static_cast<double>(walk.peak_total) / mib + beside_mib(walk, device));
}

Fits fits_into(const Walk& walk, const WalkRequest& request, const experiment::DeviceDescription& device) {
  if (walk.state == WalkState::too_large) return Fits::no;
  if (walk.state != WalkState::walked) return Fits::not_known;
  const double of_rank_mib = static_cast<double>(walk.peak_total) / mib + beside_mib(walk, device);
  if (of_rank_mib > limit_of_rank_mib(request, device).value_or(of_rank_mib)) return Fits::no;
  if (device.memory_total_mib == 0) return Fits::not_known;
  return peak_mib(walk, request, device) <= device.memory_total_mib ? Fits::yes : Fits::no;
}

std::vector<std::string> notes_on_limit(const CasesPlan& plan) {
  const auto& cases = plan.cases;
  const auto limited = std::count_if(cases.begin(), cases.end(),
                                     [](const PlannedCase& c) { return c.request.values.run.memory_limit_bytes; });
  if (limited == 0) return {};
  if (plan.device.kind != "cpu")
    return {
        "[run] memory_limit is of the host's memory, which is not planned: a case that fits here can be oom by that "
        "limit"};
  return {
      fmt::format("{} of {} cases {} [run] memory_limit, which also limits the verification. A plan does not include "
                  "that: leave room above process peak, or a case that fits here may be oom",
                  limited, cases.size(), limited == 1 ? "has a" : "have a")};
}

// By the stated work of a step at the device's peaks, and what a rank has to send at the link's. Where no work is
// stated, by the products and attentions alone, since bytes may come from a cache.
void add_least_time(PlannedCase& c, const experiment::DeviceDescription& device) {
  double flops_s = 0, bytes_s = 0, link_s = 0;
  if (const double peak = device.flops_per_s(c.walk.arithmetic); peak > 0) flops_s = c.walk.flops / peak;
  if (flops_s == 0)
    for (const std::size_t kind : {product_kind, attention_kind}) flops_s += c.walk.operations[kind].flops_s;
  // What fits into the caches need not come from memory. A processor's are not known.
  const bool is_cached =
      device.kind == "cpu" || static_cast<double>(c.walk.at_step.total()) <= device.l2_cache_mib * mib;
  if (device.memory_gbytes_per_s > 0 && !is_cached) bytes_s = c.walk.bytes / (device.memory_gbytes_per_s * 1e9);
  if (device.link_gbytes_per_s > 0)
    link_s = c.walk.operations[collective_kind].bytes / (device.link_gbytes_per_s * 1e9);
  // A step's time is that between two events, which is not 0 where nothing is between them. Of several steps between
  // them each has a part of it.
  const bool is_one = c.request.values.measure.inner == 1;
  const double events_s = is_one ? device.facts.event_least_gap_us.value_or(0) * 1e-6 : 0;
  c.least_step_s = std::max({flops_s, bytes_s, link_s, events_s});
  if (c.least_step_s > 0)
    c.bound = c.least_step_s == flops_s   ? "flops"
              : c.least_step_s == bytes_s ? "bytes"
              : c.least_step_s == link_s  ? "link"
                                          : "events";
}

// A time that stands on cases too far away counts as unknown: it is not shown, and hours leave it out.
void add_expected(PlannedCase& c, const Calibration& calibration) {
  c.expected = calibration.expected(c.request.values, c.request.ranks, c.walk);
  if (!c.expected) {
    c.why_no_time = calibration.why_none(c.request.values, c.request.ranks);
  } else if (c.expected->beyond > most_beyond) {
    c.why_no_time = WhyNoTime::too_far;
    c.beyond = c.expected->beyond;
    c.expected.reset();
  }
}

// Each sample is `inner` steps; "auto" is at least one.
void add_wall_time(PlannedCase& c) {
  const measure::MeasurePlan& plan = c.request.values.measure;
  const auto inner = static_cast<double>(std::max<std::int64_t>(plan.inner, 1));
  const auto warmup = static_cast<double>(plan.warmup);
  double samples = static_cast<double>(plan.fewest_steps());
  c.least_s = (warmup + samples * inner) * c.least_step_s;
  if (!c.expected) return;
  if (!plan.steps && !plan.until)
    samples = std::clamp(measure::DefaultLength::enough_s / (c.expected->step_s * inner),
                         static_cast<double>(measure::DefaultLength::min_steps),
                         static_cast<double>(measure::DefaultLength::max_steps));
  c.expected_s = (warmup + samples * inner) * c.expected->step_s + c.expected->other_s;
}

}  // namespace

CasesPlan plan_cases(WalkedCases request) {
  CasesPlan plan;
  plan.device = request.device;
  std::vector<Walk> walks = walk_cases(request.plugin, request.device, request.cases);
  const std::vector<EarlierCase> earlier = earlier_cases(request.earlier, request.plugin.schema, request.device.name);
  std::vector<WalkRequest> again;
  for (const EarlierCase& each : earlier) again.push_back(each.request);
  std::vector<Walk> earlier_walks = walk_cases(request.plugin, request.device, again);
  const Calibration calibration(request.plugin.schema, earlier, std::move(earlier_walks));
  std::vector<Largest> largest;
  if (!request.largest.empty())
    largest = largest_that_fit(request.plugin, request.device, request.cases, request.largest,
                               [&](const WalkRequest& tried, const Walk& walk) {
                                 return fits_into(walk, tried, request.device) == Fits::yes;
                               });
  bool collects = false, has_no_peak = false;
  plan.cases.resize(walks.size());
  for (std::size_t i = 0; i < walks.size(); ++i) {
    PlannedCase& c = plan.cases[i];
    c.request = std::move(request.cases[i]);
    c.walk = std::move(walks[i]);
    c.fits = fits_into(c.walk, c.request, request.device);
    if (!request.largest.empty()) c.largest = largest[i];
    if (c.walk.state != WalkState::walked) {
      plan.node_hours_are_least = true;
      continue;
    }
    collects = collects || c.walk.operations[collective_kind].bytes > 0;
    has_no_peak = has_no_peak || (c.walk.flops > 0 && request.device.flops_per_s(c.walk.arithmetic) == 0);
    c.beside_mib = beside_mib(c.walk, request.device);
    c.process_mib =
        sharers_of(c.request, request.device) * (static_cast<double>(c.walk.at_step.total()) / mib + c.beside_mib);
    c.peak_mib = peak_mib(c.walk, c.request, request.device);
    add_least_time(c, request.device);
    if (!earlier.empty()) add_expected(c, calibration);
    add_wall_time(c);
    plan.node_hours_are_least = plan.node_hours_are_least || !c.expected_s;
    const double nodes = static_cast<double>(std::max<std::int64_t>(c.request.values.cluster.nodes, 1));
    plan.node_hours += nodes * c.expected_s.value_or(c.least_s) / 3600;
  }
  plan.disk_mib = taken_files_mib + record_mib * static_cast<double>(walks.size());
  if (!request.earlier.empty() && earlier.empty())
    plan.notes.push_back(
        fmt::format("the earlier run has no case of workload '{}' on a device '{}'; there are no "
                    "expected times",
                    request.plugin.schema.id, request.device.name));
  if (const std::string unsaid = unsaid_of_process(request.device); !unsaid.empty())
    plan.notes.push_back(fmt::format(
        "{} does not state {} of [process], what a process holds of the device beside its data; the figures of an H200 "
        "are used; `assay describe-device` measures them",
        request.device.file, unsaid));
  if (const auto below =
          std::count_if(plan.cases.begin(), plan.cases.end(),
                        [](const PlannedCase& c) { return c.expected && c.expected->step_s < c.least_step_s; });
      below > 0)
    plan.notes.push_back(fmt::format(
        "{} of the expected times lie below the least ones: the earlier cases do not cover such cases, or {} states "
        "smaller peaks than the device has",
        below, request.device.file));
  if (collects && request.device.link_gbytes_per_s == 0)
    plan.notes.push_back(
        fmt::format("{} states no link; what ranks send is not counted in the times", request.device.file));
  if (has_no_peak)
    plan.notes.push_back(
        fmt::format("{} has no peak FLOP rate for the arithmetic of some cases; their least times ignore operations",
                    request.device.file));
  for (std::string& note : notes_on_limit(plan)) plan.notes.push_back(std::move(note));
  if (request.device.memory_total_mib == 0)
    plan.notes.push_back("how much memory the device has is not known, and so not what fits");
  if (request.device.kind == "cpu")
    plan.notes.push_back(
        fmt::format("estimates for the CPU add {:.0f} MiB a process and leave out scratch memory of kernels",
                    request.device.context_mib.value_or(usual_cpu_process_mib)));
  return plan;
}

}  // namespace assay::host::plan
