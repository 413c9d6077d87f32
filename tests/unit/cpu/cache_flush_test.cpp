// What makes the processors' caches forget: how large they are, and whether all of a memory is walked through.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <new>

#include "cache_flush.hpp"

namespace assay::cpu {
namespace {

struct alignas(cache_line_bytes) Line {
  std::uint64_t words[cache_line_bytes / sizeof(std::uint64_t)] = {};
};

TEST(CacheFlush, ReadsEachLineOnce) {
  for (const std::size_t lines : {0u, 1u, 7u, 1023u, 40'000u}) {
    const auto memory = std::make_unique<Line[]>(lines);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < lines; ++i) expected += memory[i].words[0] = 1 + i * i;
    EXPECT_EQ(walk_through(memory.get(), lines * sizeof(Line)), expected) << lines << " lines";
  }
}

// Of the third level the C library has another opinion on some processors: that of all the package.
TEST(CacheFlush, TheLastLevelIsNoSmallerThanTheSecond) {
  const long known = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (known <= 0) GTEST_SKIP() << "the C library does not say how large the caches are";
  EXPECT_GE(last_level_cache_bytes(), static_cast<std::size_t>(known));
}

}  // namespace
}  // namespace assay::cpu
