// What a status that a plugin returns comes to in the record of its case.
#pragma once
#include <assay/abi.h>

#include <optional>
#include <string>

#include "record/status.hpp"

namespace assay::host::worker {

record::Status status_after(assay_status status);
// The result is empty where the status is no verdict but a failure of the verification itself.
std::optional<record::Verification> verification_after(assay_status status);
// "invalid argument"; "" where the case's status says it.
std::string kind_of_failure(assay_status status);

}  // namespace assay::host::worker
