// The decoder's shape: parameters, work, and the plan of its temporary tensors.
#include "assay/train/decoder.hpp"

#include <cmath>
#include <string>

namespace assay::train {

using compute::DType;
using compute::Tensor;

void DecoderConfig::validate() const {
  const auto fail = [](const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, text); };
  if (heads <= 0 || d_model % heads != 0)
    fail("d_model " + std::to_string(d_model) + " is not a multiple of heads " + std::to_string(heads));
  if (head_dim() % 2 != 0)
    fail("the head dimension d_model / heads = " + std::to_string(head_dim()) +
         " is odd; rotary position embedding needs pairs");
}

DecoderParameters add_decoder_parameters(ParameterSet& set, const DecoderConfig& c) {
  const auto matrix = [](std::string name, std::int64_t out, std::int64_t in) {
    return Parameter{std::move(name), {out, in}, 0, 0.0F, std::sqrt(2.0F / static_cast<float>(in + out))};
  };
  const auto norm = [&](std::string name) { return Parameter{std::move(name), {c.d_model}, 0, 1.0F, 0.0F}; };
  DecoderParameters ids;
  ids.lm_head = set.add({matrix("lm_head.weight", c.vocab_size, c.d_model)});
  ids.ln_final = set.add({norm("ln_final.weight")});
  ids.layers.resize(static_cast<std::size_t>(c.layers));
  for (std::int64_t l = c.layers - 1; l >= 0; --l) {
    const std::string prefix = "layers." + std::to_string(l) + ".";
    DecoderLayerParameters& p = ids.layers[static_cast<std::size_t>(l)];
    p.w2 = set.add({matrix(prefix + "ffn.w2.weight", c.d_model, c.d_ff)});
    p.w1 = set.add(
        {matrix(prefix + "ffn.w1.weight", c.d_ff, c.d_model), matrix(prefix + "ffn.w3.weight", c.d_ff, c.d_model)});
    p.w3 = p.w1 + 1;
    p.ln2 = set.add({norm(prefix + "ln2.weight")});
    p.output = set.add({matrix(prefix + "attn.output_proj.weight", c.d_model, c.d_model)});
    p.q = set.add({matrix(prefix + "attn.q_proj.weight", c.d_model, c.d_model),
                   matrix(prefix + "attn.k_proj.weight", c.d_model, c.d_model),
                   matrix(prefix + "attn.v_proj.weight", c.d_model, c.d_model)});
    p.k = p.q + 1, p.v = p.q + 2;
    p.ln1 = set.add({norm(prefix + "ln1.weight")});
  }
  Parameter embeddings = matrix("token_embeddings.weight", c.vocab_size, c.d_model);
  embeddings.init_std = 1.0F;
  ids.embeddings = set.add({std::move(embeddings)});
  return ids;
}

std::uint64_t decoder_forward_flops(const DecoderConfig& c) {
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t products =
      2 * u(c.rows()) *
      (u(c.layers) * (4 * u(c.d_model) * u(c.d_model) + 3 * u(c.d_model) * u(c.d_ff)) + u(c.d_model) * u(c.vocab_size));
  // Two products of [T, D] x [D, T], the causal half of each: 2 * 2 * T * T * D / 2 per head.
  const std::uint64_t attention =
      2 * u(c.layers) * u(c.batch_size) * u(c.context_length) * u(c.context_length) * u(c.d_model);
  return products + attention;
}

DecoderModel::DecoderModel(const DecoderConfig& config, const ParameterSet& set, const DecoderParameters& ids)
    : config_(config), set_(set), ids_(ids) {
  config_.validate();
  plan_buffers();
}

// Moments of a step. A layer's forward has six: 0 norm and query-key-value, 1 attention, 2 output projection and second
// norm, 3 gate and up, 4 hidden, 5 second product and residual. Its backward has twelve: six for the recomputation
// (checkpointing), then 6 hidden, 7 gate and up with the second norm, 8 output projection, 9 attention, 10 and 11
// query-key-value with the first norm. Weight gradients on the side lane are joined at moment 11, before the residual's
// gradient is overwritten; that of query-key-value, begun after it, at the next layer's.
namespace {
constexpr int forward_moments = 6;
constexpr int backward_moments = 12;
}  // namespace

