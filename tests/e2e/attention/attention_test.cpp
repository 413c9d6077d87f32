#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Attention : public Sandbox {
 protected:
  std::vector<json> run_cases(const std::string& params, const std::string& sweep = "", int expected_code = 0) {
    return records_of({.plugin = "attention",
                       .params = params,
                       .measure = "warmup = 1\nsteps = 2",
                       .run = "allow = [\"unsupported\", \"failed\"]",
                       .sweep = sweep},
                      expected_code);
  }
  static std::int64_t bytes_of(double mib) { return std::llround(mib * 1024 * 1024); }
  static std::int64_t bytes_at(const json& record, const std::string& moment, const char* kind = nullptr) {
    for (const json& m : record["memory"]["moments"])
      if (m["name"] == moment)
        return bytes_of(kind ? m["current_mib"].value(kind, 0.0) : m["current_total_mib"].get<double>());
    ADD_FAILURE() << "no moment " << moment << " in " << record["memory"];
    return -1;
  }
  static std::int64_t peak_of(const json& record, const char* kind) {
    return bytes_of(record["memory"]["peak_mib"].value(kind, 0.0));
  }
};

void expect_all_verified(const std::vector<json>& records) {
  for (const json& r : records) {
    EXPECT_EQ(r["status"], "ok") << r["axes"] << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["verify"];
    EXPECT_NE(r["verify"].value("text", "").find(" steps counted by what they have done"), std::string::npos)
        << r["axes"] << r["verify"];
  }
}

const std::string both_ways = "impl = [\"naive\", \"flash\"]\nexecution = [\"eager\", \"graph\"]\n";

// Model and inputs are set up; what a pass needs is taken by the first step, and is the same in the end.
TEST_F(Attention, StartsCold) {
  const auto records = records_of({.plugin = "attention",
                                   .params = "batch_size = 2\nhead_dim = 16\nseq = 32\nprojections = true",
                                   .measure = "warmup = 0\nsteps = 2\nprepare = false",
                                   .sweep = both_ways + "pass = [\"forward\", \"backward\", \"both\"]\n"});
  ASSERT_EQ(records.size(), 12u);
  expect_all_verified(records);
  for (const json& r : records) {
    const bool backward = r["params"]["pass"] != "forward";
    EXPECT_GT(bytes_at(r, "after_setup", "parameters"), 0);
    EXPECT_EQ(bytes_at(r, "after_setup", "gradients"), 0) << r["axes"];
    EXPECT_EQ(peak_of(r, "gradients") > 0, backward) << r["axes"];
    EXPECT_NE(r["notes"].dump().find("prepare = false"), std::string::npos);
    EXPECT_GT(r["metrics"]["matrix_tflop_per_s"]["value"], 0);
  }
}

TEST_F(Attention, OddSizesAreVerifiedInEveryWay) {
  const auto records =
      run_cases("batch_size = 2\nheads = 3\nhead_dim = 7", both_ways + "seq = [1, 7, 129]\ncausal = [true, false]");
  ASSERT_EQ(records.size(), 24u);
  expect_all_verified(records);
}

TEST_F(Attention, WindowsAreVerifiedInEveryWay) {
  auto records = run_cases("batch_size = 2\nheads = 2\nhead_dim = 8\nseq = 129", both_ways + "window = [1, 20, 129]");
  ASSERT_EQ(records.size(), 12u);
  expect_all_verified(records);
}

TEST_F(Attention, PackedDocumentsAreVerifiedInEveryWay) {
  auto records = run_cases(
      "batch_size = 2\nheads = 2\nhead_dim = 8\nseq = 129\nwindow = 30\ndocument_tokens = 25\ndocument_lengths = "
      "\"log_normal\"",
      both_ways + "projections = [true, false]");
  ASSERT_EQ(records.size(), 8u);
  expect_all_verified(records);
}

TEST_F(Attention, ValuesOfAnotherWidthAreVerifiedInEveryWay) {
  const std::string shape = "batch_size = 2\nheads = 3\nhead_dim = 9\nseq = 33\n";
  const auto records = run_cases(shape, both_ways + "value_dim = [5, 12]");
  ASSERT_EQ(records.size(), 8u);
  expect_all_verified(records);
  const RunResult refused =
      run_experiment({.plugin = "attention", .params = shape + "value_dim = 5\nprojections = true\n"});
  EXPECT_NE(refused.exit.code, 0);
  EXPECT_NE(refused.output.find("expected projections = false, or value_dim left out"), std::string::npos);
}

