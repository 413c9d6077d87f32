// Attention by the matrix of all scores in float64, and operands in the layouts that it is called with.
#pragma once
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/attention_guards.hpp"
#include "harness.hpp"

namespace assay::conformance {

// The columns that row `i` of a score matrix sees.
inline std::int64_t visible(std::int64_t i, std::int64_t queries, std::int64_t keys, bool causal) {
  return causal ? std::max<std::int64_t>(0, std::min(keys, i + 1 + keys - queries)) : keys;
}

// What a query sees, and what becomes of its scores.
struct AttentionKind {
  bool causal;
  std::int64_t window = 0;
  double soft_cap = 0.0;
  Values sinks = {};                         // by head; empty: there are none
  std::vector<std::int64_t> documents = {};  // their lengths, through all sequences; empty: no documents

  AttentionKind(bool c, std::int64_t w = 0, double cap = 0.0, Values s = {},  // NOLINT: a bool is a kind
                std::vector<std::int64_t> d = {})
      : causal(c), window(w), soft_cap(cap), sinks(std::move(s)), documents(std::move(d)) {}

  // Where the document of token i of sequence b begins in it.
  std::int64_t first_key(std::int64_t b, std::int64_t i, std::int64_t length) const {
    std::int64_t begin = 0;
    for (const std::int64_t tokens : documents) {
      if (b * length + i < begin + tokens) return begin - b * length;
      begin += tokens;
    }
    return 0;
  }
};

// The documents of a kind as an operation has them.
class DocumentTensors {
 public:
  DocumentTensors(const AttentionKind& kind, std::int64_t batch, std::int64_t length) {
    if (kind.documents.empty()) return;
    Values first, starts{0};
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < length; ++i) {
        first.push_back(static_cast<double>(kind.first_key(b, i, length)));
        documents_.pairs += i + 1 - kind.first_key(b, i, length);
      }
    for (const std::int64_t tokens : kind.documents) {
      starts.push_back(starts.back() + static_cast<double>(tokens));
      documents_.longest = std::max(documents_.longest, tokens);
    }
    first_keys_.emplace(DType::i32, Shape{batch, length}, first);
    starts_.emplace(DType::i32, Shape{static_cast<std::int64_t>(starts.size())}, starts);
    documents_.first_keys = *first_keys_;
    documents_.starts = *starts_;
  }
  const compute::PackedDocuments& get() const { return documents_; }

 private:
  std::optional<DeviceTensor> first_keys_, starts_;
  compute::PackedDocuments documents_;
};

struct AttentionSizes {
  std::int64_t batch, queries, keys, heads, depth;
  std::int64_t fewer_key_heads = 0;    // 0: as many as heads
  std::int64_t other_value_depth = 0;  // the width of values; 0: as of queries and keys

  std::int64_t value_depth() const { return other_value_depth > 0 ? other_value_depth : depth; }
  std::int64_t key_heads() const { return fewer_key_heads > 0 ? fewer_key_heads : heads; }
  std::int64_t query_count() const { return batch * queries * heads * depth; }
  std::int64_t key_count() const { return batch * keys * key_heads() * depth; }
  std::int64_t out_count() const { return batch * queries * heads * value_depth(); }
  std::int64_t value_count() const { return batch * keys * key_heads() * value_depth(); }
  // Where the numbers of a query begin and of its result, and of the key and the value that head h of queries reads.
  std::size_t query_at(std::int64_t b, std::int64_t t, std::int64_t h) const { return row(b, t, h) * width(depth); }
  std::size_t out_at(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return row(b, t, h) * width(value_depth());
  }
  std::size_t key_at(std::int64_t b, std::int64_t t, std::int64_t h) const { return key_row(b, t, h) * width(depth); }
  std::size_t value_at(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return key_row(b, t, h) * width(value_depth());
  }

 private:
  static std::size_t width(std::int64_t columns) { return static_cast<std::size_t>(columns); }
  std::size_t row(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return static_cast<std::size_t>((b * queries + t) * heads + h);
  }
  std::size_t key_row(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return static_cast<std::size_t>((b * keys + t) * key_heads() + h / (heads / key_heads()));
  }
};
inline std::ostream& operator<<(std::ostream& out, const AttentionSizes& s) {
  return out << s.batch << "x" << s.queries << "x" << s.keys << "x" << s.heads << "x" << s.depth << ", "
             << s.key_heads() << " heads of keys, values " << s.value_depth();
}

