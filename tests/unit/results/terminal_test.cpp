#include "results/terminal.hpp"

#include "common/text_format.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace assay::host::results {
namespace {

using namespace std::chrono_literals;

// A progress display on a clock and a screen of the test's own.
class ProgressTest : public ::testing::Test {
 protected:
  Progress make(ProgressMode mode) {
    return Progress(mode, {[this](std::string_view text) { writes_.emplace_back(text); }, [this] { return width_; },
                           [this] { return std::chrono::steady_clock::time_point(now_); }});
  }
  std::string last() const { return writes_.empty() ? "" : writes_.back(); }

  std::vector<std::string> writes_;
  std::size_t width_ = 120;
  std::chrono::nanoseconds now_ = 1s;
};

TEST_F(ProgressTest, PlainIsALineAtEachEndOfACase) {
  Progress progress = make(ProgressMode::plain);
  progress.case_started(2, 12, "size=small pass=forward");
  progress.update("measure", 1, 10, "forward", 1s);
  progress.case_finished("ok", "ok step 1,243 ms ± 0.8%");
  progress.case_started(3, 12, "");
  progress.case_finished("oom", "wanted 3 MiB");
  progress.finish();
  EXPECT_EQ(writes_, (std::vector<std::string>{"case 3/12 size=small pass=forward\n",
                                               "case 3/12 size=small pass=forward: ok step 1,243 ms ± 0.8%\n",
                                               "case 4/12\n", "case 4/12: oom: wanted 3 MiB\n"}));
}

TEST_F(ProgressTest, ACaseHasTheNumberThatRecordsGiveIt) {
  Progress progress = make(ProgressMode::plain);
  progress.case_started(0, 2, "size=xl", 1);
  progress.case_started(1, 2, "size=xl pass=forward", 5);
  progress.case_finished("ok", "ok");
  EXPECT_EQ(writes_, (std::vector<std::string>{"case 1/2 size=xl\n", "case 5 (2 of 2) size=xl pass=forward\n",
                                               "case 5 (2 of 2) size=xl pass=forward: ok\n"}));
}

TEST_F(ProgressTest, PlainShowsLifeInALongCase) {
  Progress progress = make(ProgressMode::plain);
  progress.case_started(0, 2, "a=b");
  for (int i = 0; i < 65; ++i) {
    now_ += 1s;
    progress.update("measure", i, 100, "forward", std::chrono::seconds(i));
  }
  EXPECT_EQ(writes_,
            (std::vector<std::string>{
                "case 1/2 a=b\n",
                "case 1/2 a=b | measure 29/100 forward | 1.00 s/step | ETA 2:52 | 0:30 since the case began\n",
                "case 1/2 a=b | measure 59/100 forward | 1.00 s/step | ETA 2:22 | 1:00 since the case began\n"}));
}

TEST_F(ProgressTest, AMessageIsBrokenBetweenWordsOnATerminalAlone) {
  width_ = 24;
  make(ProgressMode::terminal).message("a note that is longer than the line");
  EXPECT_EQ(last(), "a note that is longer\n  than the line\n");
  make(ProgressMode::plain).message("a note that is longer than the line");
  EXPECT_EQ(last(), "a note that is longer than the line\n");
}

TEST_F(ProgressTest, AMessageDrivesNoTerminal) {
  EXPECT_EQ(line_on_terminal("it names 'a\x1b[31m\nb\x07'", -1), "it names 'a [31m b '\n");
}

TEST_F(ProgressTest, QuietWritesNothing) {
  Progress progress = make(ProgressMode::quiet);
  progress.case_started(0, 1, "a=b");
  progress.update("measure", 1, 10, "", 1s);
  progress.message("note");
  progress.case_finished("ok", "ok");
  progress.finish();
  EXPECT_TRUE(writes_.empty());
}

TEST_F(ProgressTest, TheLineShowsCaseStageStepRateAndEta) {
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(2, 3, "size=small pass=forward");
  EXPECT_EQ(last(), "\r\x1b[Kcase 3/3 size=small pass=forward");
  now_ += 10s;
  progress.update("measure", 5, 10, "forward", 6200ms);
  EXPECT_EQ(last(), "\r\x1b[Kcase 3/3 size=small pass=forward | measure 5/10 forward | 1.24 s/step | ETA 0:06");
  now_ += 1s;
  progress.update("measure", 4, 0, "", 10ms);  // the stopping rule decides
  EXPECT_EQ(last(), "\r\x1b[Kcase 3/3 size=small pass=forward | measure 4 | 2.5 ms/step");
  now_ += 1s;
  progress.update("setup", 0, 0, "", 0s);
  EXPECT_EQ(last(), "\r\x1b[Kcase 3/3 size=small pass=forward | setup");
  progress.case_finished("ok", "ok");
  EXPECT_EQ(last(), "\r\x1b[Kcase 3/3 size=small pass=forward: ok\n");
}

TEST_F(ProgressTest, EtaKnowsTheCasesBefore) {
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 4, "");
  now_ += 40s;
  progress.case_finished("ok", "ok");
  progress.case_started(1, 4, "");
  now_ += 10s;
  progress.update("setup", 0, 0, "", 10s);  // 30 s of this one, twice 40 s
  EXPECT_EQ(last(), "\r\x1b[Kcase 2/4 | setup | ETA 1:50");
  now_ += 1s;
  progress.update("measure", 1, 100, "", 1s);  // slower than the one before: 99 s are left of it
  EXPECT_EQ(last(), "\r\x1b[Kcase 2/4 | measure 1/100 | 1.00 s/step | ETA 2:59");
}

