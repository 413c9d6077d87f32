// The processors' caches, and how they are made to forget.
#pragma once
#include <cstddef>
#include <cstdint>

namespace assay::cpu {

// Of all last-level caches of the processors that this process may use, together; 0 if the kernel does not report them.
std::size_t last_level_cache_bytes();

inline constexpr std::size_t cache_line_bytes = 64;

// Reads the first eight bytes of each cache line, each thread its own part, and returns their sum. Written pages would
// have to be written back in the step that follows. `address` is aligned to a cache line.
std::uint64_t walk_through(const void* address, std::size_t bytes);

}  // namespace assay::cpu
