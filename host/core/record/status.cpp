#include "record/status.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace assay::host::record {
namespace {

constexpr std::array<const char*, 9> status_names{"ok",           "oom",    "timeout",  "crashed", "unsupported",
                                                  "wrong_result", "failed", "outdated", "unknown"};
constexpr std::array<const char*, 6> verification_names{"ok",          "partial", "wrong_result",
                                                        "not checked", "as_case", "by_account"};
constexpr std::array<const char*, 5> verdict_names{"valid", "power_limited", "unknown", "throttled", "contended"};

template <class Enum, std::size_t N>
std::optional<Enum> find_in(const std::array<const char*, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
}

}  // namespace

const char* name_of(Status status) { return status_names[static_cast<std::size_t>(status)]; }
const char* name_of(Verification verification) { return verification_names[static_cast<std::size_t>(verification)]; }
const char* name_of(ValidityVerdict verdict) { return verdict_names[static_cast<std::size_t>(verdict)]; }

std::optional<Status> status_of(std::string_view name) { return find_in<Status>(status_names, name); }
std::vector<std::string> status_words() {
  return {status_names.begin(), status_names.begin() + static_cast<std::ptrdiff_t>(Status::outdated)};
}
std::optional<Verification> verification_of(std::string_view name) {
  return find_in<Verification>(verification_names, name);
}
std::optional<ValidityVerdict> validity_verdict_of(std::string_view name) {
  return find_in<ValidityVerdict>(verdict_names, name);
}

}  // namespace assay::host::record
