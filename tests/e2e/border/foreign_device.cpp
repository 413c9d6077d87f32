// libassay_device_cpu.so of this SDK release, as a compiler with another C++ ABI makes it: the table is C and serves
// every host, its compute operations are C++ and must not be called.
#include <assay/device.h>
#include <dlfcn.h>
#include <assay/compute/backend.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

assay::compute::Backend* create(assay_device*, void*) { std::abort(); }

const void* get_extension(const char* id) noexcept {
  static constexpr assay::compute::BackendFactory factory{assay::compute::interface_id, create};
  return std::strcmp(id, "assay.compute/1") == 0 ? &factory : nullptr;
}

assay_device_api foreign() {
  void* const library = dlopen(REAL_DEVICE, RTLD_NOW | RTLD_LOCAL);
  const void* const symbol = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
  if (!symbol) {
    std::fprintf(stderr, "the device behind the foreign one: %s\n", dlerror());
    std::abort();
  }
  assay_device_api api = *static_cast<const assay_device_api*>(symbol);
  api.get_extension = get_extension;
  return api;
}

}  // namespace

// Made when the library is opened.
extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = foreign();
