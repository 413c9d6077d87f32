#include "experiment/synonyms.hpp"

#include "common/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace assay::host::experiment {
namespace {

struct Synonyms {
  std::vector<std::string_view> elsewhere;  // in lower case, with underscores
  std::vector<std::string_view> here;       // the first of them that is known is meant
};

const std::vector<Synonyms>& table() {
  static const std::vector<Synonyms> rows{
      // The model.
      {{"nhead", "n_head", "n_heads", "nheads", "num_heads", "heads", "num_attention_heads"}, {"heads", "num_heads"}},
      {{"num_layers", "n_layer", "n_layers", "nlayers", "layers", "num_hidden_layers", "depth"},
       {"layers", "encoder_layers"}},
      {{"num_encoder_layers", "n_encoder_layers"}, {"encoder_layers", "layers"}},
      {{"num_decoder_layers", "n_decoder_layers"}, {"decoder_layers", "layers"}},
      {{"dim_feedforward", "ffn_dim", "ff_dim", "dff", "d_inner", "intermediate_size"}, {"d_ff"}},
      {{"d_model", "dmodel", "hidden_size", "hidden_dim", "embed_dim", "emb_dim", "n_embd", "model_dim"},
       {"d_model", "head_dim"}},
      {{"d_head", "dim_head", "head_size"}, {"head_dim"}},
      {{"seq_len", "seq_length", "seqlen", "seq", "sequence_length", "max_seq_len", "max_length", "context_len",
        "context_length", "context_lengths", "context", "ctx_len", "n_ctx", "block_size", "max_position_embeddings"},
       {"sequence_length", "context_length", "seq"}},
      {{"batch", "bs", "batchsize", "train_batch_size", "micro_batch_size"}, {"batch_size"}},
      {{"vocab", "n_vocab", "vocabulary", "vocabulary_size"}, {"vocab_size"}},
      {{"dropout_p", "dropout_rate", "p_drop"}, {"dropout"}},
      {{"model_size", "model_sizes", "model", "models", "size", "preset"}, {"size", "preset", "model"}},
      {{"config", "config_json", "model_config", "hf_config", "model_path", "model_name_or_path"}, {"config_file"}},
      // The model, as its published configuration has it.
      {{"num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_kv_head", "num_query_groups"}, {"kv_heads"}},
      {{"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "eps", "epsilon"}, {"norm_eps"}},
      {{"tie_word_embeddings", "tie_embeddings", "weight_tying", "tied"}, {"tied_embeddings"}},
      {{"attention_bias", "bias", "use_bias", "add_qkv_bias"}, {"qkv_bias"}},
      {{"use_qk_norm", "qk_layernorm"}, {"qk_norm"}},
      {{"hidden_act", "hidden_activation", "activation"}, {"gate_activation"}},
      {{"rope_base", "rotary_base", "rotary_emb_base"}, {"rope_theta"}},
      {{"rope_local_base_freq"}, {"rope_local_theta"}},
      {{"rope_type", "rope_parameters", "rotary_scaling"}, {"rope_scaling"}},
      {{"factor", "scaling_factor", "rope_scaling_factor"}, {"rope_factor"}},
      {{"original_max_position_embeddings"}, {"rope_original_context"}},
      {{"low_freq_factor"}, {"rope_low_freq_factor"}},
      {{"high_freq_factor"}, {"rope_high_freq_factor"}},
      {{"beta_fast"}, {"rope_beta_fast"}},
      {{"beta_slow"}, {"rope_beta_slow"}},
      {{"truncate"}, {"rope_truncate"}},
      {{"attention_factor"}, {"rope_attention_factor"}},
      {{"window", "window_size", "attention_window", "sliding_window_size"}, {"sliding_window", "window"}},
      {{"sliding_window_pattern", "layer_types"}, {"full_attention_every"}},
      {{"sinks", "attn_sinks", "use_sinks"}, {"attention_sinks"}},
      {{"attn_logit_softcapping", "softcap", "soft_cap"}, {"attention_soft_cap"}},
      {{"final_logit_softcapping", "logit_softcapping", "logits_soft_cap"}, {"logit_soft_cap"}},
      {{"norm_topk_prob"}, {"normalized_weights"}},
      {{"swiglu_limit"}, {"unit_limit"}},
      {{"num_experts", "n_experts", "num_local_experts", "n_routed_experts"}, {"experts"}},
      {{"num_experts_per_tok", "top_k", "topk"}, {"experts_per_token"}},
      {{"moe_intermediate_size"}, {"expert_d_ff"}},
      // How a step computes.
      {{"dtype", "precision", "torch_dtype", "autocast_dtype", "fp16", "bf16", "half"}, {"precision", "dtype", "amp"}},
      {{"amp", "use_amp", "no_amp", "autocast", "mixed_precision"}, {"amp", "precision", "dtype"}},
      {{"compile", "torch_compile", "use_compile", "compiled", "cuda_graph", "cuda_graphs"}, {"execution"}},
      {{"mode", "pass_type", "run_opt", "forward_only", "include_backward", "backward"}, {"pass"}},
      {{"attn", "attn_implementation", "flash_attention", "use_flash_attention"}, {"attention", "impl"}},
      {{"gradient_checkpointing", "checkpointing", "recompute"}, {"activation_checkpointing"}},
      {{"gradient_accumulation_steps", "grad_accum", "grad_accum_steps", "accum_steps", "micro_batches"},
       {"accumulation_steps"}},
      {{"sp", "sequence_parallelism"}, {"sequence_parallel"}},
      {{"vpp", "virtual_pipeline_model_parallel_size", "num_model_chunks"}, {"virtual_stages"}},
      {{"reshard_after_forward", "sharding_strategy", "zero_stage", "zero"}, {"reshard", "variant"}},
      {{"learning_rate"}, {"lr"}},
      {{"optim"}, {"optimizer"}},
      // torch.optim.Muon's.
      {{"momentum"}, {"muon_momentum"}},
      {{"nesterov"}, {"muon_nesterov"}},
      {{"ns_steps", "newton_schulz_steps"}, {"muon_steps"}},
      {{"adjust_lr_fn"}, {"muon_adjust"}},
      {{"num_output_chunks", "num_loss_chunks", "chunked_loss"}, {"loss_chunks"}},
      {{"sync_gradients", "requires_gradient_sync", "set_requires_gradient_sync"}, {"sync_every_micro_batch"}},
      {{"bucket_size", "bucket_size_mb", "bucket_cap_mb"}, {"bucket_mb"}},
      // The data.
      {{"full", "full_dataset"}, {"dataset"}},
      {{"samples", "n_samples", "dataset_size", "num_examples"}, {"num_samples"}},
      {{"disk", "data_path", "dataset_dir"}, {"data_dir"}},
      {{"shards", "n_shards"}, {"num_shards"}},
      {{"num_workers", "n_workers", "dataloader_workers"}, {"workers"}},
      {{"prefetch_factor"}, {"prefetch"}},
      // Measuring and running.
      {{"steps", "epochs", "num_epochs", "n_epochs", "measure_steps", "num_steps", "n_steps", "iters", "iterations"},
       {"measure.steps"}},
      {{"warmup", "warm_up", "warmup_epochs", "warmup_steps", "warmup_iters", "num_warmup", "n_warmup"},
       {"measure.warmup"}},
      {{"sync", "no_sync", "synchronize", "cuda_sync"}, {"measure.sync"}},
      {{"ranks",
        "nproc_per_node",
        "nproc",
        "world_size",
        "num_processes",
        "num_gpus",
        "n_gpus",
        "ngpus",
        "gpus",
        "single",
        "tp",
        "tp_size",
        "tensor_parallel_size",
        "tensor_model_parallel_size",
        "dp_size",
        "fsdp_size",
        "cp",
        "cp_size",
        "context_parallel_size",
        "context_parallel_degree",
        "pp",
        "pp_size",
        "pipeline_parallel_size",
        "pipeline_model_parallel_size"},
       {"run.ranks"}},
      {{"device", "accelerator"}, {"run.device"}},
      {{"seed", "random_seed", "manual_seed"}, {"run.seed"}},
      {{"num_threads", "omp_num_threads", "threads"}, {"run.threads"}},
      {{"memory_snapshot", "snapshot", "snapshot_path", "profile_memory", "profile_memory_path"},
       {"profile.memory_snapshot"}},
      {{"nsys", "nsys_profile"}, {"profile.nsys"}},
      {{"ncu", "ncu_profile", "nsight_compute"}, {"profile.ncu"}},
  };
  return rows;
}

// As names are written here: "--D-Model" is "d_model".
std::string as_written_here(std::string_view word) {
  std::string text(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// In a section its keys are known without its name: "steps" for "measure.steps".
std::optional<std::string> find_known(std::string_view name, const std::vector<std::string>& known) {
  const std::string_view key = name.substr(name.rfind('.') + 1);
  for (const std::string_view spelt : {name, key})
    if (std::find(known.begin(), known.end(), spelt) != known.end()) return std::string(spelt);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> synonym(std::string_view word, const std::vector<std::string>& known) {
  const std::string wanted = as_written_here(word);
  if (auto same = find_known(wanted, known)) return same;
  for (const Synonyms& row : table()) {
    if (std::find(row.elsewhere.begin(), row.elsewhere.end(), wanted) == row.elsewhere.end()) continue;
    for (const std::string_view name : row.here)
      if (auto here = find_known(name, known)) return here;
  }
  return std::nullopt;
}

std::optional<std::string> meant_key(std::string_view word, const std::vector<std::string>& known) {
  auto here = synonym(word, known);
  return here ? here : nearest(word, known);
}

std::string did_you_mean_key(std::string_view word, const std::vector<std::string>& known) {
  const auto name = meant_key(word, known);
  return name ? fmt::format("; did you mean '{}'?", *name) : "";
}

}  // namespace assay::host::experiment