TEST_F(Attention, Bf16AndOtherHeadDimensionsAreVerified) {
  auto records = run_cases("batch_size = 3\ndtype = \"bf16\"\nhead_dim = 32", both_ways + "seq = [1, 7, 129]");
  EXPECT_EQ(records.size(), 12u);
  expect_all_verified(records);
  records =
      run_cases("batch_size = 1\nseq = 129\ncausal = false", "impl = [\"naive\", \"flash\"]\nhead_dim = [1, 128]");
  EXPECT_EQ(records.size(), 4u);
  expect_all_verified(records);
}

TEST_F(Attention, LongSequencesAreVerifiedOnSomeQueries) {
  const auto records = run_cases("batch_size = 1\nseq = 4096\nhead_dim = 16", "dtype = [\"fp32\", \"bf16\"]");
  ASSERT_EQ(records.size(), 2u);
  expect_all_verified(records);
  EXPECT_NE(records[0]["verify"]["text"].get<std::string>().find("1024 of 4096 queries"), std::string::npos)
      << records[0]["verify"];
}

TEST_F(Attention, EachPassHasItsPhasesAndItsWork) {
  const auto records =
      run_cases("batch_size = 2\nseq = 64\nhead_dim = 32", both_ways + "pass = [\"forward\", \"backward\", \"both\"]");
  ASSERT_EQ(records.size(), 12u);
  expect_all_verified(records);
  const std::int64_t forward = 2LL * 2 * 64 * 64 * 32;  // causal: half of 4 b h s^2 d
  for (const json& r : records) {
    const std::string pass = r["axes"]["pass"];
    SCOPED_TRACE(r["axes"].dump());
    EXPECT_EQ(r["phases"].contains("forward"), pass != "backward");
    EXPECT_EQ(r["phases"].contains("backward"), pass != "forward");
    EXPECT_EQ(r["work"]["flops"], pass == "forward" ? forward : pass == "backward" ? 2 * forward : 3 * forward);
    EXPECT_EQ(r["work"]["items"], 2 * 64);
    EXPECT_GT(r["metrics"]["matrix_tflop_per_s"]["value"].get<double>(), 0);
    EXPECT_GT(r["metrics"]["share_of_matrix_rate"]["value"].get<double>(), 0);
    const std::string verified = r["verify"]["text"];
    EXPECT_EQ(verified.find("dk by") != std::string::npos, pass != "forward") << verified;
  }
}

// All other tests make it with small matrices. What multiplied them is in the record, by its shape.
TEST_F(Attention, TheRateOfMatricesIsThatOfLargeOnesUnlessItIsToBeBrief) {
  for (const auto& [wanted, shape] :
       {std::pair{"", "[2048x2048]*[2048x2048]"}, std::pair{"brief", "[256x256]*[256x256]"}}) {
    set_variable("ASSAY_PEAK_TRIAL", wanted);
    const auto records = run_cases("batch_size = 1\nseq = 16\nhead_dim = 16");
    ASSERT_EQ(records.size(), 1u);
    EXPECT_PRED2(contains, records[0]["algorithms"].dump(), shape);
    EXPECT_GT(records[0]["metrics"]["matrix_tflop_per_s"]["value"].get<double>(), 0);
  }
  set_variable("ASSAY_PEAK_TRIAL", "short");
  const auto records = run_cases("batch_size = 1\nseq = 16\nhead_dim = 16");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_PRED2(contains, records[0]["reason"], "ASSAY_PEAK_TRIAL is \"short\"; expected brief");
}

constexpr std::int64_t tensor = 2 * 256 * 16 * 4, matrix = 2 * 256 * 256 * 4;  // fp32, batch 2
const std::string of_memory = "batch_size = 2\nseq = 256\nhead_dim = 16\n";

