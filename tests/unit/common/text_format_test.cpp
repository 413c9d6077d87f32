#include "common/text_format.hpp"

#include "common/rank_name.hpp"
#include "common/utc.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace assay::host {
namespace {

TEST(TextFormat, SignificantDigits) {
  EXPECT_EQ(significant_digits(0, 4), "0");
  EXPECT_EQ(significant_digits(0.0123456, 4), "0.01235");
  EXPECT_EQ(significant_digits(1.0, 4), "1.000");
  EXPECT_EQ(significant_digits(9.99996, 4), "10.00");
  EXPECT_EQ(significant_digits(999.96, 4), "1,000");
  EXPECT_EQ(significant_digits(12345.6, 4), "12,346");
  EXPECT_EQ(significant_digits(-1234567.0, 4), "-1,234,567");
  EXPECT_EQ(significant_digits(0.0000012346, 4), "1.235e-06");
  EXPECT_EQ(significant_digits(std::numeric_limits<double>::infinity(), 4), "inf");
  EXPECT_EQ(significant_digits(10.000133514404297, 6), "10.0001");
  EXPECT_EQ(significant_digits(9.999999, 6), "10.0000");
}

TEST(TextFormat, Thousands) {
  EXPECT_EQ(group_thousands("1"), "1");
  EXPECT_EQ(group_thousands("999"), "999");
  EXPECT_EQ(group_thousands("1000"), "1,000");
  EXPECT_EQ(group_thousands("-128625408"), "-128,625,408");
  EXPECT_EQ(group_thousands("1234.5678"), "1,234.5678");
  EXPECT_EQ(group_thousands(""), "");
}

TEST(TextFormat, WidthIsOfTheScreen) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("µs ±"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u);  // a combining accent
  EXPECT_EQ(display_width("模型"), 4u);
  EXPECT_EQ(display_width("\xff\xfe"), 2u);  // no UTF-8: a sign each
  EXPECT_EQ(display_width("\xe6\xa8"), 2u);  // cut in the middle of a character
  EXPECT_EQ(pad_to("模型", 6, Align::right), "  模型");
  EXPECT_EQ(pad_to("abc", 2, Align::left), "abc");
}

TEST(TextFormat, FitsToWidth) {
  EXPECT_EQ(fit_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(fit_to_width("abcdef", 4), "abc…");
  EXPECT_EQ(fit_to_width("模型模型", 4), "模…");
  EXPECT_EQ(fit_to_width("abc", 0), "");
}

TEST(TextFormat, OneLineDropsWhatDrivesATerminal) {
  EXPECT_EQ(one_line("a\nb\tc\x1b[2J"), "a b c [2J");
  EXPECT_EQ(one_line("ok ±\xc2\x9b"), "ok ± ");
  EXPECT_EQ(one_line("\xff"), "\xef\xbf\xbd");
}

TEST(TextFormat, CsvQuoting) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(Utc, BothSpellingsReadBack) {
  const WallTime time = WallTime(std::chrono::seconds(1795175999));
  EXPECT_EQ(utc_stamp(time), "20261120T115959Z");
  EXPECT_EQ(utc_text(time), "2026-11-20T11:59:59Z");
  EXPECT_EQ(parse_utc("20261120T115959Z"), time);
  EXPECT_EQ(parse_utc("2026-11-20T11:59:59Z"), time);
  for (const char* text : {"", "20261120T115959", "20261320T115959Z", "20261120T245959Z", "2026-11-20 11:59:59Z",
                           "2026112xT115959Z", "20260230T000000Z", "2400-01-01T00:00:00Z", "0001-01-01T00:00:00Z"})
    EXPECT_FALSE(parse_utc(text)) << text;
}

TEST(Utc, TimesWithAZone) {
  const WallTime time = WallTime(std::chrono::seconds(1795175999));
  for (const char* text : {"2026-11-20T11:59:59Z", "2026-11-20T11:59:59.123456+00:00", "2026-11-20 03:59:59-08:00",
                           "2026-11-20T17:29:59+05:30"})
    EXPECT_EQ(parse_time_with_zone(text), time) << text;
  for (const char* text : {"2026-11-20T11:59:59", "2026-11-20 11:59:59", "2026-11-20T11:59:59+0x:00", ""})
    EXPECT_FALSE(parse_time_with_zone(text)) << text;
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("one two  three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("a unbreakable b", 4), (std::vector<std::string>{"a", "unbreakable", "b"}));
  EXPECT_TRUE(wrapped("  ", 4).empty());
}

TEST(TextFormat, TextHangsBesideItsHead) {
  EXPECT_EQ(hanging("  a ", "one two three four", 5, 26), "  a  one two three four\n");
  EXPECT_EQ(hanging("  a ", "one two three four five six", 5, 26), "  a  one two three four\n     five six\n");
  EXPECT_EQ(hanging("  a long head  ", "one", 5, 26), "  a long head\n     one\n") << "below it";
  EXPECT_EQ(hanging("  a ", "one two three four five six", 5, 0), "  a  one two three four five six\n");
  EXPECT_EQ(hanging("a", "", 5, 26), "a\n");
}

TEST(Refilled, KeepsParagraphsAndLists) {
  EXPECT_EQ(refilled("one two\nthree\n\nfour\n  as it is  here\nfive", 20),
            "one two three\n\nfour\n  as it is  here\nfive");
}

TEST(RanksText, SaysRanges) {
  const auto text = [](std::vector<std::int32_t> ranks) { return ranks_text(ranks); };
  EXPECT_EQ(text({3}), "rank 3");
  EXPECT_EQ(text({1, 3}), "ranks 1 and 3");
  EXPECT_EQ(text({1, 2}), "ranks 1 and 2");
  EXPECT_EQ(text({0, 1, 4, 5, 6, 9}), "ranks 0, 1, 4 to 6 and 9");
  EXPECT_EQ(text({4, 5, 6}), "ranks 4 to 6");
}

TEST(WithoutFigures, LeavesWordsAndRanks) {
  EXPECT_EQ(without_figures("rank 12 waited 31.5% of 1,243 ms in bf16 on sm_90"),
            "rank 12 waited #% of # ms in bf16 on sm_90");
  EXPECT_EQ(without_figures("0.5"), "#");
  EXPECT_TRUE(has_higher_figures("waited 18.7% of 5 ms", "waited 7.6% of 9 ms"));
  EXPECT_FALSE(has_higher_figures("waited 7.6% of 9 ms", "waited 18.7% of 5 ms"));
  EXPECT_TRUE(has_higher_figures("took 1,243 ms", "took 9 ms"));
  EXPECT_FALSE(has_higher_figures("took 9 ms", "took 9 ms"));
  EXPECT_EQ(without_figures("drifts by -11% in 1-3"), "drifts by #% in #-#");
  EXPECT_TRUE(has_higher_figures("drifts by -11%", "drifts by +3%"));
  EXPECT_EQ(range_of_figures("case 1 drifts by +3%", "case 1 drifts by -11%"), "+3% to -11%");
  EXPECT_EQ(range_of_figures("took 9 ms", "took 9 ms"), "");
}

TEST(CommaSeparated, JoinsListsAndDropsWhatIsEmpty) {
  EXPECT_EQ(comma_separated({"a,b", "c", ",d,,"}), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_TRUE(comma_separated({"", ","}).empty());
}

}  // namespace
}  // namespace assay::host
