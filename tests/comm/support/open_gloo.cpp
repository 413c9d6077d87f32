#include "open_gloo.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace assay::test {

const comm::BackendFactory& gloo_factory(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) throw std::runtime_error(dlerror());
  const auto* factory = static_cast<const comm::BackendFactory*>(dlsym(handle, "assay_comm_backend_v1"));
  if (!factory) throw std::runtime_error(library + " does not export assay_comm_backend_v1");
  return *factory;
}

std::unique_ptr<comm::Communicator> open_gloo(const std::string& library, const assay_comm& table,
                                              const char* device_kind, const comm::Options& options) {
  assay_device_api api{};
  api.struct_size = sizeof api;
  api.kind = device_kind;
  const assay_device_access access{sizeof access, &api, nullptr};
  return std::unique_ptr<comm::Communicator>(gloo_factory(library).create(table, access, nullptr, options));
}

}  // namespace assay::test
