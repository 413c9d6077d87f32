// What `assay plan` says, against what cases take when they run.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class Plan : public Sandbox {
 protected:
  explicit Plan(fs::path plugins = {}) : Sandbox(std::move(plugins)) {}

  // Of the experiment that was written last.
  RunResult plan(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = run_arguments({"--output", "out"});
    arguments.front() = "plan";
    arguments.resize(arguments.size() - 2);  // a plan has no output
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  json planned(std::vector<std::string> more = {}, int code = 0) const {
    more.emplace_back("--json");
    const RunResult result = plan(std::move(more));
    EXPECT_EQ(result.exit.code, code) << result.output;
    // Refusals stand on standard error, beside it.
    const std::size_t begin = std::min(result.output.find('{'), result.output.size());
    const std::size_t end = result.output.rfind('}');
    json reported =
        json::parse(result.output.substr(begin, end == std::string::npos ? 0 : end + 1 - begin), nullptr, false);
    EXPECT_FALSE(reported.is_discarded()) << result.output;
    return reported;
  }
};

class PlanOfPlugins : public Plan {
 protected:
  PlanOfPlugins() : Plan(PLAN_PLUGINS) {}
};

constexpr const char* placed_kinds[] = {"parameters",  "gradients", "optimizer_state",
                                        "activations", "data",      "communication"};

// To the byte, but the scratch of kernels, which depends on the processor or on the algorithm that was chosen.
void expect_equal_peaks(const json& planned, const json& record) {
  for (const char* kind : placed_kinds) {
    const double mib = record.at("memory").at("peak_mib").value(kind, 0.0);
    EXPECT_EQ(planned.at("memory").at("peak_bytes").value(kind, 0.0) / 1048576, mib)
        << kind << " of " << record["axes"];
  }
}

struct Trained {
  const char* name;
  ExperimentText text;
};
void PrintTo(const Trained& trained, std::ostream* out) { *out << trained.name; }

class PlanOfWorkload : public Plan, public testing::WithParamInterface<Trained> {};

TEST_P(PlanOfWorkload, IsWhatARunTakesHere) {
  const std::vector<json> records = records_of(GetParam().text);
  const json plan = planned();
  ASSERT_EQ(plan["cases"].size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(plan["cases"][i]["state"], "planned") << plan["cases"][i].dump();
    expect_equal_peaks(plan["cases"][i], records[i]);
    EXPECT_EQ(plan["cases"][i]["fits"], true);
  }
}

constexpr const char* small_decoder =
    "d_model = 64\nd_ff = 128\nlayers = 2\nheads = 2\nvocab_size = 211\n"
    "batch_size = 4\ncontext_length = 32\n";
const std::string decoder_params = small_decoder;
// Two ranks share no vocabulary of 211.
const std::string even_decoder =
    "d_model = 64\nd_ff = 128\nlayers = 2\nheads = 2\nvocab_size = 212\nbatch_size = 4\ncontext_length = 32\n";
