// What became of each rank of a case, in a form that travels between machines.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/supervise_group.hpp"
#include "results/record.hpp"

namespace assay::host {

struct RankReport {
  std::int32_t rank = 0;
  std::string host;
  // The worker's part of the record, or what is known of a worker that left none. Its reason does not name the rank.
  Record part;
  std::optional<FailureKind> failure;  // of the rank that its machine holds for the culprit
  bool waited = false;                 // when it was last looked at, for another rank or its device
  double last_sign_s = 0;              // of life, from the start of the case
};

// The worker's part of the record: its own, or what is known of a worker that gave none.
Record part_of(const WorkerOutcome& outcome);

// `begin`: when the group was started.
std::vector<RankReport> reports_of(const GroupOutcome& outcome, const std::vector<std::int32_t>& ranks,
                                   const std::string& host, std::chrono::steady_clock::time_point begin);

// "rank 1 on n2: killed by SIGKILL ..."
std::string named_reason(const RankReport& report);

Record to_record(const RankReport& report);
RankReport rank_report_from(const Record& record);

// For GroupRequest::judge_result.
ResultVerdict judge_result(const std::string& result_line);

// Of all machines' reports, in the order of ranks, the one part of the case's record.
Record combine(std::vector<RankReport> reports, double confidence);

}  // namespace assay::host