TEST_F(ProgressTest, EtaOfTheFirstCaseCountsTheOthersLikeIt) {
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 3, "");
  now_ += 10s;
  progress.update("measure", 5, 10, "", 5s);  // 5 s left, then two cases of 15 s
  EXPECT_EQ(last(), "\r\x1b[Kcase 1/3 | measure 5/10 | 1.00 s/step | ETA 0:35");
}

TEST_F(ProgressTest, EtaGoesByWhatIsExpectedOfEachCase) {
  Progress progress = make(ProgressMode::terminal);
  progress.expect({10, 20, std::nullopt, 100});
  progress.case_started(0, 4, "");
  now_ += 4s;
  progress.update("setup", 0, 0, "", 4s);  // 6 s of this one, 20 s, one as long as this one, 100 s
  EXPECT_EQ(last(), "\r\x1b[Kcase 1/4 | setup | ETA 2:16");
  now_ += 16s;  // twice as long as expected: so will the others be
  progress.case_finished("ok", "ok");
  progress.case_started(1, 4, "");
  now_ += 10s;
  progress.update("setup", 0, 0, "", 10s);  // 30 s, 20 s as the mean, 200 s
  EXPECT_EQ(last(), "\r\x1b[Kcase 2/4 | setup | ETA 4:10");
}

TEST_F(ProgressTest, EtaOfCasesThatGrowIsALeastOne) {
  Progress progress = make(ProgressMode::terminal);
  for (std::int64_t i = 0; i < 3; ++i) {
    progress.case_started(i, 5, "");
    now_ += std::chrono::seconds(1 << (2 * i));  // 1, 4, 16 s
    progress.case_finished("ok", "ok");
  }
  progress.case_started(3, 5, "");
  now_ += 1s;
  progress.update("setup", 0, 0, "", 1s);  // 6 s by the mean of 7, and one case of at least 16 s
  EXPECT_EQ(last(), "\r\x1b[Kcase 4/5 | setup | ETA over 0:22");
}

