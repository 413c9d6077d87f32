// What libassay_comm_gloo.so exports.
#include "communicator.hpp"

namespace {

assay::comm::Communicator* create(const assay_comm& comm, const assay_device_access& device, void*,
                                  const assay::comm::Options& options) {
  if (std::string_view(device.api->kind) != "cpu")
    throw assay::Error(ASSAY_UNSUPPORTED, std::string("gloo moves host memory, and the case runs on device '") +
                                              device.api->kind + "'; use device \"cpu\", or backend \"nccl\"");
  if (options.copy_engines)
    throw assay::Error(ASSAY_UNSUPPORTED, "gloo has no copy engines to gather by; take comm = \"nccl\" on a GPU");
  if (options.on_compute_stream)
    throw assay::Error(ASSAY_UNSUPPORTED, "gloo has no streams to put a collective on; leave out stream = \"compute\"");
  return new assay::comm::gloo_backend::GlooCommunicator(comm, assay::comm::Members(comm, options.members));
}

}  // namespace

extern "C" ASSAY_EXPORT const assay::comm::BackendFactory assay_comm_backend_v1;
extern "C" constinit const assay::comm::BackendFactory assay_comm_backend_v1 = {assay::comm::interface_id, create};
