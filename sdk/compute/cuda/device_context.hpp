// Whether this process has a context on an opened GPU. One that was opened to be looked at has none until something
// needs it.
#pragma once
#include <assay/device.h>

namespace assay::cuda {

bool has_context(const assay_device& device) noexcept;
// Makes it where there is none, and the GPU current on the calling thread. Throws Error.
void need_context(assay_device& device);

}  // namespace assay::cuda