INSTANTIATE_TEST_SUITE_P(
    All, PlanOfWorkload,
    testing::Values(
        Trained{"decoder",
                {.plugin = "decoder",
                 .params = decoder_params,
                 .sweep = "pass = [\"forward\", \"forward_backward\", \"train_step\"]\nprecision = [\"fp32\", "
                          "\"bf16\", \"fp8\"]"}},
        Trained{"cold_decoder",
                {.plugin = "decoder", .params = decoder_params, .measure = "warmup = 1\nsteps = 3\nprepare = false"}},
        Trained{"moe",
                {.plugin = "moe",
                 .params = decoder_params + "kv_heads = 2\n",
                 .sweep = "routing = [\"learned\", \"zipf\"]\nprecision = [\"fp32\", \"bf16\"]\nexpert_biases = "
                          "[false, true]"}},
        Trained{"ddp",
                {.plugin = "ddp",
                 .params = decoder_params,
                 .run = "ranks = 2\nthreads = 1",
                 .sweep = "strategy = [\"naive\", \"overlap_bucketed\"]"}},
        Trained{"sharded_optimizer",
                {.plugin = "sharded_optimizer",
                 .params = decoder_params,
                 .run = "ranks = 2\nthreads = 1",
                 .sweep = "variant = [\"baseline\", \"broadcast\", \"zero1\"]"}},
        Trained{"fsdp",
                {.plugin = "fsdp",
                 .params = decoder_params,
                 .run = "ranks = 2\nthreads = 1",
                 .sweep = "reshard = [false, true]\nprecision = [\"fp32\", \"bf16\"]"}},
        Trained{"fsdp_micro_batches",
                {.plugin = "fsdp",
                 .params = decoder_params + "tied_embeddings = true\nloss_chunks = 3\naccumulation_steps = 2\n",
                 .run = "ranks = 2\nthreads = 1",
                 .sweep = "sync_every_micro_batch = [true, false]"}},
        Trained{"fsdp_ahead",
                {.plugin = "fsdp",
                 .params = decoder_params + "prefetch_blocks = 2\ngathers = \"measured\"\n",
                 .run = "ranks = 2\nthreads = 1",
                 .sweep = "reshard = [false, true]\nreduce_dtype = [\"gradients\", \"bf16\"]"}},
        Trained{"tensor_parallel",
                {.plugin = "tensor_parallel",
                 .params = even_decoder + "loss_chunks = 3\naccumulation_steps = 2\n",
                 .run = "ranks = 2\nthreads = 1",
                 .sweep = "sequence_parallel = [false, true]\nprecision = [\"fp32\", \"bf16\"]\n"
                          "communication_chunks = [1, 3]"}},
        Trained{"replicas",
                {.plugin = "tensor_parallel",
                 .params = even_decoder + "replicas = 2\n",
                 .run = "ranks = 4\nthreads = 1",
                 .sweep = "sequence_parallel = [false, true]"}},
        Trained{"context_parallel",
                {.plugin = "context_parallel",
                 .params = even_decoder,
                 .run = "ranks = 2\nthreads = 1",
                 .sweep = "activation_checkpointing = [false, true]"}},
        Trained{"context_replicas",
                {.plugin = "context_parallel",
                 .params = even_decoder + "replicas = 2\n",
                 .run = "ranks = 4\nthreads = 1",
                 .sweep = "activation_checkpointing = [false, true]"}},
        Trained{"encoder_decoder",
                {.plugin = "encoder_decoder",
                 .params = "d_model = 32\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nd_ff = 64\nbatch_size = "
                           "4\nsequence_length = 16\nvocab_size = 97\nnum_samples = 64",
                 .run = "threads = 1"}},
        Trained{"attention", {.plugin = "attention", .params = "seq = 64\nheads = 2\nhead_dim = 16"}}),
    [](const auto& info) { return std::string(info.param.name); });

// As of a record of 2026-11-23, since when activations are placed in less; the other kinds to the byte.
void expect_peaks_of_then(const json& planned, const json& record) {
  for (const char* kind : placed_kinds) {
    const double then = record.at("memory").at("peak_mib").value(kind, 0.0);
    const double now = planned.at("memory").at("peak_bytes").value(kind, 0.0) / 1048576;
    if (kind != std::string("activations")) {
      EXPECT_EQ(now, then) << kind << " of " << record["axes"];
      continue;
    }
    EXPECT_LE(now, then) << record["axes"];
    EXPECT_GE(now, 0.95 * then) << record["axes"];
  }
}

