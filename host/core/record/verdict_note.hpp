// Notes that give the reason of a verdict other than `valid`: "contended: other processes took 9% of the processors".
#pragma once
#include "record/status.hpp"

#include <string>
#include <string_view>

namespace assay::host::record {

inline std::string verdict_note(ValidityVerdict verdict, std::string_view reason) {
  return std::string(name_of(verdict)) + ": " + std::string(reason);
}

// For a note without its ranks.
inline bool explains(std::string_view note, ValidityVerdict verdict) {
  return note.starts_with(verdict_note(verdict, ""));
}

}  // namespace assay::host::record
