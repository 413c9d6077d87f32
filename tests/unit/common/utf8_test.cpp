#include "common/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace assay::host {
namespace {

TEST(Utf8, IsWellFormed) {
  for (const std::string text : {"", "plain", "\u00e4\u20ac", "\U0001F600", "\uD7FF\uE000", "\U0010FFFF"})
    EXPECT_TRUE(is_utf8(text)) << text;
}

TEST(Utf8, IsNotWhatOnlyLooksLikeIt) {
  for (const std::string text : {"l\xe4nge", "\x80", "\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                                 "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xff", "\xe2\x28\xa1"})
    EXPECT_FALSE(is_utf8(text));
  EXPECT_FALSE(is_utf8(std::string("\xc3\0", 2)));
}

}  // namespace
}  // namespace assay::host
