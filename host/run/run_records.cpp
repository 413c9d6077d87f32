#include "run/run_records.hpp"

#include <algorithm>

namespace assay::host {
namespace {

bool is_ok_or_allowed(const Record& record, const std::vector<std::string>& allow) {
  const std::string status = record.value("status", "");
  return status == "ok" || std::find(allow.begin(), allow.end(), status) != allow.end();
}

}  // namespace

FoundDevice found_device_of(const Record& answer) {
  FoundDevice found;
  found.status = answer.value("status", "failed");
  found.reason = answer.value("reason", "");
  found.note = answer.value("note", "");
  if (!found.is_usable()) return found;
  found.record = answer["device"];
  found.kind = found.record.value("kind", "");
  found.name = found.record.value("name", "");
  found.libraries = found.record.value("libraries", "");
  found.count = answer.value("count", std::int32_t{1});
  return found;
}

std::optional<FoundDevice> found_device_in(const std::string& result_line) {
  const Record event = Record::parse(result_line, nullptr, false);
  if (!event.is_object() || !event.contains("probe")) return std::nullopt;
  return found_device_of(event["probe"]);
}

Record full_record(const CasePlan& planned, const RunTarget& target, Record part, const std::string& started) {
  const Case& c = planned.values;
  Record record = {{"schema", 1}, {"index", c.index}, {"hash", planned.hash}, {"axes", Record::object()}};
  for (const auto& [key, value] : c.axes) record["axes"][key] = Record(to_json(value));
  for (const char* key : {"status", "reason", "stage", "phase"}) record[key] = part.value(key, "");
  record["rank"] = part.value("rank", Record());
  record["ranks"] = planned.ranks;
  record["workload"] = target.schema.id;
  record["plugin"] = {{"id", target.plugin_id},
                      {"version", target.plugin_version},
                      {"build", target.plugin_build},
                      {"file_hash", target.file_hash}};
  if (planned.device.is_usable()) record["device"] = planned.device.record;
  record["params"] = Record::object();
  for (const ParamSpec& p : target.schema.params) record["params"][p.name] = Record(to_json(c.params.at(p.name)));
  record["settings"] = Record::object();
  for (const auto& [key, value] : c.settings()) record["settings"][key] = Record(to_json(value));
  for (const auto& [key, value] : part.items())
    if (!record.contains(key) || key == "device") record[key] = value;
  record["started"] = started;
  return record;
}

std::set<std::string> finished_hashes(const std::vector<Record>& records, const std::vector<std::string>& allow) {
  std::set<std::string> finished;
  for (const Record& record : records)
    if (is_ok_or_allowed(record, allow) || record.value("status", "") == "unsupported")
      finished.insert(record.value("hash", ""));
  return finished;
}

bool are_ok_or_allowed(const std::vector<Record>& records, const Experiment& experiment,
                       const std::vector<std::string>& allow) {
  std::set<std::int64_t> wanted;
  for (const Case& c : experiment.cases) wanted.insert(c.index);
  return std::all_of(records.begin(), records.end(), [&](const Record& record) {
    return !wanted.contains(record.value("index", std::int64_t{-1})) || is_ok_or_allowed(record, allow);
  });
}

}  // namespace assay::host