TEST_F(Attention, MomentsShowWhatAFrameworkHolds) {
  const auto records = run_cases(of_memory, both_ways);
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    const bool naive = r["axes"]["impl"] == "naive", eager = r["axes"]["execution"] == "eager";
    const std::int64_t mask = naive && eager ? 256 * 256 * 4 : 0;
    const std::int64_t kept = naive ? matrix : 2 * 256 * 4;  // probabilities, or log-sum-exp
    EXPECT_EQ(bytes_at(r, "after_inputs"), 3 * tensor + mask);
    EXPECT_EQ(bytes_at(r, "after_forward"), 3 * tensor + mask + tensor + kept);
    EXPECT_EQ(bytes_at(r, "before_backward"), 3 * tensor + mask + tensor + kept + tensor);
    EXPECT_EQ(bytes_at(r, "after_backward"), 3 * tensor + mask + tensor + tensor + 3 * tensor);
    EXPECT_EQ(peak_of(r, "gradients"), 3 * tensor);
    // Eager: probabilities and two results of passes. Graph: the scores in place, and their gradient.
    EXPECT_EQ(peak_of(r, "activations"), tensor + (naive ? (eager ? 3 : 2) * matrix : kept));
    EXPECT_EQ(peak_of(r, "data"), 4 * tensor + mask);
  }
}

TEST_F(Attention, ABackwardThatIsRepeatedKeepsTheProbabilities) {
  const auto records = run_cases(of_memory + "impl = \"naive\"\npass = \"backward\"\nexecution = \"graph\"");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(bytes_at(records[0], "after_backward", "activations"), tensor + matrix);
}

TEST_F(Attention, AForwardAloneKeepsNothingButItsOutput) {
  const auto records =
      run_cases(of_memory + "impl = \"naive\"\npass = \"forward\"", "execution = [\"eager\", \"graph\"]");
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) {
    EXPECT_EQ(bytes_at(r, "after_forward", "activations"), tensor);
    EXPECT_EQ(peak_of(r, "gradients"), 0);
    EXPECT_EQ(peak_of(r, "activations"), tensor + (r["axes"]["execution"] == "eager" ? 2 : 1) * matrix);
  }
}

TEST_F(Attention, AMatrixThatDoesNotFitIsNamedWithItsShapeAndSize) {
  const auto records =
      run_cases("batch_size = 1\nhead_dim = 1\nseq = 1048576\nimpl = \"naive\"\npass = \"forward\"", "", 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "oom");
  EXPECT_EQ(records[0]["stage"], "setup");
  const std::string reason = records[0]["reason"];
  EXPECT_NE(reason.find("4194304.0 MiB of activations (scores [1, 1, 1048576, 1048576] fp32)"), std::string::npos)
      << reason;
  EXPECT_GT(bytes_at(records[0], "after_inputs"), 0);  // what came before is recorded
}

// Of one head, as a report's grid has them; of the tiled attention, too, which on this device has no limit.
TEST_F(Attention, LargeHeadDimensionsAndShortContextsAreVerified) {
  auto records = run_cases("batch_size = 2", both_ways + "head_dim = [1024, 4096]\nseq = [16]");
  EXPECT_EQ(records.size(), 8u);
  expect_all_verified(records);
  records = run_cases("batch_size = 1\nseq = 32\nhead_dim = 16384",
                      "impl = [\"naive\", \"flash\"]\ndtype = [\"fp32\", \"bf16\"]");
  ASSERT_EQ(records.size(), 4u);
  expect_all_verified(records);
}

TEST_F(Attention, AHeadDimensionAboveTheLargestIsAMistake) {
  run_cases("head_dim = 16385", "", 2);
  EXPECT_NE(output().find("head_dim is 16385; expected an integer >= 1 and <= 16384"), std::string::npos) << output();
}

TEST_F(Attention, OperationsThatCannotBeCountedAreRefused) {
  const auto records = run_cases("batch_size = 4096\nheads = 256\nseq = 1048576");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "failed");
  EXPECT_NE(records[0]["reason"].get<std::string>().find("2^63 operations or more"), std::string::npos)
      << records[0]["reason"];
}

const std::string every_pass = "pass = [\"forward\", \"backward\", \"both\"]\n";

