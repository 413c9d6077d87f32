// Tells what became of each rank of a case, in a form that travels between machines.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/supervise_group.hpp"
#include "results/record.hpp"
#include "worker/case_spec.hpp"

namespace assay::host {

struct RankReport {
  std::int32_t rank = 0;
  std::string host;
  // The worker's part of the record, or what is known of a worker that left none. Its reason does not name the rank:
  // the record of a case with several ranks does, when it is made of all parts.
  Record part;
  std::optional<FailureKind> failure;  // of the rank that its machine holds for the culprit
  bool waited = false;                 // when it was last looked at, for another rank or its device
  double last_sign_s = 0;              // of life, from the start of the case
};

// The part of a record for which no worker could say anything.
Record part_without_worker(const std::string& status, const std::string& reason);

// One for each rank that ran here, `here` being their specifications. `begin`: when the group was started.
std::vector<RankReport> reports_of(const GroupOutcome& outcome, const std::vector<CaseSpec>& here,
                                   std::chrono::steady_clock::time_point begin);

bool is_ok(const RankReport& report);
// "rank 1 on n2: killed by SIGKILL ..."
std::string named_reason(const RankReport& report);

std::string to_text(const RankReport& report);
RankReport rank_report_from_text(const std::string& text);

// For GroupRequest::judge_result.
ResultVerdict judge_result(const std::string& result_line);

// Makes the one part of the case's record of all machines' reports, which are in the order of ranks.
Record combine(std::vector<RankReport> reports, double confidence);

}  // namespace assay::host
