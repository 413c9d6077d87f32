// Attention by its definition. The matrix of scores is made for some rows of queries at a time, so that it can be
// compared with tiled attention at any length. From forward to backward it keeps only the operands.
//
// Keys and values may have fewer heads: K, where K divides H. Query head h reads key head h / (H / K). Each product is
// then made H / K times, for one head of each group, and gradients by keys and values are added up.
#pragma once
#include <assay/compute/backend.hpp>

namespace assay::models {

// The products of attention by its definition, of operands [B, T, H or K, D] and scores [B, H, Tq, Tk], by strides.
struct NaiveProducts {
  // scores = q k^T
  static void scores(compute::Backend& b, const compute::Tensor& q, const compute::Tensor& k,
                     const compute::Tensor& scores);
  // out = p v, of [B, Tq, H, D]; also the gradients by queries, of those of the scores and k
  static void of_queries(compute::Backend& b, const compute::Tensor& p, const compute::Tensor& v,
                         const compute::Tensor& out);
  // dv (+)= p^T dout, of [B, Tk, K, D]; also the gradients by keys, of those of the scores and q
  static void of_keys(compute::Backend& b, const compute::Tensor& p, const compute::Tensor& dout,
                      const compute::Tensor& dv, bool adds);
};

class NaiveAttention {
 public:
  // `queries` and `keys` of a sequence, `heads` of queries; so many rows of queries at a time. A window is of causal
  // attention alone: INVALID_ARGUMENT.
  NaiveAttention(std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                 const compute::AttentionShape& shape, std::int64_t rows, const compute::Tensor& sinks = {},
                 const compute::Tensor& dsinks = {});
  // The most rows at a time whose scores take no more than `bytes`; but no fewer than a sixteenth of all, as the
  // gradients by keys and values are rounded each time that they are added to.
  static std::int64_t rows_within(std::size_t bytes, std::int64_t batch, std::int64_t heads, std::int64_t queries,
                                  std::int64_t keys, compute::DType dtype);

  // q, out and their gradients [B, Tq, H, D], k and v [B, Tk, K, D], by strides; scores and dscores [B, H, rows, Tk];
  // lse, memory for B * H * rows numbers of fp32, is used with a soft cap or sinks. No dropout.
  void forward(compute::Backend& b, const compute::Tensor& q, const compute::Tensor& k, const compute::Tensor& v,
               const compute::Tensor& out, const compute::Tensor& scores, const compute::Tensor& lse) const;
  void backward(compute::Backend& b, const compute::Tensor& q, const compute::Tensor& k, const compute::Tensor& v,
                const compute::Tensor& dout, const compute::Tensor& dq, const compute::Tensor& dk,
                const compute::Tensor& dv, const compute::Tensor& scores, const compute::Tensor& dscores,
                const compute::Tensor& lse) const;
  // Whether the softmax leaves its log-sum-exps for its backward.
  static bool needs_lse(const compute::AttentionShape& shape, const compute::Tensor& sinks) {
    return shape.soft_cap > 0.0F || sinks;
  }

 private:
  struct Part {  // queries [first, first + rows) see the first `keys` keys at most
    std::int64_t first, rows, keys;
  };
  template <class Visit>
  void each_part(Visit visit) const;
  compute::Tensor scores_of(const Part& part, const compute::Tensor& memory) const;
  compute::Tensor lse_of(const Part& part, const compute::Tensor& memory) const;
  void probabilities(compute::Backend& b, const Part& part, const compute::Tensor& q, const compute::Tensor& k,
                     const compute::Tensor& scores, const compute::Tensor& lse) const;

  std::int64_t batch_, heads_, queries_, keys_;
  compute::AttentionShape shape_;
  std::int64_t rows_;
  compute::Tensor sinks_, dsinks_;
};

}  // namespace assay::models
