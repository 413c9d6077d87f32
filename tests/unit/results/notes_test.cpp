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
            Lines{"cases 1, 3: note: cv is 7.1%, above 5% (figures of case 1)"});
  EXPECT_EQ(note_lines({noted(0, {"took 5 s"}), noted(1, {"took 5 s"})}), Lines{"all 2 cases: note: took 5 s"});
}

TEST(Notes, WordsAndRanksKeepTheirNumbers) {
  EXPECT_EQ(note_lines({noted(0, {"in bf16", "rank 1: late"}), noted(1, {"in fp32", "rank 2: late"})}).size(), 4u);
}

TEST(Notes, TwoOfOneCaseAreBothTold) {
  EXPECT_EQ(note_lines({noted(0, {"process 12 was left", "process 13 was left"}), noted(1, {"process 7 was left"})}),
            (Lines{"all 2 cases: note: process 12 was left (figures of case 1)",
                   "case 1 (batch_size=0): note: process 13 was left"}));
}

TEST(Notes, RepeatsOfACaseAreOneCase) {
  Json first = noted(1, {"same"}), second = noted(1, {"same"});
  first["repeat"] = 1, second["repeat"] = 2;
  EXPECT_EQ(note_lines({noted(0, {}), noted(2, {"same"}), first, second}), Lines{"cases 2-3: note: same"});
}

}  // namespace
}  // namespace assay::host::results
