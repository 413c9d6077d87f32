#include "batch/shell_words.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace assay::host::batch {
namespace {

using Words = std::vector<std::string>;

TEST(ShellWords, AreThoseOfTheShell) {
  for (const auto& [text, words] : std::vector<std::pair<const char*, Words>>{
           {"", {}},
           {"  \t ", {}},
           {"--mem 4G", {"--mem", "4G"}},
           {"--mem=4G  -x\t", {"--mem=4G", "-x"}},
           {"''", {""}},
           {R"(--a='b c'"d e"f)", {"--a=b cd ef"}},
           {R"(--a='"\$`{')", {R"(--a="\$`{)"}},
           {R"(--a="'{b,c}*;")", {"--a='{b,c}*;"}},
           {R"(a\ b\{c\}\d)", {"a b{c}d"}},
           {R"("\d\$A\`\"\\n")", {R"(\d$A`"\n)"}},
           {R"("a\ b")", {R"(a\ b)"}},
           {"--a=$HOME/b ${HOME}/c \"${HOME}\"", {"--a=$HOME/b", "${HOME}/c", "${HOME}"}},
           {"a#b }", {"a#b", "}"}}})
    EXPECT_EQ(shell_words(text), words) << text;
}

TEST(ShellWords, WhatTheShellReadsAsMoreIsNone) {
  for (const char* text :
       {"'a", "\"a",   "a\\", "\"a\\\"", "a;b",  "a&",       "a|b",    "a>b", "a<b",       "(a)",           "a*",
        "a?", "a # b", "`a`", "\"`a`\"", "$(a)", "\"$(a)\"", "n{1,2}", "{a",  "${A:-b c}", "\"${A:-`b`}\"", "${"})
    EXPECT_FALSE(shell_words(text)) << text;
}

}  // namespace
}  // namespace assay::host::batch
