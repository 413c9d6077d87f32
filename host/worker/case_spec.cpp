#include "worker/case_spec.hpp"

#include <nlohmann/json.hpp>

namespace assay::host {
namespace {

nlohmann::json to_json(const RankSpec& spec) {
  return {{"rank", spec.rank},
          {"count", spec.count},
          {"local_rank", spec.local_rank},
          {"local_count", spec.local_count},
          {"shares_processors", spec.shares_processors},
          {"host_name", spec.host_name},
          {"service", spec.count > 1 ? endpoint_text(spec.service) : ""},
          {"prefix", spec.prefix},
          {"wireup_timeout_ms", spec.wireup_timeout.count()},
          {"collective_timeout_ms", spec.collective_timeout.count()}};
}

RankSpec rank_spec_from_json(const nlohmann::json& json) {
  RankSpec spec;
  json.at("rank").get_to(spec.rank);
  json.at("count").get_to(spec.count);
  json.at("local_rank").get_to(spec.local_rank);
  json.at("local_count").get_to(spec.local_count);
  json.at("shares_processors").get_to(spec.shares_processors);
  json.at("host_name").get_to(spec.host_name);
  if (spec.count > 1) spec.service = parse_endpoint(json.at("service").get<std::string>());
  json.at("prefix").get_to(spec.prefix);
  spec.wireup_timeout = std::chrono::milliseconds(json.at("wireup_timeout_ms").get<std::int64_t>());
  spec.collective_timeout = std::chrono::milliseconds(json.at("collective_timeout_ms").get<std::int64_t>());
  return spec;
}

}  // namespace

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
          {"ranks", to_json(spec.ranks)}};
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
  spec.ranks = rank_spec_from_json(json.at("ranks"));
  return spec;
}

}  // namespace assay::host
