#include "run/verified_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::host::run {
namespace {

constexpr std::int64_t sampled_one_in = 10;

// What is wrong with the steps of this case, by their times or their number, proves nothing about another case's.
bool is_wrong_by_itself(const record::CaseResult& result) {
  constexpr std::array<std::string_view, 3> parts_of_the_host{"repeated_steps", "new_objects", "peak"};
  return result.stage != Stage::verify ||
         std::find(parts_of_the_host.begin(), parts_of_the_host.end(), result.part) != parts_of_the_host.end();
}

// How much of a verification a record has had.
int strength_of(const record::CaseRecord& record) {
  if (!record.result.verify) return 3;
  const record::VerificationResult& verify = *record.result.verify;
  return verify.status == record::Verification::by_account ? 1 : verify.refers_to ? 2 : 3;
}

}  // namespace

void VerifiedCases::add(const CasePlan& planned, const record::CaseRecord& record) {
  if (verify_ != "first" || !record.result.verify || record.result.verify->refers_to) return;
  const record::Verification status = record.result.verify->status;
  const bool is_wrong = status == record::Verification::wrong_result;
  if (is_wrong ? is_wrong_by_itself(record.result)
               : status != record::Verification::ok && status != record::Verification::partial)
    return;
  if (!is_wrong && !record.result.is_ok()) return;
  if (!first_
           .try_emplace(planned.computation,
                        worker::FirstCase{{record.identity.index, record.identity.repeat, record.identity.hash, status},
                                          record.result.algorithms})
           .second)
    return;
  if (is_wrong) why_wrong_.emplace(planned.computation, record.result.reason);
}

worker::VerificationAsked VerifiedCases::asked_for(const CasePlan& planned) const {
  worker::VerificationAsked asked{.mode = verify_};
  if (verify_ == "sampled")
    asked.by_account = planned.values.index % sampled_one_in != 0 || planned.values.repeat.value_or(1) != 1;
  if (const auto found = first_.find(planned.computation); verify_ == "first" && found != first_.end()) {
    asked.by_account = true;
    asked.first = found->second;
  }
  return asked;
}

std::optional<record::CaseResult> VerifiedCases::known_wrong(const CasePlan& planned) const {
  const auto why = why_wrong_.find(planned.computation);
  if (why == why_wrong_.end() || planned.refusal) return std::nullopt;
  const record::VerifiedCase& first = first_.at(planned.computation).which;
  record::CaseResult result = record::result_without_worker(
      record::Status::wrong_result,
      fmt::format("it was not started: it computes what {} does ([run] verify = \"first\"), whose result is wrong: {}",
                  record::text_of(first), why->second));
  result.verify = record::VerificationResult{record::Verification::wrong_result, result.reason, verify_, first};
  return result;
}

bool is_verified_enough(const record::CaseRecord& record, const std::string& verify) {
  return strength_of(record) >= (verify == "sampled" ? 1 : verify == "first" ? 2 : 3);
}

}  // namespace assay::host::run
