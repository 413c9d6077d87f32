// Counts the heap allocations of the whole process, libraries included.
#pragma once
#include <cstdint>

namespace assay::conformance {

// Calls of malloc, calloc, realloc, aligned_alloc and the rest so far, by any thread; operator new is among them.
std::uint64_t allocation_count();

}  // namespace assay::conformance
