#include "assay/verification/asked_decoder.hpp"

#include <algorithm>
#include <assay/models/document_params.hpp>
#include <assay/workload/text.hpp>
#include <initializer_list>
#include <string_view>

namespace assay::verification {

namespace {

double place_of(std::initializer_list<std::string_view> names, std::string_view name) {
  return static_cast<double>(std::find(names.begin(), names.end(), name) - names.begin());
}

// "documents of 3, 5, 8 tokens"; of many the first ones; "whole sequences" where there are none.
std::string text_of_documents(const std::vector<std::int64_t>& documents) {
  constexpr std::size_t most = 8;
  if (documents.empty()) return "whole sequences";
  std::string text = "documents of ";
  for (std::size_t i = 0; i < documents.size() && i < most; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(documents[i]);
  return text + (documents.size() > most ? ", ... tokens" : " tokens");
}

constexpr const char* recomputation = "activation_checkpointing";

}  // namespace

AskedDecoder::AskedDecoder(const Case& c, std::int64_t batches)
    : optimizer_(c.get<std::string>("optimizer")),
      seed_(c.seed()),
      batches_(batches),
      documents_(models::documents_of(c, c.get<std::int64_t>("context_length"))) {
  for (const char* of :
       {"d_model", "d_ff", "layers", "heads", "kv_heads", "head_dim", "vocab_size", "batch_size", "context_length",
        "loss_chunks", "accumulation_steps", "sliding_window", "full_attention_every", "kv_lora_rank", "q_lora_rank",
        "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    asked_.emplace_back(of, static_cast<double>(c.get<std::int64_t>(of)));
  for (const char* of : {"qkv_bias", "qk_norm", "tied_embeddings", recomputation, "output_bias", "attention_sinks"})
    asked_.emplace_back(of, c.get<bool>(of) ? 1 : 0);
  for (const char* of : {"rope_theta", "norm_eps", "attention_soft_cap", "logit_soft_cap", "lr"})
    asked_.emplace_back(of, c.get<double>(of));
  // Workloads without Muon have no such rows, and others refuse settings that it does not read.
  const bool is_muon = optimizer_ == "muon";
  asked_.emplace_back("muon_lr", is_muon ? c.get<double>("muon_lr") : 1e-3);
  for (const char* of : {"rope_factor", "rope_low_freq_factor", "rope_high_freq_factor", "rope_beta_fast",
                         "rope_beta_slow", "rope_attention_factor", "rope_mscale_all_dim"})
    asked_.emplace_back(of, c.get<double>(of));
  asked_.emplace_back("rope_original_context", static_cast<double>(c.get<std::int64_t>("rope_original_context")));
  asked_.emplace_back("rope_truncate", c.get<bool>("rope_truncate") ? 1 : 0);
  for (const char* of : {"post_norms", "norms_from_one", "scaled_embeddings"})
    asked_.emplace_back(of, c.get<bool>(of) ? 1 : 0);
  for (const char* of : {"query_pre_attn_scalar", "rope_local_theta"}) asked_.emplace_back(of, c.get<double>(of));
  asked_.emplace_back("gate_activation (gelu_tanh: 1)", c.get<std::string>("gate_activation") == "gelu_tanh" ? 1 : 0);
  asked_.emplace_back("rope_scaling (of none, linear, llama3, yarn)",
                      place_of({"none", "linear", "llama3", "yarn"}, c.get<std::string>("rope_scaling")));
  asked_.emplace_back("weight_decay", double{c.get<float>("weight_decay")});
  asked_.emplace_back("muon_weight_decay", double{is_muon ? c.get<float>("muon_weight_decay") : 0.1F});
  asked_.emplace_back("muon_momentum", double{is_muon ? c.get<float>("muon_momentum") : 0.95F});
  asked_.emplace_back("muon_nesterov", !is_muon || c.get<bool>("muon_nesterov") ? 1 : 0);
  asked_.emplace_back("muon_steps", is_muon ? static_cast<double>(c.get<std::int64_t>("muon_steps")) : 5);
  asked_.emplace_back("muon_adjust", !is_muon || c.get<std::string_view>("muon_adjust") == "original" ? 0 : 1);
  // No experiment says these: torch.optim.AdamW's, and SGD without momentum.
  for (const auto& constant :
       Settings{{"beta1", double{0.9F}}, {"beta2", double{0.999F}}, {"eps", double{1e-8F}}, {"momentum", 0}})
    asked_.push_back(constant);
}

// In the order above.
AskedDecoder::Settings AskedDecoder::settings_of(const models::DecoderTrainerConfig& config) {
  const models::DecoderConfig& m = config.model;
  const train::OptimizerConfig& o = config.optimizer;
  const auto of = [](auto number) { return static_cast<double>(number); };
  return {{"d_model", of(m.d_model)},
          {"d_ff", of(m.d_ff)},
          {"layers", of(m.layers)},
          {"heads", of(m.heads)},
          {"kv_heads", of(m.kv_heads)},
          {"head_dim", of(m.head_dim)},
          {"vocab_size", of(m.vocab_size)},
          {"batch_size", of(m.batch_size)},
          {"context_length", of(m.context_length)},
          {"loss_chunks", of(m.loss_chunks)},
          {"accumulation_steps", of(m.accumulation_steps)},
          {"sliding_window", of(m.sliding_window)},
          {"full_attention_every", of(m.full_attention_every)},
          {"kv_lora_rank", of(m.latent.kv_lora_rank)},
          {"q_lora_rank", of(m.latent.q_lora_rank)},
          {"qk_nope_head_dim", of(m.latent.qk_nope_head_dim)},
          {"qk_rope_head_dim", of(m.latent.qk_rope_head_dim)},
          {"v_head_dim", of(m.latent.v_head_dim)},
          {"qkv_bias", of(m.qkv_bias)},
          {"qk_norm", of(m.qk_norm)},
          {"tied_embeddings", of(m.tied_embeddings)},
          {recomputation, of(m.checkpointing)},
          {"output_bias", of(m.output_bias)},
          {"attention_sinks", of(m.attention_sinks)},
          {"rope_theta", m.rope_theta},
          {"norm_eps", m.norm_eps},
          {"attention_soft_cap", m.attention_soft_cap},
          {"logit_soft_cap", m.logit_soft_cap},
          {"lr", o.lr},
          {"muon_lr", o.muon.lr},
          {"rope_factor", m.rope_scaling.factor},
          {"rope_low_freq_factor", m.rope_scaling.low},
          {"rope_high_freq_factor", m.rope_scaling.high},
          {"rope_beta_fast", m.rope_scaling.beta_fast},
          {"rope_beta_slow", m.rope_scaling.beta_slow},
          {"rope_attention_factor", m.rope_scaling.magnitude},
          {"rope_mscale_all_dim", m.latent.mscale_all_dim},
          {"rope_original_context", m.rope_scaling.original_positions},
          {"rope_truncate", of(m.rope_scaling.whole_pairs)},
          {"post_norms", of(m.post_norms)},
          {"norms_from_one", of(m.norms_from_one)},
          {"scaled_embeddings", of(m.scaled_embeddings)},
          {"query_pre_attn_scalar", m.query_pre_attn_scalar},
          {"rope_local_theta", m.rope_local_theta},
          {"gate_activation (gelu_tanh: 1)", of(m.gate_activation == compute::Activation::gelu_tanh)},
          {"rope_scaling (of none, linear, llama3, yarn)", of(m.rope_scaling.kind)},
          {"weight_decay", of(o.weight_decay)},
          {"muon_weight_decay", of(o.muon.weight_decay)},
          {"muon_momentum", of(o.muon.momentum)},
          {"muon_nesterov", of(o.muon.nesterov)},
          {"muon_steps", of(o.muon.steps)},
          {"muon_adjust", o.muon.adjust == train::MuonAdjust::original ? 0 : 1},
          {"beta1", of(o.beta1)},
          {"beta2", of(o.beta2)},
          {"eps", of(o.eps)},
          {"momentum", of(o.momentum)}};
}

void AskedDecoder::check(const models::DecoderTrainerConfig& found) const {
  const auto refuse = [](const std::string& is, const std::string& asked) {
    throw Error(ASSAY_WRONG_RESULT, "what was trained has " + is + ", the experiment asks for " + asked);
  };
  const Settings settings = settings_of(found);
  const auto counts = [&](const std::string& name) {  // a forward alone makes nothing again
    return found.model.backward || name != recomputation;
  };
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (settings[i] != asked_[i] && counts(settings[i].first))
      refuse(settings[i].first + " " + workload::number(settings[i].second, "%.9g"),
             workload::number(asked_[i].second, "%.9g"));
  if (found.model.documents != documents_)
    refuse(text_of_documents(found.model.documents), text_of_documents(documents_));
  if (found.optimizer.name != optimizer_) refuse("optimizer " + std::string(found.optimizer.name), optimizer_);
  if (batches_ > 0 && found.data_ranks != batches_)
    refuse("batches " + std::to_string(found.data_ranks), std::to_string(batches_));
  if (found.seed != seed_) refuse("seed " + std::to_string(found.seed), std::to_string(seed_));
}

}  // namespace assay::verification
