#include "common/palette.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace assay::host {
namespace {

TEST(Palette, KnowsTheWordsOfStatusesVerdictsAndSeverities) {
  EXPECT_EQ(tone_of("ok"), Tone::good);
  EXPECT_EQ(tone_of("3 crashed"), Tone::bad);
  EXPECT_EQ(tone_of("slower [1]"), Tone::bad);
  EXPECT_EQ(tone_of("cannot tell"), Tone::doubt);
  EXPECT_EQ(tone_of("warning"), Tone::doubt);
  for (const char* other : {"", "same", "okay", "none", "12", "3", "small"})
    EXPECT_EQ(tone_of(other), Tone::plain) << other;
}

TEST(Palette, PaintsWhereItHasColour) {
  EXPECT_EQ(Palette(true).paint("failed"), "\x1b[31mfailed\x1b[0m");
  EXPECT_EQ(Palette(true).paint("ok"), "\x1b[32mok\x1b[0m");
  EXPECT_EQ(Palette(true).paint("same"), "same");
  EXPECT_EQ(Palette(false).paint("failed"), "failed");
  EXPECT_EQ(Palette().paint("failed"), "failed");
}

class PaletteOfATerminal : public ::testing::Test {
 protected:
  PaletteOfATerminal() {
    main_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    ::grantpt(main_), ::unlockpt(main_);
    terminal_ = ::open(::ptsname(main_), O_RDWR | O_NOCTTY);
    ::setenv("TERM", "xterm", 1), ::unsetenv("NO_COLOR");
  }
  ~PaletteOfATerminal() override { ::close(terminal_), ::close(main_), ::unsetenv("NO_COLOR"); }
  bool has_colour() const { return Palette::of(terminal_).has_colour(); }
  int main_ = -1, terminal_ = -1;
};

TEST_F(PaletteOfATerminal, IsRefusedByNoColorADumbTerminalAndAPipe) {
  EXPECT_TRUE(has_colour());
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(has_colour()) << "an empty one says nothing";
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(has_colour());
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(has_colour());
  ::unsetenv("TERM");
  EXPECT_FALSE(has_colour());
  ::setenv("TERM", "xterm", 1);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(Palette::of(ends[1]).has_colour());
  ::close(ends[0]), ::close(ends[1]);
}

}  // namespace
}  // namespace assay::host
