#include "workloads.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

namespace assay::mutants {
namespace {

const std::string decoder_model =
    "d_model = 32\nd_ff = 64\nlayers = 2\nheads = 2\nvocab_size = 96\nbatch_size = 2\ncontext_length = 16\n";
const std::string experts_model =
    "d_model = 32\nd_ff = 64\nlayers = 2\nheads = 2\nkv_heads = 2\nvocab_size = 96\ncontext_length = 16\nexperts = 4\n"
    "experts_per_token = 2\nexpert_d_ff = 16\n";
const std::string encoder_decoder_model =
    "d_model = 32\nd_ff = 64\nencoder_layers = 1\ndecoder_layers = 2\nheads = 2\nvocab_size = 96\nbatch_size = 4\n"
    "sequence_length = 16\nnum_samples = 64\nunit = \"step\"\nworkers = 1\n";
const std::string attention_problem = "batch_size = 2\nheads = 2\nseq = 24\nhead_dim = 16\n";
const std::vector<std::string> loss_scaling{"count_nonfinite", "update_loss_scale", "adamw", "advance"};
const std::string several_buckets = "bucket_mb = 0.01\n";

constexpr std::int64_t sequences = 2, tokens = 16, words = 96;  // of the decoder's model

// Tokens and labels as a safetensors file. Every third label is below 0: a place that the loss leaves out.
std::string inputs_with_ignored_labels() {
  const std::int64_t count = sequences * tokens;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i * 7 % words);
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i % 3 == 1 ? -100 : i * 5 % words);
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(std::int64_t));
  nlohmann::json header;
  const auto declare = [&](const char* name, std::int64_t begin) {
    header[name] = {{"dtype", "I64"}, {"shape", {sequences, tokens}}, {"data_offsets", {begin, begin + bytes}}};
  };
  declare("input_ids", 0);
  declare("labels", bytes);
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string file(sizeof length + text.size() + numbers.size() * sizeof numbers[0], '\0');
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + sizeof length, text.data(), text.size());
  std::memcpy(file.data() + sizeof length + text.size(), numbers.data(), numbers.size() * sizeof numbers[0]);
  return file;
}

// A GPU's backward of 16-bit attention serves multiples of 128 keys.
std::vector<TriedCase> make_cuda_cases() {
  std::string served = encoder_decoder_model;
  served.replace(served.find("sequence_length = 16"), 20, "sequence_length = 128");
  const auto on_cuda = [](const char* workload, const std::string& params) {
    return TriedCase{.workload = workload, .variant = "fp16", .params = params, .device = "cuda"};
  };
  return {on_cuda("decoder", decoder_model + "pass = \"train_step\"\nexecution = \"eager\"\nprecision = \"fp16\"\n"),
          on_cuda("encoder_decoder", served + "execution = \"eager\"\namp = \"fp16\"\n")};
}

