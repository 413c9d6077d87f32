// The CPU's backend under the name of another kind of device, so that a sweep over devices has two.
#include <assay/device.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

assay_device_api renamed() {
  void* const library = dlopen(REAL_DEVICE, RTLD_NOW | RTLD_LOCAL);
  const void* const symbol = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
  if (!symbol) {
    std::fprintf(stderr, "the device behind the renamed one: %s\n", dlerror());
    std::abort();
  }
  assay_device_api api = *static_cast<const assay_device_api*>(symbol);
  api.kind = "cuda";
  return api;
}

}  // namespace

// The line that differs between the builds.
extern "C" ASSAY_EXPORT const int build_of_other_device = BUILD;

// Made when the library is opened.
extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = renamed();
