// Library through the CUDA runtime and libnccl.
#pragma once
#include <memory>

#include "library.hpp"

namespace assay::comm::nccl {

// For the device that `compute` is a stream of. Throws assay::Error.
std::unique_ptr<Library> make_cuda_library(Stream compute);

}  // namespace assay::comm::nccl
