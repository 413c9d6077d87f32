#include "worker/case_spec.hpp"

#include <nlohmann/json.hpp>

namespace assay::host {

nlohmann::json to_json(const CaseSpec& spec) {
  nlohmann::json params = nlohmann::json::object();
  for (const auto& [name, value] : spec.params) params[name] = to_json(value);
  nlohmann::json plan = {{"warmup", spec.plan.warmup}, {"steps", spec.plan.steps}, {"sync", spec.plan.sync}};
  if (const auto& u = spec.plan.until)
    plan["until"] = {{"relative_error", u->relative_error},
                     {"confidence", u->confidence},
                     {"min_steps", u->min_steps},
                     {"max_steps", u->max_steps}};
  return {{"plugin_file", spec.plugin_file},
          {"workload", spec.workload},
          {"device_kind", spec.device_kind},
          {"device_ordinal", spec.device_ordinal},
          {"params", std::move(params)},
          {"plan", std::move(plan)},
          {"profile",
           {{"ranges", spec.profile.ranges},
            {"kernels_file", spec.profile.kernels_file},
            {"memory_snapshot_file", spec.profile.memory_snapshot_file}}},
          {"confidence", spec.confidence},
          {"seed", spec.seed},
          {"rank", spec.rank},
          {"rank_count", spec.rank_count}};
}

CaseSpec case_spec_from_json(const nlohmann::json& json) {
  CaseSpec spec;
  json.at("plugin_file").get_to(spec.plugin_file);
  json.at("workload").get_to(spec.workload);
  json.at("device_kind").get_to(spec.device_kind);
  json.at("device_ordinal").get_to(spec.device_ordinal);
  for (const auto& [name, value] : json.at("params").items()) spec.params[name] = value_from_json(value);
  const nlohmann::json& plan = json.at("plan");
  plan.at("warmup").get_to(spec.plan.warmup);
  plan.at("steps").get_to(spec.plan.steps);
  plan.at("sync").get_to(spec.plan.sync);
  if (plan.contains("until")) {
    const nlohmann::json& u = plan["until"];
    spec.plan.until = UntilRule{u.at("relative_error").get<double>(), u.at("confidence").get<double>(),
                                u.at("min_steps").get<std::int64_t>(), u.at("max_steps").get<std::int64_t>()};
  }
  const nlohmann::json& profile = json.at("profile");
  profile.at("ranges").get_to(spec.profile.ranges);
  profile.at("kernels_file").get_to(spec.profile.kernels_file);
  profile.at("memory_snapshot_file").get_to(spec.profile.memory_snapshot_file);
  json.at("confidence").get_to(spec.confidence);
  json.at("seed").get_to(spec.seed);
  json.at("rank").get_to(spec.rank);
  json.at("rank_count").get_to(spec.rank_count);
  return spec;
}

}  // namespace assay::host
