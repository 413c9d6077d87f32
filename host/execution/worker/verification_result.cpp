#include "worker/verification_result.hpp"

#include <fmt/format.h>

namespace assay::host::worker {

using record::Verification;

std::string mode_of(const VerificationAsked& asked) { return asked.mode == "full" ? "" : asked.mode; }

record::VerificationResult verified_by_account(const VerificationAsked& asked, const std::string& accounted,
                                               const std::string& in_part) {
  const std::string rest = in_part.empty() ? "" : "; " + in_part;
  if (!asked.first)
    return {Verification::by_account, accounted + "nothing else was checked ([run] verify = \"sampled\")" + rest,
            asked.mode};
  const record::VerifiedCase& first = asked.first->which;
  return {Verification::as_case,
          fmt::format("{}computes what {} does, which is verified{}{}", accounted, record::text_of(first),
                      first.status == Verification::partial ? " in part" : "", rest),
          asked.mode, first};
}

record::VerificationResult verified_by_workload(const VerificationAsked& asked, Verification verdict,
                                                const std::string& text, const std::string& in_part) {
  if (verdict != Verification::ok || in_part.empty()) return {verdict, text, mode_of(asked)};
  return {Verification::partial, text + (text.empty() ? "" : "; ") + in_part, mode_of(asked)};
}

std::string note_of_other_algorithms(const VerificationAsked& asked, bool are_equal_as_recorded) {
  return fmt::format("it was verified by itself: {} the algorithms of {} ([run] verify = \"first\")",
                     are_equal_as_recorded ? "it is not known to have run all of" : "libraries have not chosen",
                     record::text_of(asked.first->which));
}

}  // namespace assay::host::worker