// The records of an H200 are kept; there is none in this machine.
TEST_F(Plan, IsWhatAnH200Took) {
  for (const char* name :
       {"decoder-execution", "encoder-decoder", "mixed-precision-speed-accuracy", "decoder-precision"}) {
    SCOPED_TRACE(name);
    const std::string published = SOURCES "/results/published/h200-2026-11-23/" + std::string(name);
    const RunResult result = run(
        {"plan", SOURCES "/configs/" + std::string(name) + ".toml", "--device", "h200", "--from", published, "--json"});
    ASSERT_EQ(result.exit.code, 0) << result.output;
    const json plan = json::parse(result.output);
    std::ifstream lines(published + "/cases.jsonl");
    std::size_t cases = 0;
    for (std::string line; std::getline(lines, line);) {
      const json record = json::parse(line);
      const json& c = plan["cases"][record["index"].get<std::size_t>()];
      ASSERT_EQ(c["axes"], record["axes"]);
      expect_peaks_of_then(c, record);
      const double step_ms = record["phases"]["step"]["mean_ms"];
      EXPECT_LE(c["step"]["least_ms"].get<double>(), step_ms);
      EXPECT_NEAR(c["step"]["expected"]["ms"].get<double>() / step_ms, 1, 0.1);
      const double used_mib = record["memory"]["device_used_mib"];
      EXPECT_NEAR(c["memory"]["process_mib"].get<double>() / (526.8 + used_mib), 1, 0.02);
      ++cases;
    }
    EXPECT_GT(cases, 0u);
  }
}

// Of three of its cases one tiny record was all that there was: they had times 20 to 30 times the measured ones.
TEST_F(Plan, NoTimeIsExpectedOfACaseFarBeyondAllRecords) {
  const std::vector<std::string> arguments{
      "plan", SOURCES "/configs/tensor-parallel.toml", "--device", "h200", "--from", SOURCES "/results/published"};
  const RunResult reported = run(arguments);
  ASSERT_EQ(reported.exit.code, 0) << reported.output;
  EXPECT_TRUE(contains(reported.output, "cases 1 to 3 have no expected time: every earlier case with the same choices"))
      << reported.output;
  EXPECT_TRUE(contains(reported.output, "at least ")) << reported.output;
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  const json plan = json::parse(run(as_json).output);
  for (const std::size_t i : {0u, 1u, 2u}) {
    EXPECT_FALSE(plan["cases"][i]["step"].contains("expected")) << plan["cases"][i]["step"].dump();
    EXPECT_EQ(plan["cases"][i]["step"].value("why_not_expected", ""), "too far");
    EXPECT_FALSE(plan["cases"][i].contains("expected_case_s"));
  }
  EXPECT_TRUE(plan["cases"][3]["step"].contains("expected"));
  EXPECT_EQ(plan["node_hours_are_least"], true);
}

// Each kind is tried with its own memory, one after the other, on a GPU that is not here.
TEST_F(Plan, MeasuredGathersArePlannedWithTheMemoryOfTheirTrial) {
  for (const std::string plugin : {"fsdp", "sharded_optimizer"}) {
    SCOPED_TRACE(plugin);
    write_experiment({.plugin = plugin,
                      .params = "size = \"tiny\"\nprecision = \"bf16\"\nexecution = \"graph\"\n",
                      .run = "ranks = 2",
                      .sweep = "gathers = [\"any_memory\", \"windows\", \"copy_engines\", \"measured\"]",
                      .device = "cuda"});
    const json plan = planned({"--device", "h200"});
    ASSERT_EQ(plan["cases"].size(), 4u);
    const auto held = [&](std::size_t i, const char* kind) {
      return plan["cases"][i]["memory"]["peak_bytes"].value(kind, 0.0);
    };
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(plan["cases"][i]["state"], "planned") << plan["cases"][i].dump();
      for (const char* kind : placed_kinds)
        if (i < 3 || kind != std::string("communication")) {
          EXPECT_EQ(held(i, kind), held(0, kind)) << i << kind;
        }
    }
    EXPECT_GE(held(3, "communication"), held(0, "communication"));
    if (plugin == "sharded_optimizer") {
      EXPECT_GT(held(3, "communication"), held(0, "communication"));
    }
  }
}

