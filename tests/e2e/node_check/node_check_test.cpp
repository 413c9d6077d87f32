#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class NodeCheck : public Sandbox {
 protected:
  // Small checks on the CPU, of one thread each. `more`: of [run], and further tables.
  std::vector<json> run_cases(const std::string& params, const std::string& more = "", int expected_code = 0) {
    return records_of(
        {.plugin = "node_check", .params = params, .measure = "warmup = 1\nsteps = 4", .run = "threads = 1\n" + more},
        expected_code);
  }
  static std::string text_of_check(const json& record) { return record["verify"].value("text", ""); }
};

const std::string small = "size = 200\nbytes = 400000\n";
constexpr const char* all_checks = "check = [\"matrix_product\", \"copy\", \"all_reduce\"]\n";

TEST_F(NodeCheck, EveryCheckIsRightOnOneAndTwoRanks) {
  const auto records = run_cases(small + "repeats = 3", std::string("allow = [\"unsupported\"]\n[sweep]\n") +
                                                            all_checks + "\"run.ranks\" = [1, 2]\n");
  ASSERT_EQ(records.size(), 6u);
  for (const json& r : records) {
    const std::string check = r["axes"]["check"];
    const int ranks = r["axes"]["run.ranks"];
    if (check == "all_reduce" && ranks == 1) {
      EXPECT_EQ(r["status"], "unsupported");
      EXPECT_TRUE(contains(r["reason"], "the case has one rank; give it two")) << r["reason"];
      continue;
    }
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "ok");
    EXPECT_TRUE(contains(text_of_check(r), std::to_string(ranks) + " rank(s), all exact")) << r["verify"];
    EXPECT_TRUE(contains(text_of_check(r), " steps counted by what they have done")) << r["verify"];
    EXPECT_EQ(metric(r, "wrong_elements"), 0);
    if (check == "matrix_product") {
      EXPECT_EQ(r["work"]["flops"], 3 * 2 * 200 * 200 * 200);
      EXPECT_GT(r["rates"]["gflop_per_s"], 0.0);
    } else {
      // A copy reads and writes; it is rounded down to thirds.
      const double message = check == "copy" ? 3 * 133'120 : 400'000;
      EXPECT_EQ(metric(r, "message_bytes"), message);
      EXPECT_EQ(r["work"]["bytes"], (check == "copy" ? 2 : 1) * 3 * message);
      EXPECT_GT(r["rates"]["gbytes_per_s"], 0.0);
    }
    if (check == "all_reduce") {
      EXPECT_GT(metric(r, "algorithm_bandwidth_gbs"), 0);
      EXPECT_DOUBLE_EQ(metric(r, "bus_bandwidth_gbs"), metric(r, "algorithm_bandwidth_gbs"));  // of two ranks
    }
  }
}

// The error is made after the first step, and found at the end. The record names the rank that has it.
TEST_F(NodeCheck, AWrongElementOfOneRankIsFound) {
  const auto records =
      run_cases(small, std::string("ranks = 2\n[sweep]\nfault = [\"wrong\", \"not_a_number\"]\n") + all_checks, 1);
  ASSERT_EQ(records.size(), 6u);
  for (const json& r : records) {
    EXPECT_EQ(r["status"], "wrong_result") << r["axes"];
    const bool of_links = r["axes"]["check"] == "all_reduce";  // all ranks receive it
    EXPECT_TRUE(contains(r["reason"], of_links ? "on rank(s) 0, 1; here element" : "on rank(s) 1; here "))
        << r["reason"];
    EXPECT_TRUE(of_links || r["reason"].get<std::string>().starts_with("rank 1 on ")) << r["reason"];
  }
}

TEST_F(NodeCheck, FactorsOf16BitsAreExactToo) {
  const auto records = run_cases("precision = \"bf16\"", "[sweep]\nsize = [1, 7, 200, 515]\n");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) EXPECT_EQ(r["status"], "ok") << r["axes"] << r["reason"];
}

TEST_F(NodeCheck, APatternIsAnotherOneInEachRunUnlessItIsNamed) {
  const auto of = [&](const std::string& pattern) {
    const std::string text =
        text_of_check(run_cases(small + "check = \"copy\"\npattern = " + pattern, "ranks = 2\n").at(0));
    return text.substr(text.find("(pattern = "), text.find(')') - text.find("(pattern = "));
  };
  EXPECT_EQ(of("77"), "(pattern = 77");
  EXPECT_NE(of("0"), of("0"));
}

TEST_F(NodeCheck, WhatCannotBeIsRefused) {
  const auto tf32 = run_cases(small + "precision = \"tf32\"", "allow = [\"unsupported\"]\n");
  ASSERT_EQ(tf32.size(), 1u);
  EXPECT_EQ(tf32[0]["status"], "unsupported");
  const auto little = run_cases("check = \"copy\"", "allow = [\"failed\"]\n[sweep]\nbytes = [8, 768]\n");
  ASSERT_EQ(little.size(), 2u);
  EXPECT_EQ(little[0]["status"], "failed");
  EXPECT_TRUE(contains(little[0]["reason"], "expected 768 at least")) << little[0]["reason"];
  EXPECT_EQ(little[1]["status"], "ok") << little[1]["reason"];
  write_experiment({.plugin = "node_check", .params = "check = \"disk\"\nsize = 40000"});
  const RunResult unknown = run(run_arguments());
  EXPECT_EQ(unknown.exit.code, 2);
  EXPECT_TRUE(contains(unknown.output, "matrix_product")) << unknown.output;
  EXPECT_TRUE(contains(unknown.output, "32768")) << unknown.output;
}

}  // namespace
}  // namespace assay::test
