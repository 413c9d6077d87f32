#include "run/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "common/device_kinds.hpp"
#include "experiment/hash.hpp"
#include "experiment/presets.hpp"
#include "experiment/sharded_input.hpp"
#include "telemetry/cpu_nodes.hpp"

namespace assay::host::run {
namespace {

class Planner {
 public:
  Planner(const PlanBasis& basis, RunPlan& plan) : basis_(basis), plan_(plan) {}

  CasePlan plan(const experiment::Case& c) {
    const worker::FoundDevice& device = device_for(c.run.device);
    CasePlan planned{c, device};
    planned.values.namesake = namesake_of(c);
    planned.in_process = basis_.in_process || !c.run.isolate;
    if (device.is_usable()) {
      experiment::apply_presets(basis_.schema, device.device.kind, planned.values);
      if (planned.values.params != c.params) planned.values.params_of_any_device = c.params;
      planned.ranks = rank_count(c, device);
      planned.refusal = refusal_of(planned);
    } else {
      planned.refusal = Refusal{device.status, device.reason};
    }
    if (!basis_.wants_hashes) return planned;
    planned.files = basis_.files_of(device.is_usable() ? device.device.kind : "", planned.ranks);
    add_inputs(planned);
    planned.hash = hash_of(planned, planned.values);
    experiment::Case computed = planned.values;
    computed.measure = {}, computed.profile = {};
    computed.measure.prepare = planned.values.measure.prepare;  // a cold start takes another way to its steps
    planned.computation = hash_of(planned, computed);
    planned.is_finished = basis_.finished.contains(finished_key(planned.hash, c.axes, c.repeat));
    return planned;
  }

 private:
  const worker::FoundDevice& device_for(const std::string& wanted) {
    const auto known = plan_.devices.find(wanted);
    if (known != plan_.devices.end()) return known->second;
    return plan_.devices.emplace(wanted, basis_.ask_device(wanted)).first->second;
  }

  std::int64_t namesake_of(const experiment::Case& c) const {
    const auto known = basis_.cases_of_index.find(c.index);
    if (known == basis_.cases_of_index.end()) return 1;
    const std::vector<std::string>& cases = known->second;
    return 1 + (std::find(cases.begin(), cases.end(), finished_key("", c.axes)) - cases.begin());
  }

  // The number that [run] ranks means here.
  std::int32_t rank_count(const experiment::Case& c, const worker::FoundDevice& device) const {
    if (c.run.ranks == experiment::ranks_auto) {
      if (c.cluster.says_ranks())
        return static_cast<std::int32_t>(c.cluster.nodes * std::max<std::int64_t>(c.cluster.ranks_per_node, 1));
      return basis_.launched ? basis_.launched->size : 1;
    }
    if (c.run.ranks != experiment::ranks_all) return static_cast<std::int32_t>(c.run.ranks);
    if (basis_.launched) return basis_.launched->size;
    return device.device.kind == "cpu" ? telemetry::cpu_node_count() : std::max(device.count, 1);
  }

  std::optional<Refusal> refusal_of(const CasePlan& planned) const {
    if (basis_.launched && planned.ranks > basis_.launched->size)
      return Refusal{record::Status::unsupported,
                     fmt::format("run.ranks: {} ranks were asked for, but {} {}; start as many, or lower run.ranks",
                                 planned.ranks, basis_.launched->who_tells(), basis_.launched->size)};
    if (planned.ranks > 1)
      if (auto refusal = refusal_of_ranks(planned)) return refusal;
    if (planned.ranks > 1 && planned.in_process)
      return Refusal{record::Status::unsupported,
                     "run.ranks: several ranks need a worker process each; leave out --in-process and isolate = false"};
    if (planned.in_process && !planned.values.measure.prepare)
      return Refusal{record::Status::unsupported,
                     "measure.prepare = false: a case starts cold only in a separate process; leave out --in-process "
                     "and isolate = false"};
    if (planned.values.profile.ncu) return refusal_of_ncu(planned);
    return std::nullopt;
  }

  // A case that is to be counted, and cannot be, would be one of a few steps that nobody may use.
  std::optional<Refusal> refusal_of_ncu(const CasePlan& planned) const {
    const auto refusal = [](std::string why) {
      return Refusal{record::Status::unsupported, "profile.ncu: " + std::move(why)};
    };
    if (!has_nvidia_tools(planned.device.device.kind))
      return refusal(
          fmt::format("ncu counts what kernels do on an NVIDIA GPU, and the case runs on the {} device; leave it out, "
                      "or set run.device = \"cuda\"",
                      planned.device.device.kind));
    if (planned.ranks > 1)
      return refusal(
          fmt::format("ncu runs each kernel alone and again, and those of {} ranks wait for one another; set "
                      "run.ranks = 1",
                      planned.ranks));
    if (planned.in_process)
      return refusal("ncu needs a worker process that it starts; leave out --in-process and isolate = false");
    if (planned.values.profile.nsys) return refusal("ncu and nsys cannot both watch a case; leave out profile.nsys");
    if (std::string problem = basis_.problem_of_ncu ? basis_.problem_of_ncu() : ""; !problem.empty())
      return refusal(std::move(problem));
    return std::nullopt;
  }

