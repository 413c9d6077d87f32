// Two variants in turns. No verdict between times is asserted unless one side has many times the work of the other, or
// sleeps several times as long: under `ctest -j` a machine is as noisy as it gets. `turns` is counted and has no noise.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

class Ab : public Sandbox {
 protected:
  Ab() : Sandbox(PLUGINS) {}

  static ExperimentText small(const std::string& sweep = "") {
    return {.plugin = "measured_work", .params = "work = 0.02", .measure = "warmup = 1\nsteps = 5", .sweep = sweep};
  }
  // Of steps that sleep: five times as long is longer on a machine as busy as it may be.
  static ExperimentText resting(int rest_ms) {
    ExperimentText text = small();
    text.params = "work = 0\nrest_ms = " + std::to_string(rest_ms);
    return text;
  }
  RunResult ab(Arguments more, const ExperimentText& text = small(), const std::string& plugins = PLUGINS) {
    write_experiment(text);
    fs::remove_all(folder() / "out");
    Arguments arguments{"ab", "x.toml", "--output", "out", "--min-runs", "3"};
    if (!plugins.empty()) arguments.insert(arguments.end(), {"--plugin-path", plugins});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  std::vector<nlohmann::json> records_of_side(const std::string& side) const {
    std::vector<nlohmann::json> records;
    for (const auto& entry : fs::directory_iterator(folder() / "out" / side / "x")) {
      if (entry.is_symlink()) continue;
      std::istringstream lines(text_of(entry.path() / "cases.jsonl"));
      for (std::string line; std::getline(lines, line);) records.push_back(nlohmann::json::parse(line));
    }
    return records;
  }
};

const Arguments much_more_work{"--a", "elements=64", "--b", "elements=40000"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(Ab, AClearChangeEndsItAndCompareSaysTheSame) {
  const RunResult result = ab(with(much_more_work, {"--fail-if", "slower"}));
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_TRUE(contains(result.output, "A: elements=64\nB: elements=40000\n")) << result.output;
  EXPECT_TRUE(contains(result.output, "B: slower\n")) << result.output;
  // Each side is one run, with a repeat for each turn.
  for (const std::string side : {"a", "b"}) {
    const auto records = records_of_side(side);
    ASSERT_GE(records.size(), 3u) << side;
    for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].value("repeat", 1), i + 1) << side;
  }
  const std::size_t command = result.output.rfind("assay compare ");
  ASSERT_NE(command, std::string::npos);
  std::istringstream words(result.output.substr(command + 6));
  Arguments compare{std::istream_iterator<std::string>(words), {}};
  const RunResult compared = run(with(compare, {"--fail-if", "slower"}));
  EXPECT_EQ(compared.exit.code, 1) << compared.output;
  EXPECT_TRUE(contains(compared.output, "slower")) << compared.output;
}

TEST_F(Ab, TwoExperimentsOfTwoWorkloadsStandBesideEachOther) {
  write_experiment({.plugin = "command",
                    .name = "other",
                    .params = "command = \"sleep 0.05\"\nstep_is = \"program\"",
                    .measure = "warmup = 1\nsteps = 5"});
  fs::rename(folder() / "x.toml", folder() / "other.toml");
  const RunResult result = ab({"other.toml", "--max-runs", "3"}, resting(1));
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_TRUE(contains(result.output, "A: x.toml\nB: other.toml\n")) << result.output;
  EXPECT_TRUE(contains(result.output, "measured_work: step ratio ")) << result.output;
  EXPECT_TRUE(contains(result.output, "--across workload")) << result.output;
  EXPECT_EQ(ab({"other.toml", "third.toml"}).exit.code, 2);
}

