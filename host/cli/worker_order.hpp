// What is to be started for one rank of a case. Made where the run is led, carried out on the machine of the rank.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/case_process.hpp"
#include "launch/supervise.hpp"
#include "worker/case_spec.hpp"

namespace assay::host {

// Of the ranks on one machine that may use the same processors, as their launcher has set it.
struct ProcessorShare {
  std::int32_t place = 0, sharers = 1;
};

struct WorkerOrder {
  CaseSpec spec;
  std::filesystem::path log_file;
  std::vector<std::string> phase_names;
  std::chrono::milliseconds timeout{0}, stall_timeout{0};
  std::optional<std::uint64_t> memory_limit_bytes;
  std::uint64_t log_limit_bytes = default_log_limit_bytes;
  std::int64_t threads = 0;  // 0: what OMP_NUM_THREADS says, else the share of the processors
  ProcessorShare share;
  bool bind = false;        // the rank keeps to its share of the processors
  std::string nsys_report;  // "": not under nsys
};

nlohmann::json to_json(const WorkerOrder& order);
WorkerOrder worker_order_from_json(const nlohmann::json& json);

// A case's only rank: rank 0 of 1. Files and logs lie in the run folder.
WorkerOrder make_order(const Case& c, const std::string& device_kind, const CaseContext& context);
// The same for one of several ranks, with files of its own.
WorkerOrder make_order(const Case& c, const std::string& device_kind, const CaseContext& context, const RankSpec& rank,
                       std::int32_t device_ordinal);

// `wake_fd`: InterruptHandler's of this process.
WorkerRequest make_request(const WorkerOrder& order, int wake_fd);
// The value of OMP_NUM_THREADS for a worker: the order's, else what is set for this process, else its share.
std::string thread_setting(const WorkerOrder& order);

}  // namespace assay::host
