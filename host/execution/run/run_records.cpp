#include "run/run_records.hpp"

#include <algorithm>
#include <map>

#include "common/host_name.hpp"

namespace assay::host::run {
namespace {

bool is_ok_or_allowed(const record::CaseRecord& record, const std::vector<std::string>& allow) {
  return record.result.is_ok() || std::find(allow.begin(), allow.end(), name_of(record.result.status)) != allow.end();
}

}  // namespace

record::CaseRecord full_record(const CasePlan& planned, const RunTarget& target, record::CaseResult result,
                               const std::string& started) {
  const experiment::Case& c = planned.values;
  record::CaseRecord record;
  record::CaseIdentity& identity = record.identity;
  identity.index = c.index;
  identity.repeat = c.repeat;
  identity.hash = planned.hash;
  identity.axes = c.axes;
  identity.ranks = planned.ranks;
  identity.workload = target.schema.id;
  identity.files = planned.files;
  identity.plugin = {target.plugin_id, target.plugin_version, target.plugin_build, target.file_hash, target.plugin_abi};
  for (const plugin::ParamSpec& p : target.schema.params) identity.params.emplace_back(p.name, c.params.at(p.name));
  for (const auto& [name, value] : c.settings())
    identity.settings.emplace_back(name, name == "run.isolate" ? Value(!planned.in_process) : value);
  record.result = std::move(result);
  if (!record.result.device && planned.device.is_usable()) record.result.device = planned.device.device;
  record.started = started;
  record.host = host_name();
  return record;
}

bool are_ok_or_allowed(const std::vector<record::CaseRecord>& records, const experiment::Experiment& experiment,
                       const std::vector<std::string>& allow) {
  // By index and repeat; a case without a record is not.
  std::map<std::pair<std::int64_t, std::int64_t>, bool> is_good;
  for (const experiment::Case& c : experiment.cases) is_good[{c.index, c.repeat.value_or(1)}] = false;
  for (const record::CaseRecord& record : records)
    if (const auto found = is_good.find({record.identity.index, record.identity.repeat.value_or(1)});
        found != is_good.end())
      found->second = is_ok_or_allowed(record, allow);
  return std::all_of(is_good.begin(), is_good.end(), [](const auto& entry) { return entry.second; });
}

}  // namespace assay::host::run