std::vector<TriedCase> make_cases() {
  std::vector<TriedCase> cases;
  const auto add = [&](const char* workload, const char* variant, const std::string& params, int ranks = 1) {
    const bool starts_cold = std::string_view(workload) == "attention";
    cases.push_back(
        {.workload = workload, .variant = variant, .params = params, .ranks = ranks, .starts_cold = starts_cold});
  };
  // A CPU has no multiprocessors to leave; it can still see that the products are those that would leave them.
  const std::string left = "leave_multiprocessors = 4\n";
  const std::string step = decoder_model + "pass = \"train_step\"\n";
  add("decoder", "fp32", step);
  add("decoder", "eager", step + "execution = \"eager\"\nattention = \"naive\"\noptimizer = \"sgd\"\n");
  add("decoder", "bf16", step + "precision = \"bf16\"\nresidual_add = \"product\"\n");
  add("decoder", "fp8", step + "precision = \"fp8\"\n");
  cases.back().only = {"matmul",     "quantize_rows",    "quantize_columns", "transpose_eight_bits",
                       "eight_bits", "rms_norm_backward"};

  add("decoder", "muon", step + "optimizer = \"muon\"\n");
  cases.back().only = {"muon_momentum", "normalize_rows", "muon_update"};
  add("decoder", "muon_bf16", step + "optimizer = \"muon\"\nprecision = \"bf16\"\n");
  cases.back().only = {"muon_update"};

  // With layers of more elements than a stretch of the update has at least.
  add("decoder", "beside",
      "d_model = 256\nd_ff = 512\nlayers = 2\nheads = 2\nvocab_size = 96\nbatch_size = 2\ncontext_length = 16\n"
      "pass = \"train_step\"\nprecision = \"bf16\"\nupdate = \"beside_backward\"\n" +
          left);
  cases.back().only = {"update", "left_products"};

  std::string grouped = step;
  grouped.replace(grouped.find("heads = 2"), 9, "heads = 4\nkv_heads = 2");
  grouped.replace(grouped.find("batch_size = 2"), 14, "batch_size = 1\naccumulation_steps = 2\nloss_chunks = 2");
  add("decoder", "grouped",
      grouped +
          "qkv_bias = true\ntied_embeddings = true\nrope_theta = 1e6\nnorm_eps = 1e-6\nrope_scaling = \"llama3\"\n"
          "rope_factor = 4\nrope_original_context = 8\n");
  cases.back().only = {"attention_forward", "attention_backward", "bias_backward", "embedding_backward",
                       "rotary_table"};
  add("decoder", "qk_norm", step + "qk_norm = true\nnorm_eps = 1e-6\n");
  cases.back().only = {"head_norm_rotary_forward", "head_norm_rotary_backward"};

  std::string latent = step;
  latent.replace(latent.find("heads = 2"), 9, "heads = 3");
  add("decoder", "latent",
      latent +
          "kv_lora_rank = 20\nq_lora_rank = 14\nqk_nope_head_dim = 10\nqk_rope_head_dim = 6\nv_head_dim = 12\n"
          "rope_scaling = \"yarn\"\nrope_factor = 4\nrope_original_context = 8\nrope_attention_factor = 1\n"
          "rope_mscale_all_dim = 0.707\n");
  cases.back().only = {"latent_keys_forward", "latent_keys_backward"};

  std::string of_gemma = step;
  of_gemma.replace(of_gemma.find("heads = 2"), 9, "heads = 4\nkv_heads = 2\nhead_dim = 10");
  add("decoder", "gemma",
      of_gemma +
          "tied_embeddings = true\npost_norms = true\nnorms_from_one = true\ngate_activation = \"gelu_tanh\"\n"
          "scaled_embeddings = true\nquery_pre_attn_scalar = 20\nrope_local_theta = 100\nqk_norm = "
          "true\nsliding_window = 6\nfull_attention_every = 2\nlogit_soft_cap = 3\n");
  cases.back().only = {"rms_norm_forward",       "rms_norm_backward",     "swiglu", "scale", "cross_entropy_forward",
                       "cross_entropy_backward", "cross_entropy_in_place"};

  add("decoder", "forward", decoder_model + "pass = \"forward\"\nlogit_soft_cap = 3\n");
  cases.back().only = {"soft_cap"};

  add("decoder", "window",
      step +
          "sliding_window = 5\nfull_attention_every = 2\nattention_sinks = true\nattention_soft_cap = 1.5\n"
          "document_tokens = 7\n");
  cases.back().only = {"attention_forward", "attention_backward"};

  add("decoder", "labels", decoder_model + "inputs = \"inputs.safetensors\"\n");
  cases.back().inputs = inputs_with_ignored_labels();
  cases.back().only = {"cross_entropy", "sum"};

  add("decoder", "fp16", step + "execution = \"eager\"\nprecision = \"fp16\"\n");
  cases.back().device = "fp16";
  cases.back().only = loss_scaling;

  const std::vector<std::string> of_experts{"route_forward",
                                            "route_backward",
                                            "routing_losses",
                                            "group_rows",
                                            "gather_rows",
                                            "combine_rows",
                                            "grouped_matmul",
                                            "grouped_weight_gradient",
                                            "weighted_gated_forward",
                                            "weighted_gated_backward"};
  const std::string experts_step = experts_model + "batch_size = 2\n";
  add("moe", "fp32", experts_step);
  add("moe", "eager", experts_step + "execution = \"eager\"\nattention = \"naive\"\noptimizer = \"sgd\"\n");
  cases.back().only = of_experts;
  add("moe", "biases", experts_step + "expert_biases = true\nunit_alpha = 1.702\nunit_limit = 0.5\nunit_offset = 1\n");
  cases.back().only = of_experts;
  add("moe", "shared",
      experts_model +
          "batch_size = 1\naccumulation_steps = 2\nshared_d_ff = 24\nfirst_dense_layers = 1\n"
          "normalized_weights = false\nbalance_coefficient = 0.5\nz_coefficient = 0.1\n");
  cases.back().only = {"route_backward", "grouped_weight_gradient"};
  add("moe", "losses", experts_step + "balance_coefficient = 1\nz_coefficient = 0.1\nprecision = \"bf16\"\n");
  cases.back().only = of_experts;
  add("moe", "in_products", experts_step + "update = \"in_products\"\n");
  cases.back().only = {"adamw_in_product", "adamw", "grouped_weight_gradient"};
  add("moe", "ranks", experts_step + "expert_parallel = true\ncapacity_factor = 2\n", 2);
  cases.back().only = {"all_to_all_v", "all_gather", "all_reduce", "gather_rows"};

  add("encoder_decoder", "fp32", encoder_decoder_model);
  add("encoder_decoder", "eager", encoder_decoder_model + "execution = \"eager\"\nattention = \"naive\"\n");
  add("encoder_decoder", "ranks", encoder_decoder_model + several_buckets, 2);
  cases.back().only = {"all_reduce", "broadcast", "feed", "adamw", "advance"};

  add("encoder_decoder", "fp16", encoder_decoder_model + "execution = \"eager\"\namp = \"fp16\"\n");
  cases.back().device = "fp16";
  cases.back().only = loss_scaling;

  add("attention", "flash", attention_problem);
  add("attention", "naive", attention_problem + "impl = \"naive\"\n");
  add("attention", "eager", attention_problem + "impl = \"naive\"\nexecution = \"eager\"\n");
  add("attention", "forward", attention_problem + "pass = \"forward\"\n");
  cases.back().only = {"attention_forward"};
  add("attention", "layer", attention_problem + "projections = true\ndtype = \"bf16\"\n");

  // Who looks at results when all collectives are done does not depend on waits.
  const std::vector<std::string> waits{"wait"};
  const std::size_t collectives = cases.size();
  const std::string bytes = "size_bytes = 8000\n";
  add("all_reduce", "sum", bytes, 2);
  add("all_reduce", "average", bytes + "reduction = \"average\"\n", 2);
  add("all_reduce", "reduce_scatter", bytes + "collective = \"reduce_scatter\"\n", 2);
  add("all_reduce", "all_gather", bytes + "collective = \"all_gather\"\n", 2);
  add("all_reduce", "broadcast", bytes + "collective = \"broadcast\"\n", 2);
  add("all_reduce", "all_to_all", bytes + "collective = \"all_to_all\"\n", 2);
  add("all_reduce", "series", bytes + "repeats = 3\n", 2);
  cases.back().only = {"series"};
  // Of two ranks each is the other's neighbour on both sides.
  add("all_reduce", "send_receive", bytes + "collective = \"send_receive\"\n", 3);

  for (std::size_t i = collectives; i < cases.size(); ++i) cases[i].except = waits;

  add("ddp", "bucketed", decoder_model + several_buckets, 2);
  add("ddp", "naive", decoder_model + "strategy = \"naive\"\noptimizer = \"sgd\"\n", 2);
  cases.back().only = {"all_reduce", "broadcast", "random_integers", "sgd", "advance"};
  add("ddp", "bf16", decoder_model + several_buckets + left + "precision = \"bf16\"\n", 2);

  add("sharded_optimizer", "zero1", decoder_model + several_buckets, 2);
  add("sharded_optimizer", "broadcast", decoder_model + several_buckets + "variant = \"broadcast\"\n", 2);
  cases.back().only = {"all_reduce", "broadcast", "random_integers", "adamw", "advance"};
  add("sharded_optimizer", "bf16", decoder_model + several_buckets + left + "precision = \"bf16\"\n", 2);

  add("sharded_optimizer", "muon", decoder_model + several_buckets + "optimizer = \"muon\"\n", 2);
  cases.back().only = {"reduce", "muon_momentum", "muon_update"};

  add("fsdp", "zero3", decoder_model, 2);
  add("fsdp", "zero2", decoder_model + "reshard = false\noptimizer = \"sgd\"\n", 2);
  cases.back().only = {"all_gather", "sgd"};
  add("fsdp", "bf16", decoder_model + left + "precision = \"bf16\"\n", 2);
  cases.back().only = {"all_gather", "adamw", "copy", "left_products"};
  std::string micro_batches = decoder_model;
  micro_batches.replace(micro_batches.find("batch_size = 2"), 14,
                        "batch_size = 1\naccumulation_steps = 2\nloss_chunks = 2");
  add("fsdp", "batches", micro_batches + "tied_embeddings = true\n", 2);
  cases.back().only = {"reduce_scatter", "add", "embedding_backward"};
  add("fsdp", "summed", micro_batches + "sync_every_micro_batch = false\n", 2);
  cases.back().only = {"reduce_scatter"};

  add("fsdp", "ahead", decoder_model + "prefetch_blocks = 2\nreduce_dtype = \"bf16\"\n", 2);
  cases.back().only = {"all_gather", "reduce_scatter"};

  const std::vector<std::string> exchanges{"cross_entropy", "reduce_scatter", "all_gather", "all_to_all",
                                           "all_reduce",    "wait",           "copy"};
  add("tensor_parallel", "rows", decoder_model, 2);
  cases.back().only = exchanges;
  add("tensor_parallel", "whole",
      decoder_model + "sequence_parallel = false\ncommunication_chunks = 2\nqk_norm = true\noptimizer = \"sgd\"\n", 2);
  cases.back().only = {"all_reduce", "sgd"};
  add("tensor_parallel", "bf16", decoder_model + "precision = \"bf16\"\n", 2);
  cases.back().only = {"cross_entropy", "all_to_all", "adamw"};
  add("tensor_parallel", "batches", micro_batches + "communication_chunks = 3\n", 2);
  cases.back().only = {"all_gather"};

  add("context_parallel", "shared", decoder_model, 2);
  cases.back().only = {"all_gather", "reduce_scatter", "wait", "copy", "add"};

  std::string one_by_one = decoder_model;
  one_by_one.replace(one_by_one.find("batch_size = 2"), 14, "batch_size = 1\naccumulation_steps = 4");
  add("pipeline_parallel", "stages", one_by_one, 2);
  // Not those of waiting: they hold messages back, for which the other rank of a pair would wait forever.
  cases.back().only = {"send", "receive"};
  std::string in_four_stages = one_by_one;
  in_four_stages.replace(in_four_stages.find("layers = 2"), 10, "layers = 4\nvirtual_stages = 2");
  add("pipeline_parallel", "interleaved", in_four_stages, 2);
  cases.back().only = {"receive"};

  add("mixed_precision:accumulation", "sum", "accumulator = \"bf16\"\ndata = \"normal\"\nterms = 100\n");
  add("mixed_precision:accumulation", "dot", "operation = \"dot\"\ndata = \"normal\"\nterms = 100\n");
  add("mixed_precision:accumulation", "matmul",
      "operation = \"matmul\"\norder = \"library\"\ndata = \"normal\"\nterms = 100\n");
  add("mixed_precision:dtypes", "dtypes", "precision = \"bf16\"\n");
  add("mixed_precision:speed_accuracy", "training", decoder_model + "reference_context = 16\nloss_steps = 3\n");

  add("node_check", "product", "check = \"matrix_product\"\nsize = 48\n");
  add("node_check", "copy", "check = \"copy\"\nbytes = 65536\n");
  add("node_check", "all_reduce", "check = \"all_reduce\"\nbytes = 65536\n", 2);
  cases.back().except = waits;
  return cases;
}

