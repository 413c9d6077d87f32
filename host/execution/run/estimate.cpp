#include "run/estimate.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <system_error>

#include "common/files.hpp"
#include "experiment/settings.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"

namespace assay::host::run {
namespace {

namespace fs = std::filesystem;

// More of them are not looked into: a case that none of these has is a new one for all that counts.
constexpr std::size_t most_runs = 10;
// Nor more than is read in an instant: nobody waits for a guess.
constexpr std::uintmax_t most_bytes = 32 << 20;

// A longer case than of three years is a damaged record.
constexpr double longest_s = 1e8;

// What a case took that ended before its end says little of how long it takes.
bool tells_a_time(const record::CaseRecord& record) {
  const record::Status status = record.result.status;
  if (status != record::Status::ok && status != record::Status::wrong_result) return false;
  const record::Number& taken = record.result.wall.case_s;
  return taken && *taken >= 0 && *taken <= longest_s;
}

// A record that is older than a parameter or a setting has had its default.
bool is_of_case(const record::CaseRecord& record, const CasePlan& planned, const plugin::WorkloadSchema& schema) {
  const record::CaseIdentity& id = record.identity;
  if (id.workload != schema.id || id.axes != planned.values.axes || id.ranks.value_or(1) != planned.ranks) return false;
  if (!record.result.device || record.result.device->name != planned.device.device.name) return false;
  for (const plugin::ParamSpec& p : schema.params) {
    const Value* then = record::find(id.params, p.name);
    if ((then ? *then : p.default_value) != planned.values.params.at(p.name)) return false;
  }
  return experiment::takes_as_long(id.settings, planned.values);
}

}  // namespace

std::size_t Estimate::known() const {
  return static_cast<std::size_t>(
      std::count_if(seconds.begin(), seconds.end(), [](const auto& s) { return s.has_value(); }));
}

double Estimate::total_s() const {
  double total = 0;
  for (const auto& one : seconds) total += one.value_or(0);
  return total;
}

Estimate estimate_by_earlier_runs(const experiment::Experiment& experiment, const plugin::WorkloadSchema& schema,
                                  const std::vector<const CasePlan*>& cases) {
  Estimate estimate;
  estimate.seconds.resize(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (cases[i]->refusal) estimate.seconds[i] = 0;  // it is recorded, and not started
  std::vector<fs::path> runs = results::runs_below(experiment.output.dir / experiment.name);
  std::reverse(runs.begin(), runs.end());  // their names begin with when they began
  std::size_t looked_into = 0;
  std::uintmax_t bytes = 0;
  for (const fs::path& run : runs) {
    if (estimate.known() == cases.size() || looked_into == most_runs) break;
    std::error_code unknown;
    bytes += fs::file_size(run / "cases.jsonl", unknown);
    if (unknown || bytes > most_bytes) break;
    std::vector<record::CaseRecord> records;
    try {
      records = results::read_cases(run / "cases.jsonl").records;
    } catch (const StorageError&) {
      continue;  // a guess is not worth a complaint
    }
    if (!records.empty()) ++looked_into;
    bool is_used = false;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (estimate.seconds[i]) continue;
      const auto found = std::find_if(records.rbegin(), records.rend(), [&](const record::CaseRecord& record) {
        return tells_a_time(record) && is_of_case(record, *cases[i], schema);
      });
      if (found == records.rend()) continue;
      estimate.seconds[i] = *found->result.wall.case_s;
      is_used = true;
    }
    if (is_used) estimate.runs.push_back(run);
  }
  return estimate;
}

}  // namespace assay::host::run
