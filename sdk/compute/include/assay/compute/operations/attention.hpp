// Softmax and attention.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/operations/elementwise.hpp>

#include <array>
#include <cstdint>

namespace assay::compute {

// Documents packed in sequences: a query sees no key before the first key of its document, on top of what `causal`
// hides. For attention with as many queries as keys. Give both tensors or neither; their contents are not checked
// beforehand.
struct PackedDocuments {
  Optional<In> first_keys =
      {};                    // i32 [B, T]: where each token's document begins, in its sequence; at most its own place
  Optional<In> starts = {};  // i32 [documents + 1]: where each begins, counted through all sequences; the last: B T
  std::int64_t longest = 0;  // tokens of the longest one
  std::int64_t pairs = 0;    // of a query and a key that it sees, of one head, in all sequences
  ASSAY_TENSORS(first_keys, starts)
};

struct AttentionShape {
  float scale = 0.0F;  // usually 1/sqrt(D); not 0
  bool causal = true;  // key j is visible to query i when j <= i + (Tk - Tq)
  // Drops elements of the softmax's result. Element i counts in [B, H, Tq, Tk], so the mask equals ApplyDropout's on
  // the score matrix. cuDNN's attention (16-bit types on CUDA) draws a different mask from the same three numbers.
  Dropout dropout = {};
  // A sliding window: query i sees no key j with i + (Tk - Tq) - j >= window, that is the `window` last ones up to its
  // own place, beside what `causal` hides. 0: no bound.
  std::int64_t window = 0;
  // Scores s become soft_cap * tanh(s / soft_cap) before the softmax (Gemma 2, arXiv:2408.00118). 0: they stay.
  float soft_cap = 0.0F;
  PackedDocuments documents = {};  // beside a window, the later of both bounds holds
  ASSAY_TENSORS(dropout, documents)
};

// Pairs of one head's query and a key that it sees.
constexpr std::int64_t visible_pairs(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  // The sum of max(0, i + first) over the queries i.
  const auto sum_from = [queries](std::int64_t first) {
    const std::int64_t last = queries - 1 + first;
    return first >= 0 ? queries * (first + last) / 2 : last > 0 ? last * (last + 1) / 2 : 0;
  };
  const std::int64_t first_seen = keys - queries + 1;  // by the first query, where causal
  return (causal ? sum_from(first_seen) : queries * keys) - (window > 0 ? sum_from(first_seen - window) : 0);
}

namespace op {

// y[..., i, j] = softmax over j of scale * x[..., i, j], with j > i + (Tk - Tq) left out when causal, and those before
// the window of AttentionShape or before the row's first key (y is 0 there). Its soft cap and the sinks of attention
// are as below.
struct SoftmaxForward {
  In x;  // T [..., Tq, Tk], contiguous
  Out y;
  float scale;
  bool causal;
  std::int64_t window = 0;
  float soft_cap = 0.0F;
  Optional<In> sinks = {};  // fp32 or T [H], of x [B, H, Tq, Tk]
  Optional<Out> lse = {};   // fp32, one for each row: the log-sum-exp of its scores, and of its sink
  // i32 [B, Tq] of x [B, H, Tq, Tk], by a batch stride: that of PackedDocuments, or some of its columns.
  Optional<In> first_keys = {};
  static constexpr auto in_place = std::to_array<InPlace>({{"y", "x"}});
  ASSAY_OPERATION("softmax_forward", x, y, sinks, lse, first_keys)
};
// With a soft cap or sinks, lse must be there. The cap's slope follows from y and lse, whose sum is the score: x is not
// read.
struct SoftmaxBackward {
  In y, dy;
  Out dx;
  float scale;
  float soft_cap = 0.0F;
  Optional<In> sinks = {}, lse = {};
  Optional<OutOrSum> dsinks = {};  // fp32 or T [H], with sinks: -sum over rows of exp(sink - lse) (y . dy)
  bool accumulate = false;         // add to dsinks
  static constexpr auto in_place = std::to_array<InPlace>({{"dx", "dy"}});
  ASSAY_OPERATION("softmax_backward", y, dy, dx, sinks, lse, dsinks)
};

// Tiled attention, without the Tq x Tk matrix. Honours strides: a packed query-key-value buffer is three views.
//
// Keys and values may have fewer heads than queries (grouped-query attention): K heads, where K divides H. Query head h
// reads key head h / (H / K), and the gradient of a key head is the sum over the H / K heads that read it.
//
// Values, and with them the result, may have another width V than queries and keys (latent attention: 192 and 128,
// DeepSeek-V2, arXiv:2405.04434).
//
// With sinks, each head has one more learned score, the same for every query (gpt-oss, arXiv:2508.10925;
// arXiv:2309.17453). exp(sinks[h]) joins the sum of exponentials, and no value goes with it. Neither scale nor soft_cap
// changes it.
struct AttentionForward {
  In q;     // T [B, Tq, H, D]
  In k, v;  // T [B, Tk, K, D] and [B, Tk, K, V]
  Out out;  // T [B, Tq, H, V]
  Out lse;  // fp32 [B, H, Tq], the log-sum-exp of each row of scores, that of the head's sink among them
  AttentionShape shape;
  Optional<In> sinks = {};  // fp32 or T [H]
  ASSAY_OPERATION("attention_forward", q, k, v, out, lse, shape, sinks)
};
struct AttentionBackward {
  In q, k, v, out, lse, dout;  // dout as out
  Out dq, dk, dv;              // as q, k, v
  AttentionShape shape;
  // As the forward's; with it must come dsinks, -sum over b, i of exp(sinks[h] - lse[b, h, i]) (dout . out)[b, i, h].
  Optional<In> sinks = {};
  Optional<OutOrSum> dsinks = {};  // fp32 or T [H]
  bool accumulate = false;         // add to dsinks
  ASSAY_OPERATION("attention_backward", q, k, v, out, lse, dout, dq, dk, dv, shape, sinks, dsinks)
};

// The keys of latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1.3). Each head has its own columns without a
// position. Behind them lie the columns that all heads share, turned as Rotary turns:
// k[b, t, h] = (nope[b, t, h] | rotary(shared[b, t])).
struct LatentKeysForward {
  In nope;      // T [B, T, H, D]; honours strides, as all but the tables do
  In shared;    // T [B, T, R]
  In cos, sin;  // fp32 [at least T, R/2]
  Out k;        // T [B, T, H, D + R]
  ASSAY_OPERATION("latent_keys_forward", nope, shared, cos, sin, k)
};
// dshared[b, t] = rotary back of the sum over heads of dk's last R columns; the sum is of fp32, and rounded once.
struct LatentKeysBackward {
  In dk;
  In cos, sin;
  Out dnope, dshared;  // as nope and shared
  ASSAY_OPERATION("latent_keys_backward", dk, cos, sin, dnope, dshared)
};

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_ATTENTION(X) \
  X(SoftmaxForward) X(SoftmaxBackward) X(AttentionForward) X(AttentionBackward) X(LatentKeysForward) \
  X(LatentKeysBackward)
// clang-format on
