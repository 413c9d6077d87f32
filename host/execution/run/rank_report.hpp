// What became of each rank of a case, in a form that travels between machines.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/supervise_group.hpp"
#include "record/case_record.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

struct RankReport {
  std::int32_t rank = 0;
  std::string host;
  // Its reason does not name the rank: that of a case with several ranks does, when it is made of all results.
  record::CaseResult result;
  std::optional<launch::FailureKind> failure;  // of the rank that its machine holds for the culprit
  bool waited = false;                         // when it was last looked at, for another rank or its device
  double last_sign_s = 0;                      // of life, from the start of the case
  bool asked_to_end = false;                   // by a SIGTERM that was not the host's, and failed for that
};

// One for each rank that ran here, `here` being their specifications. `begin`: when the group was started.
std::vector<RankReport> reports_of(const launch::GroupOutcome& outcome, const std::vector<worker::CaseSpec>& here,
                                   std::chrono::steady_clock::time_point begin);

bool is_ok(const RankReport& report);
// "rank 1 on n2: killed by SIGKILL ..."
std::string named_reason(const RankReport& report);

std::string to_text(const RankReport& report);
RankReport rank_report_from_text(const std::string& text);

// For GroupRequest::judge_result.
launch::ResultVerdict judge_result(const std::string& result_line);

// Whether the culprit failed because somebody else than the host asked it to end.
bool is_asked_to_end(const std::vector<RankReport>& reports);

// Makes one result of the case of all machines' reports, which are in the order of ranks.
record::CaseResult combine(std::vector<RankReport> reports, double confidence);

}  // namespace assay::host::run
