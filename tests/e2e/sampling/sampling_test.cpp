#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Sampling : public Sandbox {
 protected:
  Sampling() : Sandbox(PLUGINS) {}
  json record_of(const std::string& measure, const std::string& run = "") {
    return records_of({.plugin = "napping_work", .measure = measure, .run = run}).at(0);
  }
};

bool has_note(const json& record, const std::string& part) {
  for (const json& note : record["notes"])
    if (contains(note.get<std::string>(), part)) return true;
  return false;
}

TEST_F(Sampling, OfAStepThatIsWaitedFor) {
  const json record = record_of("warmup = 3\nsteps = 4");
  const json& sampling = record["sampling"];
  EXPECT_EQ(sampling["rule"], "steps");
  EXPECT_EQ(sampling["mode"], "waited");
  EXPECT_EQ(sampling["inner"], 1);
  EXPECT_LE(sampling["settling_steps"], 4) << "the first step tells how long one is, and two are left";
  EXPECT_EQ(sampling["cold"], false);
  EXPECT_GT(sampling["instrument_us"].get<double>(), 0);
  EXPECT_FALSE(record["phases"]["step"].contains("p95_ms"));
}

TEST_F(Sampling, OfSeveralSteps) {
  const json record = record_of("warmup = 3\nsteps = 4\ninner = 5");
  EXPECT_EQ(record["sampling"]["mode"], "back to back");
  EXPECT_EQ(record["sampling"]["inner"], 5);
  EXPECT_EQ(record["phases"]["step"]["n"], 4);
  EXPECT_FALSE(record["phases"].contains("nap")) << "no phase is timed";
  EXPECT_TRUE(has_note(record, "each sample is 5 steps back to back")) << record["notes"];
}

TEST_F(Sampling, OfAsManyStepsAsItTakes) {
  const json record = record_of("warmup = 3\nsteps = 4\ninner = \"auto\"");
  EXPECT_GT(record["sampling"]["inner"].get<int>(), 1) << "an empty step is short against its instruments";
}

TEST_F(Sampling, OfColdCaches) {
  const json record = record_of("warmup = 3\nsteps = 4\ncold_cache = true");
  EXPECT_EQ(record["sampling"]["cold"], true);
  EXPECT_EQ(record["phases"]["step"]["n"], 4);
  EXPECT_TRUE(has_note(record, "cold_cache = true")) << record["notes"];
}

TEST_F(Sampling, SeveralStepsWithColdCachesAreAMistake) {
  for (const char* inner : {"2", "\"auto\""}) {
    const RunResult result =
        run_experiment({.plugin = "napping_work", .measure = std::string("cold_cache = true\ninner = ") + inner});
    EXPECT_EQ(result.exit.code, 2);
    EXPECT_TRUE(contains(result.output, "cold_cache = true and several steps a sample")) << result.output;
  }
}

TEST_F(Sampling, WithoutACountOfSteps) {
  const json record = record_of("warmup = 1");
  EXPECT_EQ(record["sampling"]["rule"], "default");
  EXPECT_EQ(record["phases"]["step"]["n"], 50) << "of nothing, 0.5 s have more";
  EXPECT_FALSE(record["settings"].contains("measure.steps"));
}

// Every rank takes as many steps, or one would wait for ever.
TEST_F(Sampling, RanksAgree) {
  const json record = records_of({.plugin = "all_reduce",
                                  .params = "size_bytes = 8",
                                  .measure = "warmup = 3\ninner = \"auto\"\ntimeout = \"60s\"",
                                  .run = "ranks = 2"})
                          .at(0);
  EXPECT_EQ(record["status"], "ok") << record["reason"];
  EXPECT_GE(record["phases"]["step"]["n"], 10);
  EXPECT_EQ(record["by_rank"].size(), 2u);
}

}  // namespace
}  // namespace assay::test
