#include "record/case_record.hpp"

#include <fmt/format.h>

namespace assay::host::record {

std::string text_of(const VerifiedCase& which) {
  return fmt::format("case {}{} ({})", which.index + 1, which.repeat ? fmt::format(", repeat {}", *which.repeat) : "",
                     which.hash);
}

const Phase* step_of(const CaseResult& result) { return find(result.phases, "step"); }

std::string measurement_key(const CaseRecord& record) {
  const Phase* step = step_of(record.result);
  if (record.started.empty() || ((!step || !step->mean_ms) && !record.result.metrics)) return "";
  std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", record.started, record.host, record.identity.workload,
                                record.identity.index, record.identity.repeat.value_or(0), record.identity.hash);
  // Two imports of one file, where the second was asked for, differ by this.
  key += '\n' + record.environment;
  // Short steps may take the same time to the clock's tick; stages do not.
  for (const WallTimes::Row& row : WallTimes::all())
    key += fmt::format("\n{}", (record.result.wall.*row.time).value_or(0));
  if (step)
    key += fmt::format("\n{} {} {}", step->mean_ms.value_or(0), step->std_ms.value_or(0), step->n.value_or(0));
  else
    for (const auto& [name, metric] : *record.result.metrics) key += fmt::format("\n{} {}", name, metric.value);
  return key;
}

}  // namespace assay::host::record
