#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class MixedPrecision : public Sandbox {
 protected:
  // An experiment of one of the plugin's workloads on the CPU. `more`: of [run], and further tables.
  std::vector<json> run_cases(const std::string& workload, const std::string& params, const std::string& more = "",
                              int expected_code = 0) {
    return records_of(
        {.plugin = "mixed_precision:" + workload, .params = params, .measure = "warmup = 0\nsteps = 1", .run = more},
        expected_code);
  }
  std::string table() const { return text_of(run_folder() / "table.csv"); }
  static std::string word(const json& record, const char* name) { return record["metrics"][name].value("word", ""); }
  // The results of the records with so many decimals, as PyTorch prints them.
  static std::vector<std::string> results(const std::vector<json>& records, int decimals) {
    std::vector<std::string> texts;
    for (const json& record : records) {
      char text[64];
      std::snprintf(text, sizeof text, "%.*f", decimals, metric(record, "result"));
      texts.emplace_back(text);
      EXPECT_EQ(record["verify"]["status"], "ok") << record["verify"];
      EXPECT_TRUE(contains(record["verify"]["text"], "1 steps counted by what they have done")) << record["verify"];
    }
    return texts;
  }
  static void expect_reason(const std::vector<json>& records, const std::string& part) {
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0]["status"], "failed");
    EXPECT_NE(records[0]["reason"].get<std::string>().find(part), std::string::npos) << records[0]["reason"];
  }
};

// So that what the workload refuses is a record.
constexpr const char* allow_failed = "allow = [\"failed\"]\n";

// "tensor(10.0001)", "tensor(9.9531, dtype=torch.float16)", "tensor(10.0021)" twice.
TEST_F(MixedPrecision, AThousandHundredthsAreWhatTheReportPrints) {
  const auto records = run_cases("accumulation", "terms = 1000\nterm = 0.01",
                                 "[[sweep.zip]]\nterms_dtype = [\"fp32\", \"fp16\", \"fp16\", \"fp16\"]\n"
                                 "accumulator = [\"fp32\", \"fp16\", \"fp32\", \"fp32\"]\n"
                                 "upcast = [false, false, false, true]\n");
  EXPECT_EQ(results(records, 4), (std::vector<std::string>{"10.0001", "9.9531", "10.0021", "10.0021"}));
  for (const json& record : records) EXPECT_EQ(metric(record, "exact_real"), 10.0);
  EXPECT_DOUBLE_EQ(metric(records[1], "exact_stored"), 1000 * 0.01000213623046875);
  EXPECT_NEAR(metric(records[1], "error_ulp"), (9.953125 - 10.00213623046875) * 128, 1e-9);
  EXPECT_NEAR(metric(records[1], "total_error"), -0.46875, 1e-9);
}

// The other report's sums: of 1 and 19,999 times 0.001, by halves, and in chunks that are stored in fp16.
TEST_F(MixedPrecision, OneAndManyThousandthsAreWhatTheReportPrints) {
  const auto records = run_cases("accumulation",
                                 "terms = 20000\nterm = 0.001\ndata = \"one_first\"\nchunk = 256\n"
                                 "terms_dtype = \"fp16\"\naccumulator = \"fp32\"",
                                 "[[sweep.zip]]\norder = [\"pairwise\", \"pairwise\", \"chunked\"]\n"
                                 "stored = [\"fp16\", \"accumulator\", \"fp16\"]\n");
  EXPECT_EQ(results(records, 8), (std::vector<std::string>{"21.00000000", "21.00708771", "21.00686646"}));
}

TEST_F(MixedPrecision, AnFp32SumInTheOrderOfTheLibraryIsWhatTheReportPrints) {
  const auto records =
      run_cases("accumulation", "terms = 20000\nterm = 0.001\ndata = \"one_first\"\norder = \"cascade\"",
                "[sweep]\nlanes = [8, 16]\n");
  EXPECT_EQ(results(records, 8), (std::vector<std::string>{"20.99900246", "20.99900055"}));
}

TEST_F(MixedPrecision, EveryOrderAndFormatIsTheHostsToTheBit) {
  const auto records =
      run_cases("accumulation", "data = \"normal\"\nterm = 1.0\nterms = 777\nchunk = 50",
                "[sweep]\noperation = [\"sum\", \"dot\"]\nterms_dtype = [\"fp32\", \"bf16\", \"fp16\"]\n"
                "accumulator = [\"fp32\", \"bf16\", \"fp16\"]\nupcast = [false, true]\n"
                "order = [\"sequential\", \"chunked\", \"pairwise\", \"compensated\", \"cascade\"]\n");
  ASSERT_EQ(records.size(), 180u);
  for (const json& record : records) EXPECT_EQ(record["verify"]["status"], "ok") << record["axes"] << record["verify"];
}

