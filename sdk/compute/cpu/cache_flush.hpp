// The processors' caches, and how they are made to forget.
#pragma once
#include <cstddef>

namespace assay::cpu {

// Of all last-level caches of the processors that this process may use, together; 0 where the kernel does not tell.
std::size_t last_level_cache_bytes();

// Reads all of it, each thread its own part. Written pages would have to be written back in the step that follows.
void walk_through(const void* address, std::size_t bytes);

}  // namespace assay::cpu