TEST_F(Plan, FindsTheLargestThatFits) {
  write_experiment({.plugin = "decoder", .params = "size = \"small\"\nprecision = \"bf16\"", .device = "cuda"});
  const json plan = planned({"--device", "rtx4090", "--largest", "batch_size"});
  const std::int64_t largest = plan["cases"][0]["largest"]["value"];
  EXPECT_GT(largest, 8);
  const auto fits = [&](std::int64_t batch, int code) {
    return planned({"--device", "rtx4090", "--set", "workload.params.batch_size=" + std::to_string(batch)},
                   code)["cases"][0]["fits"];
  };
  EXPECT_EQ(fits(largest, 0), true);
  EXPECT_EQ(fits(largest + 1, 1), false);
}

// With a limit that a run would pass: `fits` is held against the smaller of it and the device's memory.
TEST_F(Plan, ALimitOfMemoryIsHeldAgainstOnTheCpu) {
  write_experiment(
      {.plugin = "decoder", .params = decoder_params, .sweep = "\"run.memory_limit\" = [\"64KiB\", \"1GiB\"]"});
  const json plan = planned({}, 1);
  EXPECT_EQ(plan["cases"][0]["fits"], false) << plan.dump();
  EXPECT_EQ(plan["cases"][1]["fits"], true) << plan.dump();
  const RunResult dry = run(run_arguments({"--dry-run"}));
  EXPECT_EQ(dry.exit.code, 1) << "as plan";
  EXPECT_TRUE(contains(dry.output, "1 of 2 cases do not fit")) << dry.output;
  EXPECT_TRUE(contains(dry.output, "add 22 MiB a process")) << dry.output;
  EXPECT_FALSE(contains(dry.output, "  1  run.memory_limit")) << "the cases stand in the plan's table, once\n"
                                                              << dry.output;
  EXPECT_TRUE(contains(dry.output, "2 of 2 cases have a [run] memory_limit")) << dry.output;
  const RunResult elsewhere = this->plan({"--device", "h200", "--set", "run.device=\"cuda\""});
  EXPECT_EQ(elsewhere.exit.code, 0) << elsewhere.output;
  EXPECT_TRUE(contains(elsewhere.output, "is of the host's memory")) << elsewhere.output;
}

TEST_F(Plan, RefusesWhatThePluginRefusesWhereItStands) {
  write_experiment({.plugin = "decoder", .params = "heads = 7\nd_model = 64", .sweep = "batch_size = [1, 2]"});
  const RunResult result = run(run_arguments({"--dry-run"}));
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_TRUE(contains(result.output, "d_model")) << result.output;
  EXPECT_TRUE(contains(result.output, ".toml:")) << result.output;
  EXPECT_TRUE(contains(result.output, "1 mistake; nothing was started")) << result.output;
  EXPECT_EQ(planned({}, 1)["cases"][0]["state"], "refused");
  // A run says the same before it has a folder.
  const RunResult ran = run(run_arguments());
  EXPECT_EQ(ran.exit.code, 2) << ran.output;
  EXPECT_TRUE(contains(ran.output, "heads 7")) << ran.output;
  EXPECT_TRUE(contains(ran.output, "1 mistake; nothing was started")) << ran.output;
  EXPECT_FALSE(fs::exists(folder() / "out")) << ran.output;
}

TEST_F(Plan, ARunOfWhichThePluginRefusesAPartSaysHowTheRestRuns) {
  const ExperimentText text{
      .plugin = "decoder",
      .params = "d_model = 64\nd_ff = 128\nlayers = 1\nvocab_size = 97\nbatch_size = 1\ncontext_length = 8",
      .sweep = "heads = [2, 7]"};
  write_experiment(text);
  const RunResult refused = run(run_arguments());
  EXPECT_EQ(refused.exit.code, 2) << refused.output;
  EXPECT_TRUE(contains(refused.output, "1 of 2 cases is refused; --filter runs the others")) << refused.output;
  EXPECT_EQ(records_of(text, 0, {"--filter", "heads!=7"}).size(), 1u);
  const std::vector<json> allowed = records_of(text, 0, {"--set", "run.allow=[\"failed\"]"});
  ASSERT_EQ(allowed.size(), 2u);
  EXPECT_EQ(allowed[1]["status"], "failed");
}