TEST_F(Attention, ALayerIsVerifiedInEveryWay) {
  auto records = run_cases("batch_size = 2\nheads = 3\nhead_dim = 7\nprojections = true",
                           both_ways + every_pass + "seq = [65]\ncausal = [true, false]");
  ASSERT_EQ(records.size(), 24u);
  expect_all_verified(records);
  for (const json& r : records) {
    const std::string text = r["verify"]["text"];
    for (const char* product : {", q by ", ", k by ", ", v by ", ", y by "})
      EXPECT_NE(text.find(product), std::string::npos) << text;
    for (const char* product : {", dout by ", ", dWo by ", ", dWq by ", ", dWk by ", ", dWv by ", ", dx by "})
      EXPECT_EQ(text.find(product) != std::string::npos, r["axes"]["pass"] != "forward") << text;
  }
  records =
      run_cases("batch_size = 2\nhead_dim = 512\nprojections = true\ndtype = \"bf16\"", both_ways + "seq = [1, 33]");
  ASSERT_EQ(records.size(), 8u);
  expect_all_verified(records);
}

TEST_F(Attention, ALayersWorkIncludesItsProducts) {
  const auto records = run_cases("batch_size = 2\nseq = 64\nheads = 2\nhead_dim = 16\nprojections = true", every_pass);
  ASSERT_EQ(records.size(), 3u);
  const std::int64_t forward = 2LL * 2 * 64 * 64 * 32 + 8LL * 2 * 64 * 32 * 32;
  EXPECT_EQ(records[0]["work"]["flops"], forward);
  EXPECT_EQ(records[1]["work"]["flops"], 2 * forward);
  EXPECT_EQ(records[2]["work"]["flops"], 3 * forward);
}

// q, k, v and the attention's result are kept for the backward, and so is what naive keeps.
TEST_F(Attention, ALayersMomentsShowItsWeightsAndWhatItKeeps) {
  const auto records = run_cases(of_memory + "projections = true\nimpl = \"naive\"",
                                 "execution = [\"eager\", \"graph\"]\npass = [\"forward\", \"both\"]");
  ASSERT_EQ(records.size(), 4u);
  constexpr std::int64_t weights = 4 * 16 * 16 * 4;
  for (const json& r : records) {
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    const bool both = r["axes"]["pass"] == "both", eager = r["axes"]["execution"] == "eager";
    const std::int64_t inputs = weights + tensor + (eager ? 256 * 256 * 4 : 0);
    EXPECT_EQ(bytes_at(r, "after_model"), weights);
    EXPECT_EQ(bytes_at(r, "after_model", "parameters"), weights);
    EXPECT_EQ(bytes_at(r, "after_inputs"), inputs);
    EXPECT_EQ(bytes_at(r, "after_forward"), inputs + tensor + (both ? 4 * tensor + matrix : 0));
    EXPECT_EQ(peak_of(r, "parameters"), weights);
    if (!both) continue;
    EXPECT_EQ(bytes_at(r, "before_backward"), inputs + tensor + 4 * tensor + matrix + tensor);
    EXPECT_EQ(bytes_at(r, "after_backward"), inputs + tensor + tensor + tensor + weights);
    EXPECT_EQ(bytes_at(r, "after_backward", "gradients"), tensor + weights);
  }
}

TEST_F(Attention, WithoutProjectionsThereAreNoWeights) {
  const auto records = run_cases(of_memory);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(bytes_at(records[0], "after_model"), 0);
}

TEST_F(Attention, DtypesThatTheCpuLacksAreUnsupported) {
  const auto records = run_cases("seq = 16", "dtype = [\"tf32\", \"fp16\"]");
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) {
    EXPECT_EQ(r["status"], "unsupported");
    const std::string reason = r["reason"];
    EXPECT_NE(reason.find("dtype '" + r["axes"]["dtype"].get<std::string>() + "'"), std::string::npos) << reason;
    EXPECT_NE(reason.find("there are fp32 and bf16"), std::string::npos) << reason;
  }
}

TEST_F(Attention, AnImpossibleSizeIsAMistakeWithItsPlace) {
  run_cases("seq = 0", "", 2);
  EXPECT_NE(output().find("x.toml:6:"), std::string::npos) << output();
}

}  // namespace
}  // namespace assay::test
