// Lines of MLPerf's log (":::MLLOG {...}"), of training and of inference.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "imports/making_records.hpp"

namespace assay::host::imports {

struct MlperfEvents {
  std::vector<Json> events;  // with a key each, and NaN as null
  std::size_t torn = 0;      // lines that other output has torn
  std::size_t doubles = 0;   // lines that stand there more than once, and count once: ranks may each log the same
};
MlperfEvents mlperf_events(std::string_view text);
void note_lines(const MlperfEvents& events, ImportedRun& run);

// "ns" of "latency_ns"; "" where the name does not say it.
std::string unit_in_name(std::string_view name);

// The detail log of MLPerf's load generator: requested and effective settings, and results, most of them in ns.
bool is_of_inference(const MlperfEvents& events);
ImportedRun read_mlperf_inference(const MlperfEvents& events, const ImportOptions& options);

}  // namespace assay::host::imports
