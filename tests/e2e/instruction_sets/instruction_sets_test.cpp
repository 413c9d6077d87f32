// A right result is ok on any processor, at small sizes: every experiment of configs/ for a CPU with the lowest and the
// highest instruction set that this one has, workloads in their other formats with each. Two variables choose:
// ASSAY_CPU_ISA our kernels, and ONEDNN_MAX_CPU_ISA those of matrix products.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct InstructionSet {
  const char *name, *kernels, *of_onednn, *products;  // products: as a record names it
};
constexpr InstructionSet instruction_sets[] = {
    {"baseline", "baseline", "SSE41", "sse41"},
    {"avx2", "avx2", "AVX2", "avx2"},
    {"avx512", "avx512", "AVX512_CORE", "avx512_core"},
    {"avx512_bf16", "avx512_bf16", "AVX512_CORE_BF16", "avx512_core_bf16"},
    {"amx", "avx512_bf16", "AVX512_CORE_AMX", "avx512_core_amx"},
};
void PrintTo(const InstructionSet& set, std::ostream* out) { *out << set.name; }

// An experiment of configs/, made small: what is set, and which cases are run.
struct Small {
  std::string name;
  std::vector<std::string> set, filter;
};
const std::vector<std::string> tiny_decoder = {"layers=1", "d_model=32", "d_ff=64", "heads=2", "context_length=16"};
const std::vector<std::string> tiny_study = {"layers=1",          "d_model=32",           "d_ff=64",     "heads=2",
                                             "context_length=16", "reference_context=16", "loss_steps=1"};
const std::vector<std::string> tiny_encoder_decoder = {"d_model=32",         "d_ff=64",          "heads=2",
                                                       "encoder_layers=1",   "decoder_layers=1", "batch_size=2",
                                                       "sequence_length=16", "vocab_size=100",   "num_samples=8"};

std::vector<Small> small_experiments() {
  return {{"quickstart", tiny_decoder, {"pass=train_step"}},
          {"all-reduce-cpu", {}, {"size_mb=1", "run.ranks=2"}},
          {"attention-dimensions-cpu", {"batch_size=1"}, {"head_dim=256", "seq=16", "execution=eager"}},
          {"attention-grid-cpu", {"batch_size=1"}, {"head_dim=16", "seq=64", "execution=eager"}},
          {"ddp-buckets-cpu", tiny_decoder, {"bucket_mb=1"}},
          {"ddp-strategies-cpu", tiny_decoder, {"strategy=overlap_bucketed"}},
          {"context-parallel-cpu", {"context_length=32"}, {"activation_checkpointing=true", "run.ranks=2"}},
          {"context-parallel-replicas-cpu", {"context_length=32"}, {"replicas=2"}},
          {"documents-cpu", {"context_length=64"}, {"document_tokens=48", "document_lengths=log_normal"}},
          {"encoder-decoder-cpu", {"batch_size=1", "num_samples=4"}, {}},
          {"encoder-decoder-disk-cpu", tiny_encoder_decoder, {"data_dir="}},
          {"encoder-decoder-scaling-cpu", tiny_encoder_decoder, {"run.ranks=2"}},
          {"flash-vs-regular-cpu", {}, {"dtype=bf16", "head_dim=64", "seq=128"}},
          {"fsdp-accumulation-cpu", tiny_decoder, {"sync_every_micro_batch=true", "reshard=true", "run.ranks=2"}},
          {"fsdp-cpu", tiny_decoder, {"reshard=true", "run.ranks=2"}},
          {"fsdp-replicas-cpu", tiny_decoder, {"replicas=2"}},
          {"moe-cpu", {"batch_size=1", "context_length=16"}, {"routing=learned"}},
          {"moe-expert-parallel-cpu", {"batch_size=1", "context_length=16"}, {"routing=learned", "run.ranks=2"}},
          {"muon-cpu", tiny_decoder, {"optimizer=muon", "muon_adjust=match_rms_adamw"}},
          {"mixed-precision-loss-curve-cpu", tiny_study, {"loss_steps=1"}},
          {"mixed-precision-speed-accuracy-cpu", tiny_study, {"precision=fp8"}},
          {"pipeline-parallel-cpu", {"context_length=16"}, {"run.ranks=2", "accumulation_steps=4", "virtual_stages=2"}},
          {"pipeline-parallel-replicas-cpu", {"context_length=16"}, {"replicas=2", "virtual_stages=1"}},
          {"sharded-muon-cpu", {"context_length=16"}, {"variant=zero1", "run.ranks=2"}},
          {"sharded-optimizer-cpu", tiny_decoder, {"variant=zero1", "run.ranks=2"}},
          {"tensor-parallel-cpu", tiny_decoder, {"sequence_parallel=true", "run.ranks=2"}},
          {"tensor-parallel-replicas-cpu", tiny_decoder, {"replicas=2"}}};
}

