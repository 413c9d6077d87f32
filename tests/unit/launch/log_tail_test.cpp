#include "launch/log_tail.hpp"

#include <gtest/gtest.h>

#include "temporary_folder.hpp"

namespace assay::host::launch {
namespace {

using Lines = std::vector<std::string>;

TEST(PrintableUtf8, KeepsTextAndReplacesTheRest) {
  EXPECT_EQ(printable_utf8("a\tb\nµ € 😀"), "a\tb\nµ € 😀");
  EXPECT_EQ(printable_utf8("\x1b[31mred\r\x7f"), "?[31mred??");
  EXPECT_EQ(printable_utf8("\xff\xfe"), "??");
  EXPECT_EQ(printable_utf8("\xC0\xAF"), "??");            // overlong
  EXPECT_EQ(printable_utf8("\xED\xA0\x80"), "???");       // a surrogate
  EXPECT_EQ(printable_utf8("\xF4\x90\x80\x80"), "????");  // beyond Unicode
  EXPECT_EQ(printable_utf8("\xE2\x82"), "??");            // cut short
  EXPECT_EQ(printable_utf8("\xC2\x9B"), "?");             // a terminal's control sequence introducer
}

class LastLines : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(file_, std::ios::binary) << text; }
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "log";
};

TEST_F(LastLines, AreTheLastOnesInOrder) {
  write("1\n2\n3\n4\n");
  EXPECT_EQ(last_lines(file_, 2), (Lines{"3", "4"}));
  EXPECT_EQ(last_lines(file_, 20), (Lines{"1", "2", "3", "4"}));
}

TEST_F(LastLines, TakeALineWithoutItsEnd) {
  write("1\n2");
  EXPECT_EQ(last_lines(file_, 1), Lines{"2"});
}

TEST_F(LastLines, StartAtThisWorkersPart) {
  write("of an earlier run\nmine\n");
  EXPECT_EQ(last_lines(file_, 20, 18), Lines{"mine"});
  EXPECT_EQ(last_lines(file_, 20, 23), Lines{});
}

TEST_F(LastLines, CutALongLine) {
  write(std::string(5'000'000, 'x') + "\nend\n");
  EXPECT_EQ(last_lines(file_, 2), (Lines{std::string(1000, 'x'), "end"}));
}

TEST_F(LastLines, OfAMissingFileAreNone) { EXPECT_EQ(last_lines(folder_ / "none", 20), Lines{}); }

}  // namespace
}  // namespace assay::host::launch