TEST_F(Ab, AProgramsMetricStandsBesideTheWorkloadsPhaseOfThatName) {
  std::ofstream(folder() / "program.sh") << "echo assay 1 >&3\n"
                                            "while echo step >&3; read kind number <&3; [ $kind != end ]; do\n"
                                            "  echo metric sweep 10000 ms lower >&3\n"
                                            "done\n";
  write_experiment({.plugin = "command",
                    .name = "other",
                    .params = "command = \"sh program.sh\"",
                    .measure = "warmup = 1\nsteps = 5"});
  fs::rename(folder() / "x.toml", folder() / "other.toml");
  const RunResult result = ab({"other.toml", "--metric", "sweep", "--max-runs", "3", "--fail-if", "slower"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_TRUE(contains(result.output, "measured_work: sweep ratio ")) << result.output;
  EXPECT_TRUE(contains(result.output, "B: slower\n")) << result.output;
}

TEST_F(Ab, TheOtherWayRoundNothingFails) {
  const RunResult result =
      ab({"--a", "elements=40000", "--b", "elements=64", "--fail-if", "slower,cannot-tell", "--json"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const nlohmann::json json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_EQ(json["end"], "clear");
  ASSERT_EQ(json["cases"].size(), 1u);
  EXPECT_LT(json["cases"][0]["ratio"], 1);
  EXPECT_EQ(json["exit_code"], 0);
}

TEST_F(Ab, OneThingWithItselfIsSaidToBeThat) {
  const RunResult result = ab({"--a-a", "--metric", "turns", "--fail-if", "slower,cannot-tell"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_TRUE(contains(result.output, "A and B are the same (--a-a): no difference is expected")) << result.output;
  EXPECT_TRUE(
      contains(result.output, "At most 30 rounds, each with a run of A and one of B; no round begins after 10:00"))
      << result.output;
  EXPECT_TRUE(contains(result.output, "B: same\n")) << result.output;
  EXPECT_TRUE(contains(result.output, "faster or slower would be a false verdict. The interval")) << result.output;
}

TEST_F(Ab, WhatDoesNotDifferIsNotRun) {
  for (const Arguments& same : {Arguments{}, Arguments{"--a", "work=1", "--b", "work=1"}}) {
    const RunResult result = ab(same);
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_TRUE(contains(result.output, "A and B do not differ; add a difference, as by --a work=10 --b"))
        << result.output;
    EXPECT_TRUE(contains(result.output, "or add --a-a to test the machine itself")) << result.output;
  }
  const RunResult differing = ab({"--a-a", "--b", "work=1"});
  EXPECT_EQ(differing.exit.code, 2) << differing.output;
  EXPECT_TRUE(contains(differing.output, "leave out --a-a, or the difference")) << differing.output;
}

// What the experiment sweeps, too: each side has one value of it.
TEST_F(Ab, ASweptKeyMayBeWhatTheSidesDifferIn) {
  const std::string sweep = "elements = [64, 40000]\nbatch_size = [1, 2]\n\"run.threads\" = [1, 2]";
  const std::vector<Arguments> differing{{"--a", "elements=64", "--b", "elements=40000"},
                                         {"--a", "run.threads=1", "--b", "run.threads=2", "--filter", "elements=64"}};
  for (const Arguments& sides : differing) {
    const Arguments turns = with(sides, {"--metric", "turns", "--max-runs", "3"});
    EXPECT_EQ(ab(with(turns, {"--dry-run"}), small(sweep)).exit.code, 0);
    const RunResult result = ab(turns, small(sweep));
    EXPECT_EQ(result.exit.code, 0) << result.output;
    EXPECT_TRUE(contains(result.output, "Round 1: ")) << result.output;
    const std::string key = sides[1].substr(0, sides[1].find('='));
    EXPECT_TRUE(contains(result.output, "--across " + key)) << result.output;
  }
}

TEST_F(Ab, EveryCaseOfASweepNeedsAVerdict) {
  const RunResult result = ab({"--a", "elements=64", "--b", "elements=40000", "--json"}, small("batch_size = [1, 2]"));
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const nlohmann::json json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["verdict"], "slower");
  ASSERT_EQ(json["cases"].size(), 2u);
  for (const auto& c : json["cases"]) EXPECT_EQ(c["verdict"], "slower");
}

TEST_F(Ab, WithoutTimeItCannotTell) {
  const Arguments hurried = with(much_more_work, {"--max-time", "1ms"});
  EXPECT_EQ(ab(hurried).exit.code, 0);
  const RunResult result = ab(with(hurried, {"--fail-if", "slower,cannot-tell"}));
  EXPECT_EQ(result.exit.code, 3) << result.output;
  EXPECT_TRUE(contains(result.output, "time spent (--max-time); B: cannot tell")) << result.output;
  EXPECT_EQ(records_of_side("a").size(), 1u);
  EXPECT_EQ(ab(with(hurried, {"--bisect"})).exit.code, 125);
}

TEST_F(Ab, SidesMayHaveTheirOwnPluginsEnvironmentAndProgram) {
  const fs::path program = folder() / "other";
  std::ofstream(program) << "#!/bin/sh\necho used >>" << (folder() / "used").string() << "\nexec " << ASSAY_EXECUTABLE
                         << " \"$@\"\n";
  fs::permissions(program, fs::perms::owner_all);
  const RunResult result = ab({"--b-plugins", SLOW_PLUGINS, "--b-env", "OMP_DYNAMIC=false", "--b-assay",
                               program.string(), "--fail-if", "slower"},
                              resting(2));
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto of_a = records_of_side("a"), of_b = records_of_side("b");
  EXPECT_NE(of_a[0]["plugin"]["file_hash"], of_b[0]["plugin"]["file_hash"]);
  EXPECT_TRUE(contains(text_of(folder() / "used"), "used\nused\nused\n"));
  for (const auto& entry : fs::recursive_directory_iterator(folder() / "out")) {
    if (entry.path().filename() != "environment.json" || fs::is_symlink(entry.path().parent_path())) continue;
    const bool is_b = contains(entry.path().string(), "/b/");
    EXPECT_EQ(contains(text_of(entry.path()), "OMP_DYNAMIC"), is_b) << entry.path();
  }
}

TEST_F(Ab, ASideThatFailsEndsIt) {
  const RunResult result = ab({"--b", "right=false"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_TRUE(contains(result.output, "assay: side B: run 1 ended with exit code 1")) << result.output;
  EXPECT_TRUE(contains(result.output, "wrong as asked for")) << result.output;
  EXPECT_TRUE(contains(result.output, "no verdict")) << result.output;
  EXPECT_EQ(ab({"--b", "right=false", "--bisect"}).exit.code, 125) << "the commit is skipped";
  EXPECT_EQ(ab({"--a", "right=false", "--bisect"}).exit.code, 255) << "the bisection ends";
}

TEST_F(Ab, CasesThatOnlyOneSideHasAreRefused) {
  for (const Arguments& dry : {Arguments{}, Arguments{"--dry-run"}}) {
    const RunResult result = ab(with({"--b", "sweep.batch_size=[1, 2]"}, dry));
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_TRUE(contains(result.output, "assay: A and B do not have the same cases: only in B: batch_size=2"))
        << result.output;
    EXPECT_FALSE(fs::exists(folder() / "out"));
  }
}

TEST_F(Ab, WrongSidesAreRefusedBeforeAnythingStarts) {
  const RunResult result = ab({"--b", "wrok=1"});
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_TRUE(contains(result.output, "did you mean 'work'?")) << result.output;
  EXPECT_TRUE(contains(result.output, "side B cannot be run (wrok=1); nothing was started")) << result.output;
  EXPECT_FALSE(fs::exists(folder() / "out"));
  EXPECT_EQ(ab({"--b", "wrok=1", "--bisect"}).exit.code, 125);
  EXPECT_EQ(ab({"--a", "wrok=1", "--bisect"}).exit.code, 255);
  EXPECT_EQ(ab({"--b-assay", "./nowhere"}).exit.code, 2);
}

TEST_F(Ab, ADryRunStartsNothing) {
  EXPECT_EQ(ab({"--b", "work=1", "--dry-run"}).exit.code, 0);
  EXPECT_FALSE(fs::exists(folder() / "out"));
}

TEST_F(Ab, WrongCommandLines) {
  write_experiment(small());
  const std::pair<Arguments, std::string> wrong[] = {
      {{}, "ab needs one experiment file"},
      {{"x.toml", "x.toml", "x.toml"}, "ab needs one experiment file"},
      {{"x.toml", "--a", "work"}, "--a is 'work'; expected key=value"},
      {{"x.toml", "--b-env", "=1"}, "--b-env is '=1'; expected NAME=value"},
      {{"x.toml", "--b", "run.repeat=2"}, "see --min-runs and --max-runs"},
      {{"x.toml", "--a-plugins", "nowhere"}, "--a-plugins is nowhere, which is no folder"},
      {{"x.toml", "--min-runs", "2"}, "--min-runs is 2; expected 3 to 1000 runs a side"},
      {{"x.toml", "--max-runs", "1"}, "--max-runs is 1; expected 3 to 1000 runs a side"},
      {{"x.toml", "--max-runs", "4"}, "add --min-runs 4, or leave out --max-runs"},
      {{"x.toml", "--max-time", "soon"}, "--max-time is 'soon'"},
      {{"x.toml", "--threshold", "-1"}, "--threshold is -1"},
      {{"x.toml", "--confidence", "100"}, "--confidence is 100"},
      {{"x.toml", "--fail-if", "sloer"}, "--fail-if is 'sloer'"},
      {{"x.toml", "--bisect", "--fail-if", "slower"}, "--bisect has other exit codes"},
      {{"x.toml", "--b", "work=1", "--statistic", "fastest"}, "--statistic is 'fastest'; expected mean, p05"},
      {{"x.toml", "--b", "work=1", "--output", ".", "--plugin-path", PLUGINS}, "which is there and not empty"},
      {{"x.toml", "--b", "work=1", "--output", ".", "--dry-run"}, "which is there and not empty"}};
  for (const auto& [arguments, message] : wrong) {
    const RunResult result = run(with({"ab"}, arguments));
    const bool bisects = std::find(arguments.begin(), arguments.end(), "--bisect") != arguments.end();
    EXPECT_EQ(result.exit.code, bisects ? 255 : 2) << result.output;
    EXPECT_TRUE(contains(result.output, message)) << result.output;
  }
  const RunResult no_metric = ab({"--a-a", "--metric", "stp"});
  EXPECT_EQ(no_metric.exit.code, 2) << no_metric.output;
  EXPECT_TRUE(contains(no_metric.output, "did you mean 'step'?")) << no_metric.output;
}

TEST_F(Ab, AnInterruptLeavesWhatThereIs) {
  // A's second run is caught in the middle, or B's.
  write_experiment(resting(50));
  HostProcess host = start({"ab", "x.toml", "--output", "out", "--plugin-path", PLUGINS, "--min-runs", "30", "--a-a"});
  const auto has_a_pair = [&] { return contains(output(), "Round 1: "); };
  ASSERT_TRUE(wait_until(has_a_pair)) << output();
  host.send(SIGINT);
  const std::optional<HostExit> exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130) << output();
  EXPECT_TRUE(all_descendants_are_gone()) << "a run outlived its session";
  EXPECT_TRUE(contains(output(), "interrupted; no verdict")) << output();
  for (const std::string side : {"a", "b"})
    for (const auto& record : records_of_side(side)) EXPECT_EQ(record["status"], "ok");
  EXPECT_EQ(run({"compare", "out/a", "out/b"}).exit.code, 0) << output();
}

}  // namespace
}  // namespace assay::test