TEST_F(MixedPrecision, TheOrderOfAnAllReduceShows) {
  const auto records = run_cases("accumulation",
                                 "operation = \"all_reduce\"\ndata = \"normal\"\nterm = 1.0\nterms = 5000\n"
                                 "simulated_ranks = 7",
                                 "[sweep]\naccumulator = [\"fp32\", \"bf16\"]\norder = [\"ring\", \"tree\"]\n");
  ASSERT_EQ(records.size(), 4u);
  results(records, 4);  // verified
  EXPECT_GT(metric(records[2], "ring_spread"), 0) << "bf16 between seven ranks, from each of them on";
  EXPECT_FALSE(records[1]["metrics"].contains("ring_spread"));
  EXPECT_LT(std::abs(metric(records[1], "rounding_error")), std::abs(metric(records[2], "rounding_error")));
}

TEST_F(MixedPrecision, AMatrixProductIsWithinItsBound) {
  const auto records = run_cases(
      "accumulation", "operation = \"matmul\"\norder = \"library\"\ndata = \"normal\"\nterm = 1.0",
      "[[sweep.zip]]\nterms_dtype = [\"fp32\", \"bf16\", \"bf16\"]\naccumulator = [\"fp32\", \"fp32\", \"bf16\"]\n");
  ASSERT_EQ(records.size(), 3u);
  results(records, 4);  // verified
}

TEST_F(MixedPrecision, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [&](const char* params, const char* part) {
    expect_reason(run_cases("accumulation", params, allow_failed), part);
  };
  refused("order = \"ring\"", "order \"ring\" is none of operation \"sum\"");
  refused("operation = \"matmul\"", "set library");
  refused("terms_dtype = \"tf32\"", "operation = \"matmul\"");
  refused("operation = \"all_reduce\"\norder = \"tree\"\nterms = 3", "fewer than");
  expect_reason(run_cases("dtypes", "casting = \"autocast\"", allow_failed), "in fp32 nothing is converted");
}

TEST_F(MixedPrecision, DtypesAreWordsOfTheRunningLayers) {
  const auto records = run_cases("dtypes", "",
                                 "[sweep]\nprecision = [\"fp32\", \"bf16\", \"bf16_pure\"]\n"
                                 "[output]\ncolumns = [\"precision\", \"parameters_dtype\", "
                                 "\"logits_dtype\", \"compute_copy_dtype\"]\n");
  ASSERT_EQ(records.size(), 3u);
  const char* const names[] = {"parameters_dtype", "compute_copy_dtype",      "fc1_output_dtype",
                               "logits_dtype",     "layer_norm_output_dtype", "loss_dtype",
                               "gradients_dtype",  "optimizer_state_dtype"};
  const std::vector<std::vector<std::string>> expected{
      {"fp32", "none", "fp32", "fp32", "fp32", "fp32", "fp32", "fp32"},
      {"fp32", "bf16", "bf16", "bf16", "bf16", "fp32", "bf16", "fp32"},
      {"bf16", "none", "bf16", "bf16", "bf16", "fp32", "bf16", "bf16"}};
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::vector<std::string> words;
    for (const char* name : names) words.push_back(word(records[i], name));
    EXPECT_EQ(words, expected[i]) << records[i]["axes"];
    EXPECT_EQ(records[i]["verify"]["status"], "ok");
  }
  EXPECT_LT(metric(records[0], "gradient_error"), 1e-3);  // percent
  EXPECT_GT(metric(records[1], "gradient_error"), 1e-2);
  std::istringstream lines(table());
  for (const char* begin : {"precision,parameters_dtype,logits_dtype,compute_copy_dtype,", "fp32,fp32,fp32,none,",
                            "bf16,fp32,bf16,bf16,", "bf16_pure,bf16,bf16,none,"}) {
    std::string line;
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with(begin)) << line;
  }
}

