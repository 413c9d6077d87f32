#include "profile/nsys.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "profile/program.hpp"

namespace assay::host::profile {
namespace {

TEST(Nsys, FindsProgramsInAbsoluteFoldersAlone) {
  EXPECT_EQ(find_program("sh", "/nowhere:/bin:/usr/bin"), "/bin/sh");
  EXPECT_FALSE(find_program("sh", ""));
  EXPECT_FALSE(find_program("sh", ".:bin:"));
  EXPECT_FALSE(find_program("no-such-program", "/bin"));
}

TEST(Nsys, TheRangeEndsWithoutEndingTheProgram) {
  const auto has = [](const std::vector<std::string>& words, const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const auto one = nsys_arguments("/runs/nsys_case-0001", {"cuda", "osrt"});
  EXPECT_TRUE(has(one, "--capture-range=cudaProfilerApi"));
  EXPECT_TRUE(has(one, "--capture-range-end=stop"));
  EXPECT_TRUE(has(one, "--output=/runs/nsys_case-0001"));
  EXPECT_TRUE(has(one, "--trace=cuda,osrt"));
  EXPECT_TRUE(has(nsys_arguments("/runs/nsys", {}), "--trace=none"));
  EXPECT_TRUE(has(nsys_arguments("/runs/nsys", {"cuda"}, 3), "--capture-range-end=repeat:3"));
}

TEST(Nsys, CommandsAreQuotedForAShell) {
  EXPECT_EQ(shell_command({"nsys", "--a=b,c", "/x/y z", "it's", ""}), "nsys --a=b,c '/x/y z' 'it'\\''s' ''");
}

}  // namespace
}  // namespace assay::host::profile
