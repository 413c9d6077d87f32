// Library through the CUDA runtime and libnccl.
#pragma once
#include <memory>

#include "library.hpp"

namespace assay::comm::nccl {

// For the device that `compute` is a stream of. `copy_engines`: as Options has it. Throws assay::Error.
std::unique_ptr<Library> make_cuda_library(Stream compute, bool copy_engines);

}  // namespace assay::comm::nccl