// The same cases with the mutated plugins, longer, so that there are late steps; and a few that sources need.
std::vector<TriedCase> with_cases_of_sources(std::vector<TriedCase> cases) {
  std::vector<TriedCase> of_sources;
  for (const TriedCase& c : cases) {
    if (c.device != "cpu") continue;
    of_sources.push_back(c);
    if (c.params.find("\"bf16\"") != std::string::npos) of_sources.back().device = "bf16";
  }
  std::string few = encoder_decoder_model;
  few.replace(few.find("num_samples = 64"), 16, "num_samples = 16");
  of_sources.push_back({.workload = "encoder_decoder", .variant = "epochs", .params = few});
  of_sources.push_back({.workload = "mixed_precision:accumulation",
                        .variant = "ring",
                        .params = "operation = \"all_reduce\"\norder = \"ring\"\ndata = \"normal\"\nterms = 100\n"});
  // Four ranks may also share one model.
  std::string replicas = decoder_model + "replicas = 2\n";
  replicas.replace(replicas.find("heads = 2"), 9, "heads = 4");
  of_sources.push_back({.workload = "fsdp", .variant = "replicas", .params = replicas, .ranks = 4});
  of_sources.push_back({.workload = "tensor_parallel", .variant = "replicas", .params = replicas, .ranks = 4});
  of_sources.push_back({.workload = "context_parallel", .variant = "replicas", .params = replicas, .ranks = 4});
  replicas.replace(replicas.find("layers = 2"), 10, "layers = 4\naccumulation_steps = 2");
  of_sources.push_back({.workload = "pipeline_parallel", .variant = "replicas", .params = replicas, .ranks = 4});
  for (TriedCase& c : of_sources) c.of_sources = true;
  std::erase_if(of_sources, [](const TriedCase& c) {
    return std::none_of(all_mutants().begin(), all_mutants().end(), [&](const AnyMutant& m) { return c.tries(m); });
  });
  cases.insert(cases.end(), of_sources.begin(), of_sources.end());
  return cases;
}

}  // namespace

