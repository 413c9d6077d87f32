#include "run/run_records.hpp"

#include <algorithm>

namespace assay::host::run {
namespace {

using record::CaseRecord;
using record::Status;

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
  identity.hash = planned.hash;
  identity.axes = c.axes;
  identity.ranks = planned.ranks;
  identity.workload = target.schema.id;
  identity.plugin = {target.plugin_id, target.plugin_version, target.plugin_build, target.file_hash};
  for (const plugin::ParamSpec& p : target.schema.params) identity.params.emplace_back(p.name, c.params.at(p.name));
  for (const auto& [name, value] : c.settings()) identity.settings.emplace_back(name, value);
  record.result = std::move(result);
  if (!record.result.device && planned.device.is_usable()) record.result.device = planned.device.device;
  record.started = started;
  return record;
}

std::set<std::string> finished_hashes(const std::vector<record::CaseRecord>& records,
                                      const std::vector<std::string>& allow) {
  std::set<std::string> finished;
  for (const record::CaseRecord& record : records)
    if (is_ok_or_allowed(record, allow) || record.result.status == record::Status::unsupported)
      finished.insert(record.identity.hash);
  return finished;
}

bool are_ok_or_allowed(const std::vector<record::CaseRecord>& records, const experiment::Experiment& experiment,
                       const std::vector<std::string>& allow) {
  std::set<std::int64_t> wanted;
  for (const experiment::Case& c : experiment.cases) wanted.insert(c.index);
  return std::all_of(records.begin(), records.end(), [&](const record::CaseRecord& record) {
    return !wanted.contains(record.identity.index) || is_ok_or_allowed(record, allow);
  });
}

}  // namespace assay::host::run