// The report's table is of fp16; bf16 differs from it in the 16-bit words alone.
TEST_F(MixedPrecision, AutocastNormsInFp32AndWidensGradients) {
  const auto records = run_cases("dtypes", "precision = \"bf16\"", "[sweep]\ncasting = [\"policy\", \"autocast\"]\n");
  ASSERT_EQ(records.size(), 2u);
  const std::vector<std::pair<const char*, const char*>> expected{
      {"parameters_dtype", "fp32"},           {"fc1_output_dtype", "bf16"}, {"relu_output_dtype", "bf16"},
      {"layer_norm_output_dtype", "fp32"},    {"logits_dtype", "bf16"},     {"loss_dtype", "fp32"},
      {"activation_gradients_dtype", "bf16"}, {"gradients_dtype", "fp32"}};
  for (const auto& [name, dtype] : expected) EXPECT_EQ(word(records[1], name), dtype) << name;
  EXPECT_EQ(word(records[0], "layer_norm_output_dtype"), "bf16");
  for (const json& record : records) EXPECT_EQ(record["verify"]["status"], "ok") << record["verify"];
  EXPECT_NE(metric(records[0], "gradient_error"), metric(records[1], "gradient_error")) << "it computes otherwise";
}

const std::string small_decoder =
    "d_model = 64\nd_ff = 128\nlayers = 2\nheads = 2\nvocab_size = 200\nbatch_size = 2\n"
    "context_length = 24\nreference_context = 16\nloss_steps = 3\n";

TEST_F(MixedPrecision, APrecisionsLossAndGradientsAreComparedWithFp32AndFp64) {
  const auto records = run_cases("speed_accuracy", small_decoder,
                                 "[sweep]\nprecision = [\"fp32\", \"bf16\"]\nexecution = [\"graph\", \"eager\"]\n");
  ASSERT_EQ(records.size(), 4u);
  for (const json& record : records) {
    EXPECT_EQ(word(record, "gradient_reference"), "fp64");
    EXPECT_TRUE(record["phases"].contains("optimizer"));
    EXPECT_TRUE(contains(record["verify"]["text"], "1 steps counted by what they have done, the first 1 repeated"));
  }
  for (const std::size_t fp32 : {0u, 1u}) {
    EXPECT_EQ(metric(records[fp32], "loss_difference"), 0);
    EXPECT_LT(metric(records[fp32], "gradient_error"), 1e-3);
    EXPECT_GT(metric(records[fp32], "gradient_error"), 0);
    EXPECT_NE(metric(records[fp32 + 2], "loss_difference"), 0);
    EXPECT_LT(std::abs(metric(records[fp32 + 2], "loss_difference")), 0.05);
    EXPECT_GT(metric(records[fp32 + 2], "gradient_error"), 0.1);
  }
}

// New sequences each time, which three updates do not learn; the gradients are those of the batch that is timed.
TEST_F(MixedPrecision, Fp8IsComparedOnTheSameSequencesAsFp32) {
  const auto records =
      run_cases("speed_accuracy", small_decoder + "precision = \"fp8\"\n", "[sweep]\ndata = [\"batch\", \"chain\"]\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_NE(metric(records[0], "loss"), metric(records[1], "loss"));
  EXPECT_EQ(metric(records[0], "gradient_error"), metric(records[1], "gradient_error"));
  for (const json& record : records) {
    EXPECT_NE(metric(record, "loss_difference"), 0);
    EXPECT_LT(std::abs(metric(record, "loss_difference")), 0.2);
    EXPECT_GT(metric(record, "gradient_error"), 2) << "in percent: of numbers with 3 bits of mantissa";
  }
  const auto eager = run_cases("speed_accuracy", small_decoder + "precision = \"fp8\"\nexecution = \"eager\"\n", "", 1);
  ASSERT_EQ(eager.size(), 1u);
  EXPECT_EQ(eager[0]["status"], "unsupported");
  EXPECT_NE(eager[0]["reason"].get<std::string>().find("expected execution = \"graph\""), std::string::npos)
      << eager[0]["reason"];
}

TEST_F(MixedPrecision, TheReferenceOfTheGradientsMayBeFp32) {
  const auto records = run_cases("speed_accuracy", small_decoder + "reference = \"fp32\"",
                                 "[sweep]\nprecision = [\"fp32\", \"bf16\"]\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0]["metrics"].contains("gradient_error")) << "fp32 against itself";
  EXPECT_EQ(word(records[1], "gradient_reference"), "fp32");
  EXPECT_GT(metric(records[1], "gradient_error"), 0.1);
}

TEST_F(MixedPrecision, AReferenceThatIsTooLargeIsRefused) {
  expect_reason(run_cases("speed_accuracy", "size = \"2.7B\"\nreference_context = 512", allow_failed),
                "set a smaller reference_context or size, or reference = \"fp32\"");
  expect_reason(run_cases("speed_accuracy", "size = \"tiny\"\ncontext_length = 32", allow_failed),
                "reference_context = 64 is more than context_length = 32");
}

}  // namespace
}  // namespace assay::test
