// How the result of a case was checked, in the words of its record.
#pragma once
#include <string>

#include "record/case_record.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::worker {

// "" where all cases are verified in full.
std::string mode_of(const VerificationAsked& asked);

// The verification of a case whose account was enough. `accounted`: what the account has shown; `in_part`: why it shows
// that of some steps alone, "" where it does of all.
record::VerificationResult verified_by_account(const VerificationAsked& asked, const std::string& accounted,
                                               const std::string& in_part);

// The verification by the workload, with its text. It is partial where the account is.
record::VerificationResult verified_by_workload(const VerificationAsked& asked, record::Verification verdict,
                                                const std::string& text, const std::string& in_part);

// The note of a case that was verified by itself though [run] verify = "first": its algorithms are others than the
// first case's, or not known to be the same.
std::string note_of_other_algorithms(const VerificationAsked& asked, bool are_equal_as_recorded);

}  // namespace assay::host::worker