struct Attended {
  Values out, lse;
};
struct AttentionGradients {
  Values q, k, v, sinks;
};

inline double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// The scores of one query; -infinity of a key before its window or its document.
inline Values scores_of(const AttentionSizes& s, const Values& q, const Values& k, double scale,
                        const AttentionKind& kind, std::int64_t b, std::int64_t h, std::int64_t i) {
  Values scores(static_cast<std::size_t>(visible(i, s.queries, s.keys, kind.causal)));
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const auto key = static_cast<std::int64_t>(j);
    scores[j] = scale * dot(&q[s.query_at(b, i, h)], &k[s.key_at(b, key, h)], s.depth);
    if (kind.soft_cap > 0) scores[j] = kind.soft_cap * std::tanh(scores[j] / kind.soft_cap);
    if ((kind.window > 0 && i + (s.keys - s.queries) - key >= kind.window) || key < kind.first_key(b, i, s.queries))
      scores[j] = -std::numeric_limits<double>::infinity();
  }
  return scores;
}

inline double mask_at(const AttentionSizes& s, const Values& mask, std::int64_t b, std::int64_t h, std::int64_t i,
                      std::size_t j) {
  if (mask.empty()) return 1.0;
  return mask[static_cast<std::size_t>(((b * s.heads + h) * s.queries + i) * s.keys) + j];
}

template <class Visit>
void each_query(const AttentionSizes& s, Visit visit) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) visit(b, h, i);
}

// `mask` [B, H, Tq, Tk], what each probability is multiplied by; empty: 1.
inline Attended attend(const AttentionSizes& s, const Values& q, const Values& k, const Values& v, double scale,
                       const AttentionKind& kind, const Values& mask = {}) {
  Attended a{Values(static_cast<std::size_t>(s.out_count())),
             Values(static_cast<std::size_t>(s.batch * s.heads * s.queries))};
  each_query(s, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const Values scores = scores_of(s, q, k, scale, kind, b, h, i);
    double high = -std::numeric_limits<double>::infinity(), sum = 0.0;
    if (!kind.sinks.empty()) high = kind.sinks[static_cast<std::size_t>(h)], sum = 1.0;
    const double sink = high;
    for (const double x : scores) high = std::max(high, x);
    if (sum > 0) sum = std::exp(sink - high);
    for (const double x : scores) sum += std::exp(x - high);
    a.lse[static_cast<std::size_t>((b * s.heads + h) * s.queries + i)] = sum > 0 ? high + std::log(sum) : high;
    for (std::size_t j = 0; j < scores.size(); ++j)
      for (std::size_t d = 0; d < static_cast<std::size_t>(s.value_depth()); ++d)
        a.out[s.out_at(b, i, h) + d] += std::exp(scores[j] - high) / sum * mask_at(s, mask, b, h, i, j) *
                                        v[s.value_at(b, static_cast<std::int64_t>(j), h) + d];
  });
  return a;
}

inline AttentionGradients attend_backward(const AttentionSizes& s, const Values& q, const Values& k, const Values& v,
                                          const Attended& a, const Values& dout, double scale,
                                          const AttentionKind& kind, const Values& mask = {}) {
  AttentionGradients g{Values(q.size()), Values(k.size()), Values(v.size()), Values(kind.sinks.size())};
  each_query(s, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const Values scores = scores_of(s, q, k, scale, kind, b, h, i);
    const std::size_t query = s.query_at(b, i, h), result = s.out_at(b, i, h);
    const double delta = dot(&dout[result], &a.out[result], s.value_depth());
    const double lse = a.lse[static_cast<std::size_t>((b * s.heads + h) * s.queries + i)];
    if (!kind.sinks.empty())
      g.sinks[static_cast<std::size_t>(h)] -= std::exp(kind.sinks[static_cast<std::size_t>(h)] - lse) * delta;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const std::size_t key = s.key_at(b, static_cast<std::int64_t>(j), h);
      const std::size_t value = s.value_at(b, static_cast<std::int64_t>(j), h);
      const double p = std::exp(scores[j] - lse);
      const double t = kind.soft_cap > 0 && p > 0 ? scores[j] / kind.soft_cap : 0.0;
      const double kept = mask_at(s, mask, b, h, i, j);
      const double ds = p * (kept * dot(&dout[result], &v[value], s.value_depth()) - delta) * scale * (1 - t * t);
      for (std::size_t d = 0; d < static_cast<std::size_t>(s.depth); ++d) {
        g.q[query + d] += ds * k[key + d];
        g.k[key + d] += ds * q[query + d];
      }
      for (std::size_t d = 0; d < static_cast<std::size_t>(s.value_depth()); ++d)
        g.v[value + d] += kept * p * dout[result + d];
    }
  });
  return g;
}