TEST_F(Plan, ADryRunOfABatchNamesTheCaseThatThePluginRefuses) {
  write_experiment({.plugin = "decoder",
                    .params = "d_model = 64\nd_ff = 128\nlayers = 1\nvocab_size = 97\nbatch_size = 1",
                    .sweep = "heads = [1, 2, 4, 8, 7, 16, 32]"});
  std::ofstream(folder() / "site.toml") << "schema = 1\n[ssh]\nhosts = [\"n1\"]\ntime_max = \"1h\"\n";
  std::vector<std::string> arguments = run_arguments({"--dry-run", "--site", (folder() / "site.toml").string()});
  arguments.front() = "submit";
  const RunResult result = run(arguments);
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_TRUE(contains(result.output, "(case 5: heads=7)")) << result.output;
  EXPECT_TRUE(contains(result.output, "1 mistake; nothing was started")) << result.output;
  EXPECT_FALSE(contains(result.output, "had time to ask the plugin about")) << "all of them were\n" << result.output;
}

TEST_F(Plan, TellsThatNothingHasRoomForACase) {
  write_experiment({.plugin = "decoder", .params = "batch_size = 1048576\ncontext_length = 1048576", .device = "cuda"});
  const json plan = planned({"--device", "b200"}, 1);
  EXPECT_EQ(plan["cases"][0].value("state", ""), "too large") << plan.dump();
  EXPECT_EQ(plan["cases"][0].value("fits", true), false) << plan.dump();
  const RunResult dry = run(run_arguments({"--dry-run", "--set", "run.device=\"cpu\""}));
  EXPECT_EQ(dry.exit.code, 2) << dry.output;
  const RunResult allowed =
      run(run_arguments({"--dry-run", "--set", "run.device=\"cpu\"", "--set", "run.allow=[\"oom\"]"}));
  EXPECT_EQ(allowed.exit.code, 0) << allowed.output;
  planned({"--device", "b200", "--set", "run.allow=[\"oom\"]"}, 0);
  const RunResult elsewhere = this->plan({"--device", "b200", "--set", "run.device=\"cpu\""});
  EXPECT_EQ(elsewhere.exit.code, 1) << elsewhere.output;
  EXPECT_TRUE(contains(elsewhere.output, "no case could be planned")) << elsewhere.output;
}

TEST_F(Plan, MistakesOfTheCommandLine) {
  write_experiment({.plugin = "decoder", .params = decoder_params});
  const auto expect = [&](std::vector<std::string> more, const std::string& text) {
    const RunResult result = plan(std::move(more));
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_TRUE(contains(result.output, text)) << result.output;
  };
  expect({"--device", "h20"},
         "no device 'h20' is described; did you mean 'h200'? Expected auto, cpu or cuda of this machine, or a100-80gb");
  expect({"--device", "hip"}, "no device 'hip' is described, and no backend of this kind is installed; expected auto");
  expect({"--device", "h200", "--device-file", "x.toml"}, "exclude each other");
  expect({"--device-file", "nowhere.toml"}, "nowhere.toml");
  expect({"--largest", "batchsize"}, "--largest is 'batchsize'; did you mean 'batch_size'? Expected an integer");
  expect({"--largest", "precision"}, "expected an integer parameter");
  expect({"--from", "nowhere"}, "nowhere");
  std::ofstream(folder() / "d.toml") << "kind = \"cuda\"\n";
  expect({"--device-file", (folder() / "d.toml").string()}, "d.toml: name: expected a text, which is missing");
  expect({"--device", (folder() / "d.toml").string()}, "which is a file; --device-file takes it");
}

