#include "record/case_record.hpp"

#include <fmt/format.h>

namespace assay::host::record {

std::string text_of(const VerifiedCase& which) {
  return fmt::format("case {}{} ({})", which.index + 1, which.repeat ? fmt::format(", repeat {}", *which.repeat) : "",
                     which.hash);
}

}  // namespace assay::host::record