bool TriedCase::tries(const AnyMutant& mutant) const {
  if (of_sources != mutant.is_of_sources()) return false;
  if (of_sources) return (" " + std::string(mutant.tried) + " ").find(" " + name() + " ") != std::string::npos;
  const std::string_view operation = mutant.name.substr(0, mutant.name.find('.'));
  const auto names_it = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), operation) != list.end();
  };
  return (only.empty() || names_it(only)) && !names_it(except);
}

std::string TriedCase::experiment() const {
  return "schema = 1\nname = \"x\"\n[workload]\nplugin = \"" + workload + "\"\n[workload.params]\n" + params +
         (of_sources ? "[measure]\nwarmup = 2\nsteps = 6\n" : "[measure]\nwarmup = 0\nsteps = 3\n") +
         "timeout = \"60s\"\n" + (starts_cold ? "prepare = false\n" : "") + "[run]\ndevice = \"" +
         (device == "cuda" || device == "fp16" ? "cuda" : "cpu") + "\"\nthreads = 1\nranks = " + std::to_string(ranks) +
         "\n";
}

const std::vector<TriedCase>& tried_cases(const std::string& device) {
  static const std::vector<TriedCase> on_cpu = with_cases_of_sources(make_cases()), on_cuda = make_cuda_cases();
  return device == "cuda" ? on_cuda : on_cpu;
}

}  // namespace assay::mutants
