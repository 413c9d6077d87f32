#include "mutants/sources/mutation.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.hpp"

namespace assay::mutants {
namespace {

class Mutation : public testing::Test {
 protected:
  void read(const std::string& rows) {
    const std::filesystem::path file = folder_.path() / "model.mutants";
    std::ofstream(file) << rows;
    read_table(tables_, file);
  }
  // What a table of one mutant with this edit makes of the source.
  std::string of(const std::string& source, const std::string& edit) {
    read("mutant one: what\ntried decoder/fp32\nin x.cpp\n" + edit);
    return mutated(source, "x.cpp", tables_, mistakes_);
  }
  // The reason why a table is refused.
  std::string refused(const std::string& rows) {
    tables_ = {};
    try {
      read(rows);
      const std::string files[] = {"x.cpp"};
      require_complete(tables_, files);
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "";
  }

  test::TemporaryFolder folder_;
  Tables tables_;
  std::string mistakes_;
};

TEST_F(Mutation, AnExpressionIsAChoice) {
  EXPECT_EQ(of("f(a + b);", "text a + b\nbecomes a\n"), "f((::assay_mutant::on(\"model.one\") ? (a) : (a + b)));");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(Mutation, ItsConditionIsAskedFirst) {
  EXPECT_EQ(of("f(a);", "text a\nwhen i > 3\nbecomes b\n"),
            "f((((i > 3) && ::assay_mutant::on(\"model.one\")) ? (b) : (a)));");
}

TEST_F(Mutation, StatementsAreAChoice) {
  EXPECT_EQ(of("f();", "text f();\ndoes g();\n"), "{ if (::assay_mutant::on(\"model.one\")) { g(); } else { f(); } }");
}

TEST_F(Mutation, OrHaveOthersBehindThem) {
  EXPECT_EQ(of("f();", "text f();\nthen g();\n"), "f(); if (::assay_mutant::on(\"model.one\")) { g(); }");
}

TEST_F(Mutation, OrAreRewritten) { EXPECT_EQ(of("f(int);", "text int\nrewritten int i\n"), "f(int i);"); }

TEST_F(Mutation, BlanksStandForLineEnds) {
  EXPECT_EQ(of("f(a,\n  b); f(a)", "text f(a, b)\nrewritten g()\n"), "g(); f(a)");
}

TEST_F(Mutation, ATextIsTheFirstBehindItsAnchors) {
  EXPECT_EQ(of("x = a; one: x = a; two: x = a; x = a;", "after one:\nafter two:\ntext a\nrewritten b\n"),
            "x = a; one: x = a; two: x = b; x = a;");
}

TEST_F(Mutation, AMutantWithinAnothersTextIsInTheRightOne) {
  read(
      "mutant one: what\ntried decoder/fp32\nin x.cpp\ntext f(a);\ndoes g();\n"
      "mutant two: what\ntried decoder/fp32\nin x.cpp\nafter f(\ntext a\nbecomes b\n");
  EXPECT_EQ(mutated("f(a);", "x.cpp", tables_, mistakes_),
            "{ if (::assay_mutant::on(\"model.one\")) { g(); } else { f((::assay_mutant::on(\"model.two\") ? (b) : "
            "(a))); } }");
}

TEST_F(Mutation, ATextThatIsGoneIsTold) {
  EXPECT_EQ(of("f(a);", "text b\nbecomes c\n"), "f(a);");
  EXPECT_EQ(mistakes_, "model.mutants:3: 'b' is no longer in x.cpp\n");
}

TEST_F(Mutation, ATextThatStandsTwiceIsTold) {
  of("f(a, a);", "text a\nbecomes c\n");
  EXPECT_EQ(mistakes_, "model.mutants:3: 'a' stands more than once in x.cpp; say after what it comes\n");
}

TEST_F(Mutation, TextsThatOverlapAreRefused) {
  read(
      "mutant one: what\ntried decoder/fp32\nin x.cpp\ntext a + b\nbecomes c\n"
      "mutant two: what\ntried decoder/fp32\nin x.cpp\ntext b + c\nbecomes d\n");
  EXPECT_THROW(mutated("a + b + c", "x.cpp", tables_, mistakes_), std::runtime_error);
}

TEST_F(Mutation, AGroupStandsForItsCases) {
  read("group all decoder/fp32 ddp/naive\nmutant one: what\ntried all fsdp/zero3\nin x.cpp\ntext a\nbecomes b\n");
  EXPECT_EQ(tables_.mutants[0].tried, "decoder/fp32 ddp/naive fsdp/zero3");
}

TEST_F(Mutation, RowsWithoutAMeaningAreRefused) {
  const std::string edit = "in x.cpp\ntext a\nbecomes b\n";
  EXPECT_EQ(refused("mutant one: what\nin x.cpp\ntext a\n"), "model.mutants:2: an edit has a text and what it becomes");
  EXPECT_EQ(refused("colour red\n"), "model.mutants:1: 'colour' comes before the first mutant");
  EXPECT_EQ(refused("mutant two: what\ntried nothing\n"), "model.mutants:2: 'nothing' is neither case nor group");
  EXPECT_EQ(refused("mutant three: what\n" + edit), "model.mutants:1: model.three is tried in no case");
}

TEST_F(Mutation, AMutantOfNoSourceIsRefused) {
  EXPECT_EQ(refused("mutant one: what\ntried decoder/fp32\n"), "model.mutants:1: model.one changes no source");
}

TEST_F(Mutation, AMutantOfWhatVerifiesIsRefused) {
  read("mutant one: what\ntried decoder/fp32\nin plugins/decoder/verification.cpp\ntext a\nbecomes b\n");
  const std::string files[] = {"plugins/decoder/verification.cpp"};
  EXPECT_THROW(require_complete(tables_, files), std::runtime_error);
}

TEST_F(Mutation, TwoOfOneNameAreRefused) {
  EXPECT_EQ(refused("mutant one: what\nmutant one: what\n"), "model.mutants:2: there are two mutants 'model.one'");
}

}  // namespace
}  // namespace assay::mutants