class InstructionSets : public Sandbox, public testing::WithParamInterface<InstructionSet> {
 protected:
  InstructionSets() {
    choose(GetParam());
    set_variable("ASSAY_MATMUL_TUNE", "0");
    set_variable("OMP_WAIT_POLICY", "passive");
  }
  void choose(const InstructionSet& set) {
    set_variable("ASSAY_CPU_ISA", set.kernels);
    set_variable("ONEDNN_MAX_CPU_ISA", set.of_onednn);
  }
  static std::string libraries(const InstructionSet& set = GetParam()) {
    return std::string("products up to ") + set.products + ";";
  }
  static std::string kernels() { return std::string("kernels ") + GetParam().kernels; }
  static void expect_ok(const std::vector<json>& records, const std::string& what) {
    EXPECT_FALSE(records.empty()) << what;
    for (const json& r : records) {
      EXPECT_EQ(r.value("status", ""), "ok") << what << ' ' << r.dump();
      EXPECT_EQ(r.value("verify", json::object()).value("status", ""), "ok") << what << ' ' << r.dump();
      const std::string found = r.value("device", json::object()).value("libraries", "");
      EXPECT_TRUE(contains(found, libraries()) && contains(found, kernels())) << what << ": " << found;
    }
  }
  // Whether this processor has it.
  bool is_here(const InstructionSet& set = GetParam()) {
    choose(set);
    fs::remove_all(folder() / "out");
    write_experiment({.plugin = "attention", .params = "batch_size = 1\nhead_dim = 16\nseq = 16"});
    if (contains(run(run_arguments()).output, "this machine's best is")) return false;
    const std::vector<json> records = cases();
    return !records.empty() && contains(records.front()["device"].value("libraries", ""), libraries(set));
  }
  bool has_higher() {
    bool is_higher = false, found = false;
    for (const InstructionSet& set : instruction_sets) {
      found = found || (is_higher && is_here(set));
      is_higher = is_higher || set.name == std::string_view(GetParam().name);
    }
    choose(GetParam());
    return found;
  }
};

// With the lowest and the highest set: the test below takes those between through their kernels and products.
TEST_P(InstructionSets, EveryExperimentForACpuIsOk) {
  if (!is_here()) GTEST_SKIP() << output();
  if (GetParam().name != std::string_view("baseline") && has_higher())
    GTEST_SKIP() << "this processor has a higher one, with which the experiments run";
  std::set<std::string> seen;
  for (const Small& small : small_experiments()) {
    seen.insert(small.name);
    std::vector<std::string> arguments = {"run", (fs::path(ASSAY_CONFIGS) / (small.name + ".toml")).string(),
                                          "--output", "out"};
    for (const char* const setting : {"measure.warmup=1", "measure.steps=1"})
      arguments.insert(arguments.end(), {"--set", setting});
    for (const std::string& setting : small.set) arguments.insert(arguments.end(), {"--set", setting});
    for (const std::string& filter : small.filter) arguments.insert(arguments.end(), {"--filter", filter});
    EXPECT_EQ(run(arguments).exit.code, 0) << small.name << '\n' << output();
    expect_ok(cases(small.name), small.name);
  }
  for (const auto& entry : fs::directory_iterator(ASSAY_CONFIGS)) {
    const std::string name = entry.path().stem().string();
    if (!name.ends_with("-cpu")) continue;
    EXPECT_TRUE(seen.contains(name)) << name << " is not among the small experiments";
  }
}

// What configs/ have not, and the formats that a processor has its own products for.
TEST_P(InstructionSets, EveryWorkloadIsOkInItsOtherFormats) {
  if (!is_here()) GTEST_SKIP() << output();
  const std::string decoder =
      "size = \"tiny\"\nlayers = 1\nd_model = 40\nd_ff = 72\nheads = 2\ncontext_length = 17\nbatch_size = 2\n";
  const std::string encoder_decoder =
      "d_model = 40\nd_ff = 72\nheads = 2\nencoder_layers = 1\ndecoder_layers = 2\nbatch_size = 3\n"
      "sequence_length = 15\nvocab_size = 101\nnum_samples = 12\n";
  const std::vector<ExperimentText> experiments = {
      {.plugin = "decoder", .params = decoder, .sweep = "precision = [\"bf16\", \"bf16_pure\"]"},
      {.plugin = "encoder_decoder", .params = encoder_decoder, .sweep = "amp = [\"off\", \"bf16\"]"},
      {.plugin = "ddp", .params = decoder, .run = "ranks = 2", .sweep = "precision = [\"bf16\"]"},
      {.plugin = "moe",
       .params = "model = \"tiny\"\nlayers = 1\nbatch_size = 1\ncontext_length = 17\nprecision = \"bf16\""},
      {.plugin = "attention", .params = "batch_size = 1\nheads = 2\nhead_dim = 24\nseq = 33\ndtype = \"bf16\""},
      {.plugin = "node_check", .sweep = "check = [\"matrix_product\"]"},
      {.plugin = "mixed_precision:accumulation"},
      {.plugin = "mixed_precision:dtypes"},
  };
  for (ExperimentText text : experiments) {
    text.measure = "warmup = 1\nsteps = 1\ntimeout = \"60s\"";
    expect_ok(records_of(text), text.plugin);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, InstructionSets, testing::ValuesIn(instruction_sets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::test
