#include "worker/plugin_status.hpp"

#include <fmt/format.h>

namespace assay::host::worker {

record::Status status_after(assay_status status) {
  switch (status) {
    case ASSAY_OK: return record::Status::ok;
    case ASSAY_UNSUPPORTED: return record::Status::unsupported;
    case ASSAY_OUT_OF_MEMORY: return record::Status::oom;
    case ASSAY_WRONG_RESULT: return record::Status::wrong_result;
    default: return record::Status::failed;
  }
}

std::optional<record::Verification> verification_after(assay_status status) {
  switch (status) {
    case ASSAY_OK: return record::Verification::ok;
    case ASSAY_VERIFIED_IN_PART: return record::Verification::partial;
    case ASSAY_WRONG_RESULT: return record::Verification::wrong_result;
    case ASSAY_UNSUPPORTED: return record::Verification::not_checked;
    default: return std::nullopt;
  }
}

std::string kind_of_failure(assay_status status) {
  switch (status) {
    case ASSAY_UNSUPPORTED:
    case ASSAY_OUT_OF_MEMORY:
    case ASSAY_WRONG_RESULT: return "";  // which the case's status says
    case ASSAY_INVALID_ARGUMENT: return "invalid argument";
    case ASSAY_DEVICE_ERROR: return "device error";
    case ASSAY_INTERNAL: return "the workload failed";  // its own words follow
    case ASSAY_COMM_ERROR: return "communication error";
    default: return fmt::format("status {}, which this host does not know", status);
  }
}

}  // namespace assay::host::worker