TEST_F(Plan, DescribesThisMachine) {
  const RunResult none = run({"describe-device", "--device", "cpu"});
  EXPECT_EQ(none.exit.code, 2) << none.output;
  EXPECT_TRUE(contains(none.output, "give a run on it by --from")) << none.output;
  records_of({.plugin = "decoder", .params = decoder_params});
  const RunResult described = run({"describe-device", "--device", "cpu", "--from", run_folder().string(), "--output",
                                   (folder() / "d.toml").string()});
  ASSERT_EQ(described.exit.code, 0) << described.output;
  // Without that file nothing is known of this processor's peaks: the times are wanting for that alone.
  const RunResult unknown = this->plan({"--device", "cpu", "--from", run_folder().string()});
  EXPECT_TRUE(contains(unknown.output, "case 1 has no expected time: this machine has no peaks")) << unknown.output;
  EXPECT_TRUE(contains(unknown.output, "`assay describe-device --device cpu --from RUN --output FILE`"))
      << unknown.output;
  const json plan = planned({"--device-file", (folder() / "d.toml").string(), "--from", run_folder().string()});
  EXPECT_GT(plan["cases"][0]["step"]["least_ms"].get<double>(), 0);
  EXPECT_GT(plan["cases"][0]["step"]["expected"]["ms"].get<double>(), 0);
}

// What probes find stands in a file that a plan takes, with a bandwidth where the maker's is not known.
TEST_F(Plan, ProbesThisMachine) {
  const std::string file = (folder() / "probed.toml").string();
  const RunResult described = run({"describe-device", "--device", "cpu", "--probe", "--output", file});
  ASSERT_EQ(described.exit.code, 0) << described.output;
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const char* part : {"[peak]\nfp32_tflop_per_s = ", "[event]\nleast_gap_us = ", "[rate]\ncopy_gbytes_per_s = ",
                           "[team]\nthreads = ", "\nrate = \"assay describe-device --probe; oneDNN"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in " << text;
  EXPECT_FALSE(contains(text, "# The probe")) << text;
  write_experiment({.plugin = "decoder", .params = decoder_params});
  EXPECT_GT(planned({"--device-file", file})["cases"][0]["step"]["least_ms"].get<double>(), 0);
}

TEST_F(PlanOfPlugins, AWorkloadMayTellByItself) {
  write_experiment({.plugin = "told_plan", .sweep = "n = [1000, 13, 5000]"});
  const json plan = planned({}, 1);
  const json& first = plan["cases"][0];
  EXPECT_EQ(first["told_by_plugin"], true);
  EXPECT_EQ(first["memory"]["peak_bytes"], (json{{"data", 24000}, {"workspace", 4096}}));
  EXPECT_EQ(first["memory"]["at_step_bytes"]["workspace"], 0);
  EXPECT_EQ(first["operations"]["other"]["bytes"], 24000);
  EXPECT_EQ(plan["cases"][1]["state"], "refused");
  EXPECT_EQ(plan["cases"][2]["memory"]["peak_bytes"]["data"], 120000);
}

TEST_F(Plan, ShowsTheNumberOfRanksOnce) {
  write_experiment(
      {.plugin = "ddp", .params = decoder_params, .run = "threads = 1", .sweep = "\"run.ranks\" = [1, 2]"});
  const std::string output = plan().output;
  const std::size_t begin = output.find("case  ");
  ASSERT_NE(begin, std::string::npos) << output;
  EXPECT_TRUE(output.substr(begin).starts_with("case  ranks  fits")) << output;
}

// Its setup writes to what it has taken, where nobody may: each of its cases ends the process that walks through it.
TEST_F(PlanOfPlugins, OneThatTellsNothingIsNotKnown) {
  write_experiment({.plugin = "untold_plan", .sweep = "n = [1000, 5000, 7000]"});
  const json plan = planned({}, 1);
  ASSERT_EQ(plan["cases"].size(), 3u);
  for (const json& c : plan["cases"]) {
    EXPECT_EQ(c["state"], "not known");
    EXPECT_TRUE(contains(c["reason"], "signal 11") && contains(c["reason"], "assay.plan/1")) << c["reason"];
  }
}

}  // namespace
}  // namespace assay::test