void DecoderModel::plan_buffers() {
  const std::int64_t n = config_.rows();
  const std::int64_t d = config_.d_model;
  const int layers = static_cast<int>(config_.layers);
  const DType act = config_.precision.activation;
  const int head = 1 + forward_moments * layers;
  const int first_backward = head + 2;
  const int end = config_.backward ? first_backward + backward_moments * layers : head;
  const auto forward_of = [&](int l) { return 1 + forward_moments * l; };
  const auto backward_of = [&](int l) { return first_backward + backward_moments * (layers - 1 - l); };

  cos_ = plan_.add("rotary.cos", DType::f32, {config_.context_length, config_.head_dim() / 2}, 0, end);
  sin_ = plan_.add("rotary.sin", DType::f32, {config_.context_length, config_.head_dim() / 2}, 0, end);

  // A layer's input must live until the end of its backward; without one, until its own residual sum.
  const auto input_end = [&](int l) {
    return config_.backward ? backward_of(l) + backward_moments - 1 : forward_of(l) + 2;
  };
  Id input = plan_.add("layers.0.input", act, {n, d}, 0, layers > 0 ? input_end(0) : end);
  for (int l = 0; l < layers; ++l) {
    const bool saves = config_.backward && !config_.checkpointing;
    forward_.push_back(plan_layer_forward(l, forward_of(l), saves ? backward_of(l) + backward_moments - 1 : -1, input));
    if (l + 1 < layers)
      input = plan_.add("layers." + std::to_string(l + 1) + ".input", act, {n, d}, forward_of(l) + 5, input_end(l + 1));
    else
      input = plan_.add("final.input", act, {n, d}, forward_of(l) + 5, config_.backward ? head + 1 : head);
  }
  final_input_ = input;
  // Read by the head's weight gradient, which the first layer of the backward joins.
  const int end_of_head = lanes() ? std::min(head + 1 + backward_moments, end) : head + 1;
  final_normed_ = plan_.add("final.normed", act, {n, d}, head - 1, config_.backward ? end_of_head : head);
  final_rstd_ = plan_.add("final.rstd", DType::f32, {n}, head - 1, config_.backward ? head + 1 : head);
  // Without a backward the logits are the result, and stay.
  logits_ = plan_.add("logits", act, {n, config_.vocab_size}, head, config_.backward ? end_of_head : end);
  kept_logits_ = logits_;
  if (config_.keep_logits) kept_logits_ = plan_.add("logits.kept", act, {n, config_.vocab_size}, 0, end);
  losses_ = plan_.add("losses", DType::f32, {n}, head, end);
  lse_ = plan_.add("losses.lse", DType::f32, {n}, head, end);
  loss_ = plan_.add("loss", DType::f32, {1}, 0, end);
  if (config_.backward) {
    dx_ = dx_middle_ = plan_.add("residual.gradient", act, {n, d}, head + 1, end);
    if (lanes()) dx_middle_ = plan_.add("residual.gradient.middle", act, {n, d}, head + 1, end);
    dfinal_ = plan_.add("final.normed.gradient", act, {n, d}, head + 1, head + 1);
    std::vector<int> begin_of_layer;
    for (int l = 0; l < layers; ++l) {
      const int begin = backward_of(l);
      recomputed_.push_back(config_.checkpointing ? plan_layer_forward(l, begin, begin + backward_moments - 1,
                                                                       forward_[static_cast<std::size_t>(l)].input)
                                                  : forward_[static_cast<std::size_t>(l)]);
      backward_.push_back(plan_layer_backward(l, begin, std::min(begin + 2 * backward_moments - 1, end)));
      begin_of_layer.push_back(begin);
    }
    reserve_gradients(head + 1, begin_of_layer, end);
  }
  plan_.solve();
}

// A gradient's place is free until the moment that writes it. The gaps between groups, where there are any, must keep
// their zeros: then the whole arena is taken from the start. Padding at the arena's end is not borrowed at all.
void DecoderModel::reserve_gradients(int head_backward, const std::vector<int>& begin_of_layer, int end) {
  const std::int64_t groups = set_.arena_elements() - set_.tail_elements();
  const std::size_t group_bytes = static_cast<std::size_t>(groups) * compute::size_of(config_.precision.gradient);
  plan_.borrow(group_bytes);
  if (groups != set_.parameter_count()) return plan_.reserve(0, group_bytes, 0, end);
  const auto reserve = [&](ParameterSet::Id first, std::size_t count, int moment) {
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < count; ++i) elements += set_.all()[first + i].elements();
    plan_.reserve(set_.gradient_offset_bytes(first),
                  static_cast<std::size_t>(elements) * compute::size_of(config_.precision.gradient), moment, end);
  };
  reserve(ids_.lm_head, 1, head_backward);
  reserve(ids_.ln_final, 1, head_backward);
  for (std::size_t l = 0; l < begin_of_layer.size(); ++l) {
    const DecoderLayerParameters& p = ids_.layers[l];
    const int begin = begin_of_layer[l];
    reserve(p.w2, 1, begin + 6);
    reserve(p.w1, 2, begin + 7);
    reserve(p.ln2, 1, begin + 7);
    reserve(p.output, 1, begin + 8);
    reserve(p.q, 3, begin + 10);
    reserve(p.ln1, 1, begin + 11);
  }
  reserve(ids_.embeddings, 1, end);
}

