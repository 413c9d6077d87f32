#include "assay/models/published_weights.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::models {

namespace {

struct Names {
  std::string_view ours, published;
};
constexpr std::array<Names, 3> of_model{{{"token_embeddings.weight", "model.embed_tokens.weight"},
                                         {"ln_final.weight", "model.norm.weight"},
                                         {"lm_head.weight", "lm_head.weight"}}};
// Of a model whose branches end with norms, where other ones have the second name of ln2.
constexpr std::array<Names, 3> of_post_norms{{{"post_attention_norm", "post_attention_layernorm"},
                                              {"ln2", "pre_feedforward_layernorm"},
                                              {"post_ffw_norm", "post_feedforward_layernorm"}}};
// Of a layer, without what follows the last point.
constexpr std::array<Names, 17> of_layer{{{"attn.q_a_proj", "self_attn.q_a_proj"},
                                          {"attn.q_a_norm", "self_attn.q_a_layernorm"},
                                          {"attn.q_b_proj", "self_attn.q_b_proj"},
                                          {"attn.kv_a_proj", "self_attn.kv_a_proj_with_mqa"},
                                          {"attn.kv_a_norm", "self_attn.kv_a_layernorm"},
                                          {"attn.kv_b_proj", "self_attn.kv_b_proj"},
                                          {"attn.q_proj", "self_attn.q_proj"},
                                          {"attn.k_proj", "self_attn.k_proj"},
                                          {"attn.v_proj", "self_attn.v_proj"},
                                          {"attn.q_norm", "self_attn.q_norm"},
                                          {"attn.k_norm", "self_attn.k_norm"},
                                          {"attn.output_proj", "self_attn.o_proj"},
                                          {"ffn.w1", "mlp.gate_proj"},
                                          {"ffn.w2", "mlp.down_proj"},
                                          {"ffn.w3", "mlp.up_proj"},
                                          {"ln1", "input_layernorm"},
                                          {"ln2", "post_attention_layernorm"}}};

template <std::size_t N>
std::string published(const std::array<Names, N>& names, std::string_view ours) {
  for (const Names& n : names)
    if (n.ours == ours) return std::string(n.published);
  throw Error(ASSAY_INTERNAL, "the parameter '" + std::string(ours) + "' has no name in published files");
}

// "layers.3.attn.q_proj.bias"
std::string published_name(const std::string& ours, bool post_norms) {
  if (!ours.starts_with("layers.")) return published(of_model, ours);
  const std::size_t after_layer = ours.find('.', ours.find('.') + 1), kind = ours.rfind('.');
  if (ours.ends_with(".sinks")) return "model." + ours.substr(0, after_layer + 1) + "self_attn.sinks";
  const std::string_view name = std::string_view(ours).substr(after_layer + 1, kind - after_layer - 1);
  const bool is_of_post_norms = post_norms && std::any_of(of_post_norms.begin(), of_post_norms.end(),
                                                          [&](const Names& n) { return n.ours == name; });
  return "model." + ours.substr(0, after_layer + 1) +
         (is_of_post_norms ? published(of_post_norms, name) : published(of_layer, name)) + ours.substr(kind);
}

bool is_rotated(const std::string& ours) {
  for (const char* const name : {".attn.q_proj.", ".attn.k_proj.", ".attn.q_norm.", ".attn.k_norm."})
    if (ours.find(name) != std::string::npos) return true;
  return false;
}

// Of each head row i and row i + D/2 of the file become rows 2i and 2i + 1.
std::vector<float> in_pairs(const std::vector<float>& halves, std::int64_t head_dim, std::int64_t row) {
  std::vector<float> pairs(halves.size());
  const auto rows = static_cast<std::int64_t>(halves.size()) / row;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t head = r / head_dim, at = r % head_dim;
    const std::int64_t from = head * head_dim + at / 2 + (at % 2) * (head_dim / 2);
    for (std::int64_t c = 0; c < row; ++c)
      pairs[static_cast<std::size_t>(r * row + c)] = halves[static_cast<std::size_t>(from * row + c)];
  }
  return pairs;
}

}  // namespace

bool has_published_names(const train::SafetensorsReader& file) {
  return file.tensors().contains(published_name("token_embeddings.weight", false));
}

train::FileLayout published_layout(const DecoderConfig& config) {
  return {
      .name_of = [post_norms = config.post_norms](const std::string& ours) { return published_name(ours, post_norms); },
      .rearranged =
          [head_dim = config.head_width(), has_pairs = config.latent.any()](const train::Parameter& p,
                                                                            std::vector<float> values) {
            return !has_pairs && is_rotated(p.name) ? in_pairs(values, head_dim, p.elements() / p.dims[0]) : values;
          },
      // Some files repeat the tied weights, and old ones hold the frequencies of the rotation.
      .is_left_out =
          [tied = config.tied_embeddings](const std::string& name) {
            return (tied && name == "lm_head.weight") || name.ends_with(".rotary_emb.inv_freq");
          }};
}

}  // namespace assay::models
