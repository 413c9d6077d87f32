#include "assay/verification/asked_decoder.hpp"

#include <assay/workload/text.hpp>
#include <string_view>

namespace assay::verification {

AskedDecoder::AskedDecoder(const Case& c) : optimizer_(c.get<std::string>("optimizer")), seed_(c.seed()) {
  for (const char* of : {"d_model", "d_ff", "layers", "heads", "kv_heads", "head_dim", "vocab_size", "batch_size",
                         "context_length", "loss_chunks", "sliding_window", "full_attention_every"})
    asked_.emplace_back(of, static_cast<double>(c.get<std::int64_t>(of)));
  for (const char* of : {"qkv_bias", "tied_embeddings", "output_bias", "attention_sinks"})
    asked_.emplace_back(of, c.get<bool>(of) ? 1 : 0);
  for (const char* of : {"rope_theta", "norm_eps", "attention_soft_cap", "lr"})
    asked_.emplace_back(of, c.get<double>(of));
  // No experiment says these: torch.optim.AdamW's, whose decay SGD has, too, without momentum.
  for (const auto& constant : Settings{{"beta1", double{0.9F}},
                                       {"beta2", double{0.999F}},
                                       {"eps", double{1e-8F}},
                                       {"weight_decay", double{0.01F}},
                                       {"momentum", 0}})
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
          {"sliding_window", of(m.sliding_window)},
          {"full_attention_every", of(m.full_attention_every)},
          {"qkv_bias", of(m.qkv_bias)},
          {"tied_embeddings", of(m.tied_embeddings)},
          {"output_bias", of(m.output_bias)},
          {"attention_sinks", of(m.attention_sinks)},
          {"rope_theta", m.rope_theta},
          {"norm_eps", m.norm_eps},
          {"attention_soft_cap", m.attention_soft_cap},
          {"lr", o.lr},
          {"beta1", of(o.beta1)},
          {"beta2", of(o.beta2)},
          {"eps", of(o.eps)},
          {"weight_decay", of(o.weight_decay)},
          {"momentum", of(o.momentum)}};
}

void AskedDecoder::check(const models::DecoderTrainerConfig& found) const {
  const auto refuse = [](const std::string& name, const std::string& is, const std::string& asked) {
    throw Error(ASSAY_WRONG_RESULT, "what was trained has " + name + " " + is + ", the experiment asks for " + asked);
  };
  const Settings settings = settings_of(found);
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (settings[i] != asked_[i])
      refuse(settings[i].first, workload::number(settings[i].second, "%.9g"),
             workload::number(asked_[i].second, "%.9g"));
  if (found.optimizer.name != optimizer_) refuse("optimizer", std::string(found.optimizer.name), optimizer_);
  if (found.seed != seed_) refuse("seed", std::to_string(found.seed), std::to_string(seed_));
}

}  // namespace assay::verification