  // Ranks that each do the whole work would look as if they had divided it.
  std::optional<Refusal> refusal_of_ranks(const CasePlan& planned) const {
    const plugin::WorkloadSchema& schema = basis_.schema;
    const bool wants_copies = planned.values.run.copies;
    if (schema.ranks == plugin::RanksAre::copies && !wants_copies)
      return Refusal{record::Status::unsupported,
                     fmt::format("run.ranks: ranks of workload '{}' do not work together: each of {} would do the "
                                 "whole work; set run.ranks = 1, or run.copies = true to run {} copies side by side",
                                 schema.id, planned.ranks, planned.ranks)};
    if (schema.ranks == plugin::RanksAre::cooperating && wants_copies)
      return Refusal{record::Status::unsupported,
                     fmt::format("run.copies: ranks of workload '{}' work together and are no copies of one another; "
                                 "leave out run.copies",
                                 schema.id)};
    return std::nullopt;
  }

  // Of these values, where they ran as planned.
  std::string hash_of(const CasePlan& planned, const experiment::Case& values) const {
    std::vector<std::pair<std::string, std::string>> identity;
    for (const auto& [role, hash] : planned.files) identity.emplace_back("file:" + role, hash);
    if (const worker::FoundDevice& device = planned.device; device.is_usable()) {
      identity.emplace_back("device.kind", device.device.kind);
      identity.emplace_back("device.name", device.device.name);
      identity.emplace_back("device.libraries", device.device.libraries);
      identity.emplace_back("device.driver", device.device.driver);
      for (const auto& [name, build] : device.libraries) identity.emplace_back("library:" + name, build);
    }
    if (planned.in_process) identity.emplace_back("in_process", "true");
    // "all" is another number on another machine.
    if (planned.ranks > 1) identity.emplace_back("ranks", std::to_string(planned.ranks));
    return experiment::case_hash(values, basis_.schema.id, identity);
  }

  // An input is its content, not its path.
  void add_inputs(CasePlan& planned) const {
    for (const plugin::ParamSpec& p : basis_.schema.params)
      if (const auto* path = p.input_path ? std::get_if<std::string>(&planned.values.params.at(p.name)) : nullptr;
          path && !path->empty()) {
        planned.files.emplace_back("input." + p.name, basis_.hash_of_input(*path));
        planned.inputs.push_back(*path);
        for (const std::string& shard : experiment::shards_of(*path).paths) {
          const std::string name = std::filesystem::path(shard).filename().string();
          planned.files.emplace_back("input." + p.name + "/" + name, basis_.hash_of_input(shard));
          planned.inputs.push_back(shard);
        }
      }
  }

  const PlanBasis& basis_;
  RunPlan& plan_;
};

}  // namespace

std::string finished_key(const std::string& hash, const record::Named<Value>& axes,
                         const std::optional<std::int64_t>& repeat) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : axes) sorted[name] = host::to_text(value);
  std::string key = hash;
  for (const auto& [name, text] : sorted) key += fmt::format("\n{}={}", name, text);
  return repeat.value_or(1) == 1 ? key : fmt::format("{}\n\n{}", key, *repeat);
}

RunWideSettings run_wide_settings(const experiment::Experiment& experiment) {
  const experiment::RunSettings& first = experiment.cases.front().run;
  return {first.allow, first.wireup_timeout, first.isolate, first.hosts};
}

std::vector<const CasePlan*> RunPlan::to_run() const {
  std::vector<const CasePlan*> open;
  for (const CasePlan& planned : cases)
    if (!planned.is_finished) open.push_back(&planned);
  return open;
}

RunPlan make_plan(const experiment::Experiment& experiment, const PlanBasis& basis) {
  RunPlan plan;
  plan.settings = run_wide_settings(experiment);
  Planner planner(basis, plan);
  plan.cases.reserve(experiment.cases.size());
  for (const experiment::Case& c : experiment.cases) plan.cases.push_back(planner.plan(c));
  return plan;
}

experiment::Experiment as_planned(experiment::Experiment experiment, const RunPlan& plan) {
  for (std::size_t i = 0; i < plan.cases.size(); ++i) experiment.cases[i] = plan.cases[i].values;
  return experiment;
}

}  // namespace assay::host::run
