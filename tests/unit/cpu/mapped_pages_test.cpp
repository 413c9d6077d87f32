// Memory of the CPU device: an overrun is seen within its last page, too.
#include "cpu/mapped_pages.hpp"

#include <gtest/gtest.h>

namespace assay::cpu {
namespace {

TEST(MappedPages, TheSanitizerReportsWhatFollowsTheBytes) {
#ifndef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "needs the address sanitizer";
#else
  std::size_t length = 0;
  auto* const bytes = static_cast<volatile char*>(map_pages(100, &length));
  ASSERT_NE(bytes, nullptr);
  forbid_rest(const_cast<char*>(bytes), 100, length);
  bytes[99] = 1;
  EXPECT_DEATH(bytes[100] = 1, "use-after-poison");
  EXPECT_DEATH(bytes[length - 1] = 1, "use-after-poison");
  unmap_pages(const_cast<char*>(bytes), length);
#endif
}

TEST(MappedPages, WhereTheyWereOtherMemoryMayBe) {
  for (int i = 0; i < 100; ++i) {
    std::size_t length = 0;
    auto* const bytes = static_cast<char*>(map_pages(1, &length));
    ASSERT_NE(bytes, nullptr);
    bytes[length - 1] = 1;  // the kernel likes to map at the same place again
    forbid_rest(bytes, 1, length);
    unmap_pages(bytes, length);
  }
}

}  // namespace
}  // namespace assay::cpu
