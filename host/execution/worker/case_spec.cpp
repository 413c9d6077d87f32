#include "worker/case_spec.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "experiment/settings.hpp"

namespace assay::host::worker {
namespace {

using nlohmann::json;

json rank_to_json(const RankSpec& spec) {
  return {{"rank", spec.rank},
          {"count", spec.count},
          {"local_rank", spec.local_rank},
          {"local_count", spec.local_count},
          {"sharer", spec.sharer},
          {"sharer_count", spec.sharer_count},
          {"host_name", spec.host_name},
          {"service", spec.count > 1 ? wireup::endpoint_text(spec.service) : ""},
          {"prefix", spec.prefix}};
}

RankSpec rank_spec_from_json(const json& found) {
  RankSpec spec;
  found.at("rank").get_to(spec.rank);
  found.at("count").get_to(spec.count);
  found.at("local_rank").get_to(spec.local_rank);
  found.at("local_count").get_to(spec.local_count);
  found.at("sharer").get_to(spec.sharer);
  found.at("sharer_count").get_to(spec.sharer_count);
  found.at("host_name").get_to(spec.host_name);
  if (spec.count > 1) spec.service = wireup::parse_endpoint(found.at("service").get<std::string>());
  found.at("prefix").get_to(spec.prefix);
  return spec;
}

// A setting travels as a file would say it, through the table of settings: a new one needs no word here.
json values_to_json(const experiment::Case& c) {
  json params = json::object();
  for (const auto& [name, value] : c.params) params[name] = host::to_json(value);
  json settings = json::object();
  for (const auto& [name, value] : c.settings()) settings[name] = host::to_json(value);
  for (const auto& [name, values] : c.list_settings()) {
    json& list = settings[name] = json::array();
    for (const Value& value : values) list.push_back(host::to_json(value));
  }
  json values{
      {"index", c.index}, {"namesake", c.namesake}, {"params", std::move(params)}, {"settings", std::move(settings)}};
  if (c.repeat) values["repeat"] = *c.repeat;
  return values;
}

// False for a setting that is not known here, or does not take the value.
bool apply_setting(const std::string& name, const json& value, experiment::Case& into) {
  if (!value.is_array()) {
    const experiment::Setting* setting = experiment::find_setting(name);
    return setting && setting->apply(value_from_json(value), into);
  }
  experiment::Values values;
  for (const json& element : value) values.push_back(value_from_json(element));
  const experiment::Setting* setting = experiment::find_list_setting(name);
  return setting && setting->apply_list(values, into);
}

experiment::Case values_from_json(const json& found) {
  experiment::Case c;
  found.at("index").get_to(c.index);
  found.at("namesake").get_to(c.namesake);
  if (found.contains("repeat")) c.repeat = found.at("repeat").get<std::int64_t>();
  for (const auto& [name, value] : found.at("params").items()) c.params[name] = value_from_json(value);
  for (const auto& [name, value] : found.at("settings").items()) {
    if (!apply_setting(name, value, c))
      throw std::invalid_argument(
          fmt::format("a case came with {} = {}, which this assay does not know; use the same assay for all ranks",
                      name, value.dump()));
  }
  return c;
}

json verification_to_json(const VerificationAsked& asked) {
  json written{{"mode", asked.mode}, {"by_account", asked.by_account}};
  if (!asked.first) return written;
  const record::VerifiedCase& which = asked.first->which;
  json& first =
      written["first"] = {{"index", which.index}, {"hash", which.hash}, {"status", record::name_of(which.status)}};
  if (which.repeat) first["repeat"] = *which.repeat;
  json& algorithms = first["algorithms"] = json::array();
  for (const auto& [made_for, algorithm] : asked.first->algorithms) algorithms.push_back({made_for, algorithm});
  return written;
}

VerificationAsked verification_from_json(const json& found) {
  VerificationAsked asked{found.at("mode").get<std::string>(), found.at("by_account").get<bool>()};
  if (!found.contains("first")) return asked;
  const json& written = found.at("first");
  FirstCase& first = asked.first.emplace();
  written.at("index").get_to(first.which.index);
  written.at("hash").get_to(first.which.hash);
  first.which.status = record::verification_of(written.at("status").get<std::string>()).value();
  if (written.contains("repeat")) first.which.repeat = written.at("repeat").get<std::int64_t>();
  for (const json& each : written.at("algorithms"))
    first.algorithms.emplace_back(each.at(0).get<std::string>(), each.at(1).get<std::string>());
  return asked;
}

json copies_to_json(const std::vector<CopiedFile>& copies) {
  json list = json::array();
  for (const CopiedFile& each : copies)
    list.push_back({{"copy", each.copy}, {"original", each.original}, {"sha256", each.sha256}});
  return list;
}

}  // namespace

std::string CaseSpec::file_stem() const {
  const std::string namesake = values.namesake > 1 ? fmt::format("-{}", values.namesake) : "";
  const std::string stem =
      fmt::format("case-{:04}{}{}", values.index + 1, namesake, experiment::repeat_suffix(values.repeat));
  return is_alone() ? stem : fmt::format("{}.rank{}", stem, ranks.rank);
}

std::filesystem::path CaseSpec::file_of_run(const std::string& name) const {
  return (std::filesystem::path(run_folder) / name).lexically_normal();
}

std::filesystem::path CaseSpec::log_file() const { return file_of_run("logs/" + file_stem() + ".log"); }

json to_json(const CaseSpec& spec) {
  return {{"values", values_to_json(spec.values)},
          {"plugin_file", spec.plugin_file},
          {"device_file", spec.device_file},
          {"comm_folder", spec.comm_folder},
          {"library_folders", spec.library_folders},
          {"copies", copies_to_json(spec.copies)},
          {"host_sha256", spec.host_sha256},
          {"workload", spec.workload},
          {"phase_names", spec.phase_names},
          {"device_kind", spec.device_kind},
          {"device_ordinal", spec.device_ordinal},
          {"run_folder", spec.run_folder},
          {"output_files", spec.output_files},
          {"ranks", rank_to_json(spec.ranks)},
          {"verification", verification_to_json(spec.verification)}};
}

CaseSpec case_spec_from_json(const json& found) {
  CaseSpec spec;
  spec.values = values_from_json(found.at("values"));
  found.at("plugin_file").get_to(spec.plugin_file);
  found.at("device_file").get_to(spec.device_file);
  found.at("comm_folder").get_to(spec.comm_folder);
  found.at("library_folders").get_to(spec.library_folders);
  found.at("host_sha256").get_to(spec.host_sha256);
  for (const json& each : found.at("copies"))
    spec.copies.push_back({each.at("copy").get<std::string>(), each.at("original").get<std::string>(),
                           each.at("sha256").get<std::string>()});
  found.at("workload").get_to(spec.workload);
  found.at("phase_names").get_to(spec.phase_names);
  found.at("device_kind").get_to(spec.device_kind);
  found.at("device_ordinal").get_to(spec.device_ordinal);
  found.at("run_folder").get_to(spec.run_folder);
  found.at("output_files").get_to(spec.output_files);
  spec.ranks = rank_spec_from_json(found.at("ranks"));
  spec.verification = verification_from_json(found.at("verification"));
  return spec;
}

json probe_to_json(const std::string& wanted_device) { return {{"probe", wanted_device}}; }

std::optional<std::string> probe_from_json(const json& found) {
  if (!found.contains("probe")) return std::nullopt;
  return found["probe"].get<std::string>();
}

}  // namespace assay::host::worker
