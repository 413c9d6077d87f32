// Attention and its gradients in float64, of a few queries against all keys. No device: the numbers come as they were
// read from it.
//
// The backward is linear in the gradient of the output. Where that is zero but for the chosen queries, the gradients by
// all keys and values are theirs alone, exactly, at the cost of those queries: a sequence of 65,536 can be checked
// without its 2^32 scores.
#pragma once
#include <cstdint>
#include <vector>

namespace attention {

struct Head {  // one of one sequence; each matrix is [seq, head_dim], v and dout [seq, value_dim]
  std::int64_t seq = 0, head_dim = 0;
  bool causal = true;
  double scale = 1;
  std::vector<float> q, k, v;
  std::vector<float> dout;                   // empty: no gradients
  std::int64_t window = 0;                   // causal: so many keys up to its own are visible to a query; 0: all
  std::vector<std::int64_t> documents = {};  // their lengths, from the first key on; empty: the sequence is one
  std::int64_t value_dim = 0;                // 0: head_dim
};

// Rows of a result, and for each the Euclidean norm of the terms that are summed up to it, before they cancel: what
// rounding errors are in proportion to.
struct Rows {
  explicit Rows(std::size_t count = 0, std::int64_t columns = 0)
      : columns(columns), value(count * static_cast<std::size_t>(columns)), magnitude(count) {}
  std::int64_t columns;
  std::vector<double> value, magnitude;
};

struct Reference {
  Rows out, dq;  // for the chosen queries, in their order
  Rows dk, dv;   // for all keys, by the chosen queries alone
};
Reference reference_of(const Head& head, const std::vector<std::int64_t>& queries);

// Up to `count` of `seq` rows, rising: the first, the last, and evenly between them.
std::vector<std::int64_t> spread_rows(std::int64_t seq, std::int64_t count);

// The largest over the rows of max(0, |got - expected| - forgiven) / magnitude, Euclidean. `got` has as many rows, one
// after the other. A row of magnitude 0 must be exact, `forgiven` apart: infinite if not, and where anything is NaN.
double worst_error(const std::vector<float>& got, const Rows& expected, double forgiven);

}  // namespace attention