// `end_of_saved`: the moment until which what backward reads must live; -1: nothing is saved.
DecoderModel::Forward DecoderModel::plan_layer_forward(std::int64_t layer, int begin, int end_of_saved, Id input) {
  const std::int64_t n = config_.rows();
  const std::int64_t d = config_.d_model;
  const std::int64_t ff = config_.d_ff;
  const std::int64_t b = config_.batch_size;
  const std::int64_t t = config_.context_length;
  const std::int64_t h = config_.heads;
  const DType act = config_.precision.activation;
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  // In backward, moments 6 to 11 of the twelve: `from_end` counts back from the last.
  const auto saved = [&](int moment, int from_end) {
    return end_of_saved < 0 ? begin + moment : end_of_saved - from_end;
  };
  Forward f{};
  f.input = input;
  // The first norm may be fused with the residual sum that ends the layer before: alive one moment earlier.
  f.normed1 = plan_.add(prefix + "normed1", act, {n, d}, begin - 1, begin);
  f.rstd1 = plan_.add(prefix + "rstd1", DType::f32, {n}, begin - 1, saved(0, 0));
  f.qkv = plan_.add(prefix + "qkv", act, {n, 3 * d}, begin, saved(1, 2));
  f.attention = plan_.add(prefix + "attention", act, {n, d}, begin + 1, saved(2, lanes() ? 0 : 2));
  if (config_.flash)
    f.lse = plan_.add(prefix + "lse", DType::f32, {b, h, t}, begin + 1, saved(1, 2));
  else
    f.scores = plan_.add(prefix + "scores", act, {b, h, score_rows(), t}, begin + 1,
                         makes_scores_in_parts() ? begin + 1 : saved(1, 2));
  f.branch1 = plan_.add(prefix + "attention.projected", act, {n, d}, begin + 2, begin + 2);
  f.middle = plan_.add(prefix + "middle", act, {n, d}, begin + 2, std::max(begin + 5, saved(5, 4)));
  f.normed2 = plan_.add(prefix + "normed2", act, {n, d}, begin + 2, begin + 3);
  f.rstd2 = plan_.add(prefix + "rstd2", DType::f32, {n}, begin + 2, saved(2, 4));
  f.gate_up = plan_.add(prefix + "gate_up", act, {n, 2 * ff}, begin + 3, saved(4, lanes() ? 0 : 4));
  if (!config_.fused) f.silu = plan_.add(prefix + "silu", act, {n, ff}, begin + 4, begin + 4);
  f.hidden = plan_.add(prefix + "hidden", act, {n, ff}, begin + 4, begin + 5);
  f.branch2 = plan_.add(prefix + "feed_forward", act, {n, d}, begin + 5, begin + 5);
  return f;
}

// `end_of_side`: the moment that joins the query-key-value gradient.
DecoderModel::Backward DecoderModel::plan_layer_backward(std::int64_t layer, int begin, int end_of_side) {
  const std::int64_t n = config_.rows();
  const std::int64_t d = config_.d_model;
  const std::int64_t ff = config_.d_ff;
  const DType act = config_.precision.activation;
  const std::string prefix = "layers." + std::to_string(layer) + ".backward.";
  Backward g{};
  const bool side = lanes();
  g.hidden = plan_.add(prefix + "hidden", act, {n, ff}, begin + 6, begin + (side ? 11 : 6));
  g.dhidden = plan_.add(prefix + "dhidden", act, {n, ff}, begin + 6, begin + 6);
  if (!config_.fused) {
    g.silu = plan_.add(prefix + "silu", act, {n, ff}, begin + 6, begin + 6);
    g.dsilu = plan_.add(prefix + "dsilu", act, {n, ff}, begin + 6, begin + 7);
  }
  g.normed2 = plan_.add(prefix + "normed2", act, {n, d}, begin + 7, begin + (side ? 11 : 7));
  g.dnormed2 = plan_.add(prefix + "dnormed2", act, {n, d}, begin + 7, begin + 7);
  g.dattention = plan_.add(prefix + "dattention", act, {n, d}, begin + 8, begin + 9);
  g.dqkv = plan_.add(prefix + "dqkv", act, {n, 3 * d}, begin + 9, side ? end_of_side : begin + 11);
  const auto scores = [&](const char* name) {
    return plan_.add(prefix + name, act, {config_.batch_size, config_.heads, score_rows(), config_.context_length},
                     begin + 9, begin + 9);
  };
  if (!config_.flash) g.dscores = scores("dscores");
  if (makes_scores_in_parts()) g.scores = scores("scores");
  g.normed1 = plan_.add(prefix + "normed1", act, {n, d}, begin + 10, side ? end_of_side : begin + 11);
  g.dnormed1 = plan_.add(prefix + "dnormed1", act, {n, d}, begin + 11, begin + 11);
  return g;
}

}  // namespace assay::train
