// libassay_comm_nccl.so without a GPU: Gloo, where the device is the CPU that the pretended GPU is. So workloads
// with collectives run where the host traces kernels.
#include <dlfcn.h>
#include <assay/comm/communicator.hpp>

#include <cstdlib>

namespace {

const assay::comm::BackendFactory& gloo() {
  static const auto& factory = *[] {
    void* library = dlopen(std::getenv("GLOO_OF_PRETENDED_GPU"), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void* found = library ? dlsym(library, "assay_comm_backend_v1") : nullptr;
    if (!found) std::abort();
    return static_cast<const assay::comm::BackendFactory*>(found);
  }();
  return factory;
}

assay::comm::Communicator* create(const assay_comm& comm, const assay_device_access& device, void* stream,
                                  const assay::comm::Options& options) {
  static assay_device_api cpu = *device.api;
  cpu.kind = "cpu";
  assay_device_access access = device;
  access.api = &cpu;
  return gloo().create(comm, access, stream, options);
}

}  // namespace

extern "C" ASSAY_EXPORT const assay::comm::BackendFactory assay_comm_backend_v1;
extern "C" constinit const assay::comm::BackendFactory assay_comm_backend_v1 = {assay::comm::interface_id, create};
