// All that a worker needs to know of its case. Travels from the host to the worker as JSON.
#pragma once
#include "common/value.hpp"
#include "measure/stopping.hpp"
#include "wireup/endpoint.hpp"

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay::host {

// What [profile] asks of the worker. A file is given by its absolute path; "" is none.
struct ProfileSpec {
  bool ranges = true;                // named ranges, and the range that an external profiler records
  std::string kernels_file;          // Markdown: the table of kernels per phase
  std::string memory_snapshot_file;  // a pickle
};

// One of several ranks of a case, and the service that joins them.
struct RankSpec {
  std::int32_t rank = 0, count = 1;
  std::int32_t local_rank = 0, local_count = 1;  // on this machine
  bool shares_processors = false;                // with the other ranks of this machine
  std::string host_name;
  Endpoint service;    // with one rank there is none
  std::string prefix;  // of the case's keys
  std::chrono::milliseconds wireup_timeout{60'000};
  std::chrono::milliseconds collective_timeout{120'000};
};

struct CaseSpec {
  std::string plugin_file;
  std::string workload;
  std::string device_kind;  // "cpu", "cuda": resolved, never "auto"
  std::int32_t device_ordinal = 0;
  std::map<std::string, Value> params;
  MeasurePlan plan;
  ProfileSpec profile;
  double confidence = 0.95;
  std::uint64_t seed = 0;
  RankSpec ranks;
};

nlohmann::json to_json(const CaseSpec& spec);
CaseSpec case_spec_from_json(const nlohmann::json& json);

}  // namespace assay::host
