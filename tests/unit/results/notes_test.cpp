#include "results/notes.hpp"

#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::results {
namespace {

using Lines = std::vector<std::string>;

Json noted(int index, const Lines& notes) {
  Json record = ok_record();
  record["index"] = index;
  record["axes"] = {{"batch_size", index}};
  record["notes"] = notes;
  return record;
}

TEST(Notes, OneCaseIsNamedWithItsAxes) {
  EXPECT_EQ(note_lines({noted(0, {}), noted(1, {"one", "two\nlines"})}),
            (Lines{"case 2 (batch_size=1): note: one", "case 2 (batch_size=1): note: two lines"}));
}

TEST(Notes, EachIsToldOnceWithItsCases) {
  EXPECT_EQ(note_lines({noted(0, {"all", "some"}), noted(1, {"some", "all"}), noted(2, {"all", "some"}),
                        noted(3, {"all"}), noted(4, {"some", "all"})}),
            (Lines{"all 5 cases: note: all", "cases 1-3, 5: note: some"}));
}

TEST(Notes, OtherFiguresAreNoOtherNote) {
  EXPECT_EQ(note_lines({noted(0, {"cv is 7.1%, above 5%"}), noted(1, {}), noted(2, {"cv is 1,243.25%, above 5%"})}),
            Lines{"cases 1, 3: note: cv is 1,243.25%, above 5% (7.1% to 1,243.25%; the highest in case 3)"});
  EXPECT_EQ(note_lines({noted(0, {"took 5 s"}), noted(1, {"took 5 s"})}), Lines{"all 2 cases: note: took 5 s"});
}

TEST(Notes, WordsAndRanksInThemKeepTheirNumbers) {
  EXPECT_EQ(note_lines({noted(0, {"in bf16", "waits for rank 1"}), noted(1, {"in fp32", "waits for rank 2"})}).size(),
            4u);
}

TEST(Notes, OfSeveralRanksAreOne) {
  EXPECT_EQ(
      note_lines({noted(0, {"waited 7.6%", "rank 1: waited 18.7%", "ranks 2 and 4 to 6: waited 9%"})}),
      Lines{
          "case 1 (batch_size=0): note: ranks 0 to 2 and 4 to 6: waited 18.7% (7.6% to 18.7%; the highest in rank 1)"});
  EXPECT_EQ(note_lines({noted(0, {"rank 0: waited 5%", "rank 1: waited 6%"}), noted(1, {"rank 3: waited 7%"})}),
            Lines{"all 2 cases: note: ranks 0, 1 and 3: waited 7% (5% to 7%; the highest in case 2, rank 3)"});
  EXPECT_EQ(note_lines({noted(0, {"rank 1: late"})}), Lines{"case 1 (batch_size=0): note: rank 1: late"});
}

TEST(Notes, WhatOnlyBeginsLikeThatOfRanksIsNone) {
  for (const char* text : {"rank none: late", "ranks 1 and: late", "ranks 5 to 2: late"})
    EXPECT_EQ(note_lines({noted(0, {text})}), Lines{std::string("case 1 (batch_size=0): note: ") + text});
}

TEST(Notes, TwoOfOneCaseAreOneLine) {
  EXPECT_EQ(note_lines({noted(0, {"drifts by +3.5%", "drifts by -11%"}), noted(1, {"drifts by +7%"})}),
            Lines{"all 2 cases: note: drifts by -11% (+3.5% to -11%; the highest in case 1)"});
}

TEST(Notes, AVerdictThatNoNoteExplainsIsExplained) {
  const auto judged = [](int index, const char* verdict, const char* text, const Lines& notes) {
    Json record = noted(index, notes);
    record["validity"] = {{"verdict", verdict}, {"text", text}};
    return record;
  };
  EXPECT_EQ(validity_lines({judged(0, "unknown", "measured for 0.05 s", {"other"}),
                            judged(1, "unknown", "measured for 0.12 s", {}), judged(2, "valid", "nobody else", {}),
                            judged(3, "contended", "others took 9%", {"rank 1: contended: others took 9%"}),
                            judged(4, "throttled", "by heat", {"contended: others took 9%", "throttled by heat"})}),
            (Lines{"cases 1-2: validity unknown: measured for 0.12 s (0.05 to 0.12; the highest in case 2)",
                   "case 5 (batch_size=4): validity throttled: by heat"}));
}

TEST(Notes, RepeatsOfACaseAreOneCase) {
  Json first = noted(1, {"same"}), second = noted(1, {"same"});
  first["repeat"] = 1, second["repeat"] = 2;
  EXPECT_EQ(note_lines({noted(0, {}), noted(2, {"same"}), first, second}), Lines{"cases 2-3: note: same"});
}

}  // namespace
}  // namespace assay::host::results
