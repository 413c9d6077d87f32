// Which cases of a run are verified in full ([run] verify), and to which of them the others refer.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "record/case_record.hpp"
#include "run/plan.hpp"

namespace assay::host::run {

// Of one invocation, on the environment that it has found.
class VerifiedCases {
 public:
  // `verify`: "full", "first" or "sampled".
  explicit VerifiedCases(std::string verify) : verify_(std::move(verify)) {}

  // A case that has run: where it was verified in full, others may refer to it from here on.
  void add(const CasePlan& planned, const record::CaseRecord& record);
  // How the case is to be verified.
  worker::VerificationAsked asked_for(const CasePlan& planned) const;
  // Of a case whose computation was found wrong: its result, for which nothing needs to run.
  std::optional<record::CaseResult> known_wrong(const CasePlan& planned) const;

 private:
  std::string verify_;
  std::map<std::string, worker::FirstCase> first_;  // by CasePlan::computation
  std::map<std::string, std::string> why_wrong_;
};

// Whether a record was verified as [run] verify wants it today: a case that refers to another one, or has its account
// alone, is to run again where all are to be verified in full.
bool is_verified_enough(const record::CaseRecord& record, const std::string& verify);

}  // namespace assay::host::run