// Where q, k, v and their gradients lie: three views of one [B, T, 3, H, D] buffer, or [B, H, T, D] memory each.
enum class AttentionLayout { packed, heads_outside };

enum class AttentionSide { queries, keys, results, values };

// One [batch, times, heads, width] operand with memory in its layout; its sizes are those of its side.
class AttentionOperand {
 public:
  AttentionOperand(DType type, const AttentionSizes& s, AttentionSide side, AttentionLayout layout,
                   const Values* values = nullptr)
      : AttentionOperand(type, s.batch, is_of_queries(side) ? s.queries : s.keys,
                         is_of_queries(side) ? s.heads : s.key_heads(),
                         is_wide_as_keys(side) ? s.depth : s.value_depth(), layout, values) {}
  AttentionOperand(DType type, std::int64_t batch, std::int64_t times, std::int64_t heads, std::int64_t width,
                   AttentionLayout layout, const Values* values)
      : buffer_(layout == AttentionLayout::packed ? DeviceTensor(type, {batch, times, 3 * heads, width})
                                                  : DeviceTensor(type, {batch, heads, times, width})) {
    view_ = layout == AttentionLayout::packed ? buffer_->slice(2, heads, heads) : buffer_->transposed(1, 2);
    if (!values) return;
    const DeviceTensor plain(type, {batch, times, heads, width}, *values);
    run([&] { backend().run(op::Copy{.to = view_, .from = plain}); });
  }
  operator const Tensor&() const { return view_; }
  Values read() const { return buffer_.read(view_); }

 private:
  static bool is_of_queries(AttentionSide side) {
    return side == AttentionSide::queries || side == AttentionSide::results;
  }
  static bool is_wide_as_keys(AttentionSide side) {
    return side == AttentionSide::queries || side == AttentionSide::keys;
  }

  DeviceTensor buffer_;
  Tensor view_;
};

inline bool by_cudnn(DType t) { return is_cuda() && t != DType::f32; }

inline bool refused(DType t, const AttentionSizes& s, const AttentionKind& kind, bool backward) {
  const std::int64_t window = kind.window < s.keys ? kind.window : 0;
  const cuda::AttentionProblem problem{t,
                                       s.batch,
                                       s.heads,
                                       s.queries,
                                       s.keys,
                                       s.depth,
                                       kind.causal,
                                       backward,
                                       0.0F,
                                       s.key_heads(),
                                       window,
                                       static_cast<float>(kind.soft_cap),
                                       !kind.sinks.empty(),
                                       s.value_depth(),
                                       static_cast<std::int64_t>(kind.documents.size()),
                                       kind.documents.empty() ? 0 : std::ranges::max(kind.documents)};
  return by_cudnn(t) && !cuda::attention_refusal(problem).empty();
}

// cuDNN rounds probabilities, and the scores' gradients, to the type before it multiplies with them. The results are
// sums over keys or queries of such terms, each off by up to half a unit, 2^-9 in bf16: as they vary in sign the sum is
// off by 2^-9 / sqrt(3) = 1.1e-3 of its rms, the worst of 10^5 results by 4.5 times that, and the rounding of the
// result adds 2e-3. 2.5e-2 leaves room for sums of few terms (in fp16, 1/8 of this, 2.6e-3 was seen of the queries'
// gradients with three heads to one on an H100), and is far below what a wrong mask or stride gives.
inline double attention_tolerance(DType t, double fp32) {
  return by_cudnn(t) ? tolerance_of(t, fp32, 2.5e-2) : tolerance_of(t, fp32);
}

}  // namespace assay::conformance
