// libassay_comm_gloo.so of this SDK release, as a compiler with another C++ ABI makes it: its strings are laid out
// differently, so that a plugin must not call it.
#include <assay/comm/communicator.hpp>

#include <cstdlib>

namespace {

assay::comm::Communicator* create(const assay_comm&, const assay_device_access&, void*, const assay::comm::Options&) {
  std::abort();
}

}  // namespace

extern "C" ASSAY_EXPORT const assay::comm::BackendFactory assay_comm_backend_v1;
extern "C" constinit const assay::comm::BackendFactory assay_comm_backend_v1 = {assay::comm::interface_id, create};