TEST_F(ProgressTest, WhatIsLeftOfACaseHasTheVerificationsOfThoseBefore) {
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 2, "");
  now_ += 10s;
  progress.update("verify", 0, 0, "", 0s, "operations");
  EXPECT_EQ(last(), "\r\x1b[Kcase 1/2 | verify (operations)");
  now_ += 30s;
  progress.case_finished("ok", "ok");
  progress.case_started(1, 2, "");
  now_ += 20s;
  progress.update("measure", 5, 10, "", 20s);
  EXPECT_EQ(last(), "\r\x1b[Kcase 2/2 | measure 5/10 | 4.00 s/step | ETA 0:50");
  now_ += 20s;
  progress.update("verify", 0, 0, "", 0s, "data");
  EXPECT_EQ(last(), "\r\x1b[Kcase 2/2 | verify (data) | ETA 0:30");
  now_ += 10s;
  progress.update("verify", 0, 0, "", 0s, "operations");
  EXPECT_EQ(last(), "\r\x1b[Kcase 2/2 | verify (operations) | ETA 0:20");
}

TEST_F(ProgressTest, AFinishedCaseIsOneLineOfTheTerminal) {
  width_ = 80;
  const std::string name = "size=medium pass=train_step precision=bf16 execution=graph batch_size=16 context=2048";
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 12, name);
  progress.case_finished("ok", "ok step 1,243 ms ± 0.8%");
  EXPECT_EQ(last(), "\r\x1b[Kcase 1/12 size=medium pass=train_step precision=bf16 …: ok step 1,243 ms ± 0.8%\n");
  progress.case_started(1, 12, name);
  progress.case_finished("failed", "failed: " + std::string(100, 'x'));
  EXPECT_EQ(last(), "case 2/12 size=medium pass=train_step precis…: failed: " + std::string(23, 'x') + "…\n");
  Progress plain = make(ProgressMode::plain);
  plain.case_started(0, 12, name);
  plain.case_finished("ok", "ok step 1,243 ms ± 0.8%");
  EXPECT_EQ(last(), "case 1/12 " + name + ": ok step 1,243 ms ± 0.8%\n") << "a log is searched";
}

TEST_F(ProgressTest, DrawsAtMostTenTimesASecond) {
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 1, "");
  const std::size_t before = writes_.size();
  for (int i = 1; i <= 2000; ++i) {
    now_ += 1ms;
    progress.update("measure", i, 2000, "", 1ms * i);
  }
  EXPECT_EQ(writes_.size() - before, 20u);
}

TEST_F(ProgressTest, ALineNeverReachesTheEdge) {
  width_ = 20;
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 1, "size=模型模型模型模型");
  const std::string line = last().substr(std::string("\r\x1b[K").size());
  EXPECT_EQ(line, "case 1/1 size=模型…");
  EXPECT_LE(display_width(line), 19u);
}

TEST_F(ProgressTest, TextOfAPluginCannotBreakTheLine) {
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 1, "a=\x1b[2J");
  EXPECT_EQ(last(), "\r\x1b[Kcase 1/1 a= [2J");
  progress.case_finished("failed", "two\nlines");
  EXPECT_EQ(last(), "\r\x1b[Kcase 1/1 a= [2J: failed: two lines\n");
}

TEST_F(ProgressTest, MessagesStandOnLinesOfTheirOwn) {
  Progress progress = make(ProgressMode::terminal);
  progress.case_started(0, 1, "");
  progress.message("little space");
  EXPECT_EQ(last(), "\r\x1b[Klittle space\n");
  const std::size_t before = writes_.size();
  progress.finish();  // nothing is left on the screen to erase
  EXPECT_EQ(writes_.size(), before);
}

TEST(Terminal, DurationText) {
  EXPECT_EQ(clock_text(0s), "0:00");
  EXPECT_EQ(clock_text(42400ms), "0:42");
  EXPECT_EQ(clock_text(723s), "12:03");
  EXPECT_EQ(clock_text(3723s), "1:02:03");
  EXPECT_EQ(clock_text(-5s), "0:00");
}

TEST(Terminal, AFileIsPlain) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    Progress progress = Progress::for_stream(file, false);
    progress.case_started(0, 1, "a=b");
    progress.case_finished("ok", "ok");
    progress.finish();
  }
  std::rewind(file);
  char text[100] = {};
  text[std::fread(text, 1, sizeof text - 1, file)] = 0;
  std::fclose(file);
  EXPECT_STREQ(text, "case 1/1 a=b\ncase 1/1 a=b: ok\n");
}

}  // namespace
}  // namespace assay::host::results
