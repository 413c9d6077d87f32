#include "profile/pickle.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace assay::host::profile {
namespace {

using namespace std::string_literals;

TEST(PickleWriter, EmptyContainersHaveNoMark) {
  PickleWriter list;
  list.begin_list();
  list.end_list();
  EXPECT_EQ(list.finish(), "\x80\x02]."s);
  PickleWriter dict;
  dict.begin_dict();
  dict.end_dict();
  EXPECT_EQ(dict.finish(), "\x80\x02}."s);
}

TEST(PickleWriter, IntegersTakeTheShortestForm) {
  PickleWriter out;
  out.begin_list();
  for (const std::int64_t n : {0L, 255L, 256L, 65535L, 65536L, -1L, 2147483647L, 2147483648L, -2147483649L})
    out.integer(n);
  out.end_list();
  EXPECT_EQ(out.finish(),
            "\x80\x02]("
            "K\x00"
            "K\xff"
            "M\x00\x01"
            "M\xff\xff"
            "J\x00\x00\x01\x00"
            "J\xff\xff\xff\xff"
            "J\xff\xff\xff\x7f"
            "\x8a\x08\x00\x00\x00\x80\x00\x00\x00\x00"
            "\x8a\x08\xff\xff\xff\x7f\xff\xff\xff\xff"
            "e."s);
}

TEST(PickleWriter, DictionariesNestInLists) {
  PickleWriter out;
  out.begin_list();
  out.begin_dict();
  out.entry("a", "xy");
  out.key("b");
  out.boolean(true);
  out.key("c");
  out.integer_pair(0, 1);
  out.end_dict();
  out.end_list();
  EXPECT_EQ(out.finish(),
            "\x80\x02](}("
            "X\x01\x00\x00\x00"
            "aX\x02\x00\x00\x00"
            "xyX\x01\x00\x00\x00"
            "b\x88X\x01\x00\x00\x00"
            "cK\x00K\x01\x86"
            "ue."s);
}

// A reader that passes a batch to one call has a limit on the number of its arguments.
TEST(PickleWriter, LongListsAreWrittenInBatches) {
  PickleWriter out;
  out.begin_list();
  for (int i = 0; i < 2001; ++i) out.boolean(false);
  out.end_list();
  const std::string batch(1000, '\x89');
  EXPECT_EQ(out.finish(), "\x80\x02]("s + batch + "e(" + batch + "e(\x89" + "e.");
}

}  // namespace
}  // namespace assay::host::profile
