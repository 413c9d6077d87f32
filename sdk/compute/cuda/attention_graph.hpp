// Attention as cuDNN's frontend describes it: the graph of a key, and what cuDNN's heuristics have for it. To be
// included by attention_cudnn.cpp alone: the frontend is half a minute of compiling.
#pragma once
#include <cudnn_frontend.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention_plans.hpp"

// Older ones lack the interface used here, newer ones are not tested against cuDNN 9.19 (some broke attention on it).
static_assert(CUDNN_FRONTEND_VERSION >= 11900 && CUDNN_FRONTEND_VERSION < 12400,
              "cudnn-frontend 1.19 to 1.23 expected: run scripts/setup, or put its headers in .deps/cudnn_frontend");
static_assert(CUDNN_VERSION >= 91900, "cuDNN 9.19 or newer expected");

namespace assay::cuda {

namespace fe = cudnn_frontend;

inline std::size_t index_of(AttentionOperand operand) { return static_cast<std::size_t>(operand); }
// cuDNN's name for an operand in a graph; 0 is left to the frontend's own tensors.
inline std::int64_t uid_of(AttentionOperand operand) { return static_cast<std::int64_t>(operand) + 1; }

inline constexpr std::int64_t seed_uid = 101, offset_uid = 102;
// Of documents: lengths of queries and of keys, and, by operand, where they begin in it.
inline constexpr std::int64_t query_lengths_uid = 103, key_lengths_uid = 104, first_offsets_uid = 200;

inline bool over_keys(AttentionOperand operand) {
  using enum AttentionOperand;
  return operand == k || operand == v || operand == dk || operand == dv;
}
// As wide as values, which may be narrower or wider than queries and keys.
inline std::int64_t width_of(const AttentionKey& key, AttentionOperand operand) {
  using enum AttentionOperand;
  return operand == v || operand == out || operand == dout || operand == dv ? key.value_depth : key.depth;
}
inline std::size_t operands_of(const AttentionKey& key) {
  return key.backward ? attention_operands : index_of(AttentionOperand::dout);
}

inline std::shared_ptr<fe::graph::Graph> describe(const AttentionKey& key) {
  using enum AttentionOperand;
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(key.dtype == compute::DType::f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  // Each document is a separate sequence of at most so many tokens.
  const bool packed = key.documents > 0;
  const std::int64_t batch = packed ? key.documents : key.batch;
  const std::int64_t queries = packed ? key.longest : key.queries, keys = packed ? key.longest : key.keys;
  const auto table = [&](const char* name, std::int64_t uid, std::int64_t count, fe::DataType_t type) {
    return graph->tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(uid)
                             .set_dim({count, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(type));
  };
  const auto lay = [&](fe::graph::Tensor_attributes& t, AttentionOperand operand) {
    if (packed)
      t.set_ragged_offset(table("offsets", first_offsets_uid + static_cast<std::int64_t>(index_of(operand)), batch + 1,
                                fe::DataType_t::INT64));
  };
  const auto tell_lengths = [&](auto& attributes) {
    if (!packed) return;
    attributes.set_padding_mask(true)
        .set_seq_len_q(table("query lengths", query_lengths_uid, batch, fe::DataType_t::INT32))
        .set_seq_len_kv(table("key lengths", key_lengths_uid, batch, fe::DataType_t::INT32));
  };
  // Ours is [B, T, H, D], cuDNN's [B, H, T, D]: the strides carry the difference.
  const auto dims = [&](AttentionOperand operand) -> std::vector<std::int64_t> {
    const std::int64_t width = width_of(key, operand);
    return over_keys(operand) ? std::vector{batch, key.key_heads, keys, width}
                              : std::vector{batch, key.heads, queries, width};
  };
  const auto strides = [&](AttentionOperand operand) -> std::vector<std::int64_t> {
    const AttentionKey::Strides& s = key.strides[index_of(operand)];
    return {packed ? queries * s.time : s.batch, s.head, s.time, 1};
  };
  const std::vector<std::int64_t> lse_dims{batch, key.heads, queries, 1};
  const std::vector<std::int64_t> lse_strides =
      packed ? std::vector{key.heads * queries, std::int64_t{1}, key.heads, std::int64_t{1}}
             : std::vector{key.heads * queries, queries, std::int64_t{1}, std::int64_t{1}};
  const auto input = [&](AttentionOperand operand, const char* name) {
    auto t = fe::graph::Tensor_attributes()
                 .set_name(name)
                 .set_uid(uid_of(operand))
                 .set_dim(dims(operand))
                 .set_stride(strides(operand));
    lay(t, operand);
    return graph->tensor(t);
  };
  const auto output = [&](const std::shared_ptr<fe::graph::Tensor_attributes>& t, AttentionOperand operand) {
    t->set_output(true).set_uid(uid_of(operand)).set_dim(dims(operand)).set_stride(strides(operand));
    lay(*t, operand);
  };
  // The square mask is the same by either corner, and the top left one is what cuDNN is used with most. The frontend
  // keeps column + left bound > row, which is our window.
  const bool masked = key.causal || key.window > 0;
  const auto corner =
      key.queries == key.keys ? fe::DiagonalAlignment_t::TOP_LEFT : fe::DiagonalAlignment_t::BOTTOM_RIGHT;
  const auto mask = [&](auto& attributes) {
    if (!masked) return;
    attributes.set_diagonal_alignment(corner);
    if (key.causal) attributes.set_diagonal_band_right_bound(0);
    if (key.window > 0) attributes.set_diagonal_band_left_bound(static_cast<int>(key.window));
  };
  // A change of the scores takes the place of the frontend's masks, and so makes them itself.
  const auto soft_cap = std::make_shared<fe::graph::attn::score_modifiers::Softcap>();
  const auto cap = std::make_shared<fe::graph::Tensor_attributes>(key.soft_cap);
  const auto change_scores = [&](auto& attributes) {
    if (key.soft_cap == 0.0F) return mask(attributes);
    attributes.set_score_mod([key, masked, corner, soft_cap, cap](std::shared_ptr<fe::graph::Graph> scores,
                                                                  std::shared_ptr<fe::graph::Tensor_attributes> s) {
      s = soft_cap->forward(scores, s, cap);
      if (!masked) return s;
      using Bound = std::optional<std::int64_t>;
      return fe::graph::attn::score_modifiers::sliding_window_mask(
          scores, s, corner, key.window > 0 ? Bound(key.window) : Bound(), key.causal ? Bound(0) : Bound(), key.queries,
          key.keys, nullptr, nullptr);
    });
  };
  const auto number = [&](const char* name, std::int64_t uid) {
    return graph->tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(uid)
                             .set_dim({1, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(fe::DataType_t::INT64));
  };
  const auto drop = [&](auto& attributes) {
    if (key.dropout > 0.0F) attributes.set_dropout(key.dropout, number("seed", seed_uid), number("offset", offset_uid));
  };
  const auto q_in = input(q, "q"), k_in = input(k, "k"), v_in = input(v, "v");
  if (!key.backward) {
    auto attributes =
        fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true).set_attn_scale(key.scale);
    change_scores(attributes);
    tell_lengths(attributes);
    drop(attributes);
    if (key.sinks)
      attributes.set_sink_token(graph->tensor(fe::graph::Tensor_attributes()
                                                  .set_name("sinks")
                                                  .set_uid(uid_of(sinks))
                                                  .set_dim({1, key.heads, 1, 1})
                                                  .set_stride({key.heads, 1, 1, 1})
                                                  .set_data_type(fe::DataType_t::FLOAT)));
    const auto [out_there, stats] = graph->sdpa(q_in, k_in, v_in, attributes);
    output(out_there, out);
    stats->set_output(true)
        .set_uid(uid_of(lse))
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim(lse_dims)
        .set_stride(lse_strides);
    lay(*stats, lse);
    return graph;
  }
  auto stats_there = fe::graph::Tensor_attributes()
                         .set_name("lse")
                         .set_uid(uid_of(lse))
                         .set_data_type(fe::DataType_t::FLOAT)
                         .set_dim(lse_dims)
                         .set_stride(lse_strides);
  lay(stats_there, lse);
  const auto stats = graph->tensor(stats_there);
  // Not the deterministic algorithm: on Hopper that one stores the matrix of all scores.
  auto attributes = fe::graph::SDPA_backward_attributes()
                        .set_name("attention_backward")
                        .set_deterministic_algorithm(false)
                        .set_attn_scale(key.scale);
  change_scores(attributes);
  tell_lengths(attributes);
  // Sums on the way lie token by token, too, and not by documents as long as the longest.
  if (packed)
    attributes.set_max_total_seq_len_q(key.batch * key.queries).set_max_total_seq_len_kv(key.batch * key.keys);
  if (key.soft_cap > 0.0F)
    attributes.set_score_mod_bprop(
        [soft_cap, cap](std::shared_ptr<fe::graph::Graph> scores, std::shared_ptr<fe::graph::Tensor_attributes> ds) {
          return soft_cap->backward(scores, ds, cap);
        });
  drop(attributes);
  const auto [dq_there, dk_there, dv_there] =
      graph->sdpa_backward(q_in, k_in, v_in, input(out, "out"), input(dout, "dout"), stats, attributes);
  output(dq_there, dq);
  output(dk_there, dk);
  output(dv_there, dv);
  return graph;
}

// Asks the heuristics; the text of what went wrong, or empty. `handle` is null for a graph with device properties.
inline std::string find_candidates(fe::graph::Graph& graph, cudnnHandle_t handle) {
  // Parts of the frontend throw, others return an error.
  try {
    fe::error_t status = graph.validate();
    if (status.is_good()) status = handle ? graph.build_operation_graph(handle) : graph.build_operation_graph();
    if (status.is_good()) status = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (status.is_good()) status = graph.check_support();
    if (status.is_good()) return "";
    return status.get_message().empty() ? "not supported" : status.get_message();
  } catch (const std::exception& e) {
    return *e.what() ? e.what() : "not supported";
  }
}

}  // namespace assay::cuda
