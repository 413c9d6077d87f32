#include "demo_workload.hpp"

#include "experiment/hash.hpp"
#include "experiment/resolved.hpp"

namespace assay::host::experiment::test {
namespace {

void expect_same_cases(const Experiment& a, const Experiment& b) {
  ASSERT_EQ(a.cases.size(), b.cases.size());
  for (std::size_t i = 0; i < a.cases.size(); ++i) {
    const Case &x = a.cases[i], &y = b.cases[i];
    EXPECT_EQ(x.index, y.index);
    EXPECT_EQ(x.params, y.params);
    EXPECT_EQ(x.axes, y.axes);
    EXPECT_EQ(x.settings(), y.settings());
    EXPECT_EQ(x.run.allow, y.run.allow);
    EXPECT_EQ(case_hash(x, "demo", {}), case_hash(y, "demo", {}));
  }
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.plugin, b.plugin);
  EXPECT_EQ(a.output.dir, b.output.dir);
  EXPECT_EQ(a.output.formats, b.output.formats);
  EXPECT_EQ(a.output.columns, b.output.columns);
  EXPECT_EQ(a.output.relative_to, b.output.relative_to);
  EXPECT_EQ(a.resolved_toml, b.resolved_toml) << "a resolved file resolves to itself";
}

class RoundTrip : public testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, GivesTheSameCases) {
  const auto first = good(GetParam(), {"measure.warmup=2"});
  ASSERT_FALSE(first.cases.empty());
  expect_same_cases(first, good(first.resolved_toml));
}

INSTANTIATE_TEST_SUITE_P(
    Resolved, RoundTrip,
    testing::Values(
        experiment_text(), experiment_text("[measure]\nuntil = {max_steps = 77}\n"),
        experiment_text(
            "[sweep]\nsize = [\"large\", \"small\"]\nbatch_size = [2, 1]\n\"measure.sync\" = [true, false]\n"),
        experiment_text("[sweep]\n\"run.ranks\" = [\"all\", 2]\n[[sweep.zip]]\nheads = [1, 2]\nd_model = [3, 4]\n"
                        "[[sweep.zip]]\nlr = [0.1, 1e-9, 0.3333333333333333, 1, 2.5e-300]\n"
                        "[[sweep.exclude]]\nheads = 1\nlr = 0.1\n[[sweep.exclude]]\nheads = 2\n\"run.ranks\" = 2\n"),
        experiment_text("[sweep]\n\"measure.until.relative_error\" = [0.05, 0.01]\n"),
        experiment_text(
            "[sweep]\n\"measure.steps\" = [1, 5]\n[[sweep.zip]]\nsize = [\"small\", \"large\"]\nlr = [1, 2]\n"
            "[output]\nrelative_to = { \"measure.steps\" = 5, size = \"large\" }\ncolumns = [\"speedup\"]\n"),
        experiment_text("[sweep]\ncontext_length = { min = 16, max = 1024, factor = 4 }\n[[sweep.zip]]\n"
                        "lr = { min = 1e-4, max = 1, factor = 10 }\nheads = { min = 0, max = 4, step = 1 }\n"
                        "[[sweep.exclude]]\nlr = 0.001\n[run]\nranks = 4\nbind = \"cores\"\n"
                        "stall_timeout = 0\nwireup_timeout = \"5s\"\n"),
        experiment_text("[sweep]\n\"measure.timeout\" = [90, \"500ms\"]\n\"run.memory_limit\" = [\"1GiB\", 1000]\n"
                        "[run]\nallow = [\"oom\"]\nmemory_limit = \"3MiB\"\n[output]\ndir = \"a b/'c'\"\nformats = []\n"
                        "columns = [\"size\", \"step.mean_ms\"]\n[profile]\nmemory_snapshot = true\n")));

TEST(Resolved, KeepsAwkwardText) {
  const auto first = good(experiment_text(), {R"(description="quote \" backslash \\ tab \t newline \n ' é")",
                                              R"(name="a \"b\" #c")", "workload.plugin='./odd name.so'"});
  ASSERT_EQ(first.cases.size(), 1u);
  EXPECT_EQ(first.description, "quote \" backslash \\ tab \t newline \n ' é");
  expect_same_cases(first, good(first.resolved_toml));
}

TEST(Resolved, ATextIsOneLineThatReadsAsTheSame) {
  for (const std::string text : {"", "a \"b\" \\ 'c'", "line\nfeed", "\x01\x1b[31m\x7f\ttab\r", "\u00e9"}) {
    const std::string written = toml_text(text);
    EXPECT_EQ(std::count_if(written.begin(), written.end(),
                            [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }),
              0)
        << written;
    EXPECT_EQ(good(experiment_text(), {"description=" + written}).description, text);
  }
}

TEST(Resolved, WritesOutDefaultsAndOverrides) {
  const auto text = good(experiment_text(), {"measure.steps=3"}).resolved_toml;
  for (const char* line :
       {"\nsteps = 3\n", "\nwarmup = 5\n", "\nbatch_size = 4\n", "\nlr = 0.001\n", "\ntimeout = \"10m\"\n",
        "\nformats = [\"json\", \"csv\", \"markdown\"]\n", "\n[profile]\nnvtx = true\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "is not in\n" << text;
}

}  // namespace
}  // namespace assay::host::experiment::test
