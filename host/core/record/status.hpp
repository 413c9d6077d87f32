// How a case ended, and what was said of its result and its conditions: the words of a record (docs/record.md).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::record {

// `outdated` is the status of a record whose case other code or another machine had made: a resumed run
// says so before it runs the case again. `unknown` is that of a record from an assay that knows more of them. Both are
// never ok, and never finished.
enum class Status { ok, oom, timeout, crashed, unsupported, wrong_result, failed, outdated, unknown };
const char* name_of(Status status);  // "ok", "wrong_result"
std::optional<Status> status_of(std::string_view name);
std::vector<std::string> status_words();  // of all but `outdated` and `unknown`, which no case ends with

// `partial`: what was checked is right, and a part that ought to be checked was not. `as_case`: the account of the
// steps is right, and another case of the run, which computes the same, was verified. `by_account`: that account alone.
enum class Verification { ok, partial, wrong_result, not_checked, as_case, by_account };
const char* name_of(Verification verification);  // "not checked"
std::optional<Verification> verification_of(std::string_view name);

// Whether the figures may be taken for the device's own. The best comes first: of several ranks the worst one's counts.
// `power_limited` is as good as valid: a GPU at its power cap with a steady clock runs as large products run on it.
enum class ValidityVerdict { valid, power_limited, unknown, throttled, contended };
const char* name_of(ValidityVerdict verdict);
std::optional<ValidityVerdict> validity_verdict_of(std::string_view name);

}  // namespace assay::host::record
