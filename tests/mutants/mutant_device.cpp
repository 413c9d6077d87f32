// libassay_device_cpu.so of the mutants: the real CPU device, whose table it hands through, with compute operations of
// which one may be broken. The host finds it by ASSAY_DEVICE_PATH. AS_CUDA: it says that it is of kind "cuda".
#include <assay/device.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mutant_backend.hpp"
#include "narrow_backend.hpp"

namespace {

const assay_device_api& real_device() {
  static const auto* const api = [] {
    void* const library = dlopen(REAL_DEVICE, RTLD_NOW | RTLD_LOCAL);
    const void* const symbol = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
    if (!symbol) {
      std::fprintf(stderr, "the library of mutants: %s\n", dlerror());
      std::abort();
    }
    return static_cast<const assay_device_api*>(symbol);
  }();
  return *api;
}

const assay::compute::BackendFactory& real_factory() {
  return *static_cast<const assay::compute::BackendFactory*>(real_device().get_extension("assay.compute/1"));
}

assay::compute::Backend* create(assay_device* device, void* stream) {
  std::unique_ptr<assay::compute::Backend> real(real_factory().create(device, stream));
  if (std::strcmp(real->kind(), "cpu") == 0) real = std::make_unique<assay::mutants::NarrowBackend>(std::move(real));
  return new assay::mutants::MutantBackend(std::move(real));
}

const void* get_extension(const char* id) noexcept {
  static const assay::compute::BackendFactory factory{real_factory().interface_id, create};
  return std::strcmp(id, "assay.compute/1") == 0 ? &factory : real_device().get_extension(id);
}

assay_device_api wrapped() {
  assay_device_api api = real_device();
  api.get_extension = get_extension;
#ifdef AS_CUDA
  api.kind = "cuda";  // of which workloads expect fp16
#endif
  return api;
}

}  // namespace

// Made when the library is opened.
extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = wrapped();
