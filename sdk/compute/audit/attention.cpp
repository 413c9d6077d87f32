// Attention by the score matrix of its definition.
//
// Where dropout's masks are the device's own, nobody knows them here. What comes out of the forward is then a sum of
// random terms: it is held against their mean and their spread. The backward is linear in its mask: sums over a whole
// head must be equal on both sides of it, whatever the mask, if it is the forward's.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "dots.hpp"
#include "judge.hpp"
#include "masks.hpp"

namespace assay::compute {

using audit::dot;
using audit::Places;
using audit::size_of_dot;
using audit::Values;

namespace {

constexpr double attention_at_once = 1 << 24;  // less is looked at whole
constexpr std::int64_t pairs_of_many = 4, rows_of_head = 8;
constexpr std::int64_t rows_of_drawn_head = 16;  // the first rows of a causal head see few keys and prove nothing

// For sums of independent draws. By Bernstein's inequality, one in a billion is further from its mean than these
// limits. The last two: so many rows, each with some terms of like size and one or more of them dropped, give the
// spread within a factor.
constexpr double most_deviations_of_draws = 6.4, most_of_one_draw = 13.4;
constexpr double terms_of_a_sum = 4, spread_within = 8;
constexpr std::size_t enough_rows_of_draws = 32;
constexpr double sums_of_head = 4;  // roundings of a row's terms, whose own are random

// One head of one sequence: [T, D].
Tensor head_of(const Tensor& t, std::int64_t batch, std::int64_t head) {
  Tensor one = t.slice(0, batch, 1).slice(2, head, 1);
  Tensor flat(one.data, one.dtype, {t.dim(1), t.dim(3)});
  flat.stride[0] = t.step(1);
  flat.stride[1] = t.step(3);
  return flat;
}

// How many heads of queries read one of keys.
std::int64_t group_of(const Tensor& q, const Tensor& k) { return k.dim(2) > 0 ? q.dim(2) / k.dim(2) : 1; }

// By query of a sequence; empty where it has no documents.
std::vector<std::int32_t> first_keys_of(Backend& backend, const AttentionShape& shape, std::int64_t batch) {
  const Tensor& all = shape.documents.first_keys;
  std::vector<std::int32_t> first(all ? static_cast<std::size_t>(all.dim(1)) : 0);
  if (!first.empty()) backend.download(first.data(), all.slice(0, batch, 1));
  return first;
}

// What sets an operation apart from others of its queries' shape.
template <class Op>
std::string keys_text(const Op& op) {
  std::string text = " of keys " + std::to_string(op.k.dim(1));
  if (op.k.dim(2) != op.q.dim(2)) text += " of " + std::to_string(op.k.dim(2)) + " heads";
  if (op.shape.window > 0) text += " window " + std::to_string(op.shape.window);
  if (op.shape.documents.first_keys) text += " documents";
  if (op.shape.soft_cap > 0) text += " cap";
  if (op.sinks) text += " sinks";
  if (op.v.dim(3) != op.q.dim(3)) text += " values " + std::to_string(op.v.dim(3));
  return text;
}

struct Look {
  Places pairs, queries, keys;  // pairs of a sequence and a head: of queries, or of keys and all heads that read it
  double cost;
};

Look look_at(const Tensor& q, const Tensor& k, const Tensor& v, double factor, std::int64_t heads,
             std::int64_t rows = rows_of_head) {
  const auto of = [](std::int64_t x) { return static_cast<double>(x); };
  const std::int64_t pairs = q.dim(0) * heads;
  const double width = of(q.dim(3) + v.dim(3)) / 2;  // scores take the one, results the other
  const double block = of(q.dim(1)) * of(k.dim(1)) * width;
  const bool whole = of(q.dim(0) * q.dim(2)) * block * factor <= attention_at_once;
  Look look;
  look.pairs = audit::some_of(pairs, whole ? pairs : pairs_of_many);
  look.queries = audit::some_of(q.dim(1), whole ? q.dim(1) : rows);
  look.keys = audit::some_of(k.dim(1), whole ? k.dim(1) : rows);
  look.cost = of(static_cast<std::int64_t>(look.pairs.size()) * (q.dim(2) / std::max<std::int64_t>(1, heads))) *
              factor * width *
              (of(static_cast<std::int64_t>(look.queries.size())) * of(k.dim(1)) +
               of(static_cast<std::int64_t>(look.keys.size())) * of(q.dim(1)));
  return look;
}

}  // namespace

// Below its least normal number fp16 has a fixed step: what is rounded to it on the way is off by half of that.
constexpr double least_exponential = 0x1p-125;  // a kernel may have 0 in its place
static double least_error(DType dtype) { return dtype == DType::f16 ? 0x1p-25 : 0; }

// Of a draw that the host does not know, the variance of what it multiplies by: p / (1 - p), around 1. 0: known, or
// none.
double AuditedBackend::odds_of_own_masks(const Tensor& q, const AttentionShape& shape) const {
  const bool own = std::strcmp(kind(), "cpu") != 0 && q.dtype != DType::f32;
  const auto p = static_cast<double>(shape.dropout.probability);
  return own ? p / (1 - p) : 0;
}

namespace {

// Two sums over a head of products row by row, which are the same sum in another order.
struct SumsOfHead {
  double sum = 0, squares = 0;  // of all; of the sums of each row's absolute terms

  void add(const Values& a, const Values& b, std::size_t width) {
    for (std::size_t row = 0; row < a.size(); row += width) {
      sum += dot(&a[row], &b[row], width);
      const double terms = size_of_dot(&a[row], &b[row], width);
      squares += terms * terms;
    }
  }
};

double norm_of(const Values& x) { return std::sqrt(dot(x.data(), x.data(), x.size())); }

}  // namespace

// With P the probabilities as the mask leaves them: out = P v and dv = P' dout, so that dout out = v dv, row by row
// added up; and dq = S k, dk = S' q with the same gradients S of the scores. Of a group of heads that read the same
// keys, the sums of the group.
void AuditedBackend::check_sums_of_backward(const op::AttentionBackward& op, const std::vector<std::int64_t>& pairs) {
  const Tensor& q = op.q;
  const std::int64_t key_heads = op.k.dim(2);
  const auto width = static_cast<std::size_t>(q.dim(3)), value_width = static_cast<std::size_t>(op.v.dim(3));
  // Of keys and values their head, of the others all heads that read it, one after the other.
  const auto read = [&](const Tensor& t, std::int64_t pair) {
    const std::int64_t members = t.dim(2) / key_heads;
    Values all;
    for (std::int64_t member = 0; member < members; ++member) {
      const Values one = judge_->read(head_of(t, pair / key_heads, pair % key_heads * members + member));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  };
  struct Before {
    Values q, k, v, out, dout;
  };
  std::vector<Before> all;  // gradients may lie where inputs do
  for (const std::int64_t pair : pairs)
    all.push_back({read(q, pair), read(op.k, pair), read(op.v, pair), read(op.out, pair), read(op.dout, pair)});
  real().run(op);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Before& b = all[i];
    const auto equal = [&](const char* what, std::size_t columns, const Values& x, const Values& dx, const Values& y,
                           const Values& dy) {
      SumsOfHead left, right;
      left.add(x, dx, columns);
      right.add(y, dy, columns);
      if (!std::isfinite(left.sum) || !std::isfinite(right.sum)) return;  // an overflow, which others look for
      const double allowed = sums_of_head * Judge::rounding_of(q.dtype) * std::sqrt(left.squares + right.squares) +
                             least_error(q.dtype) * (norm_of(x) + norm_of(y)) * (1 + norm_of(dx) + norm_of(dy));
      judge_->within(what, pairs[i], right.sum, left.sum, allowed);
    };
    equal("the sum of v dv, which is that of out dout,", value_width, b.out, b.dout, b.v, read(op.dv, pairs[i]));
    equal("the sum of k dk, which is that of q dq,", width, b.q, read(op.dq, pairs[i]), b.k, read(op.dk, pairs[i]));
  }
}

// What both directions read of one head, and the probabilities of one query or one key.
struct AttentionHead {
  Values q, k, v;
  std::size_t queries = 0, keys = 0;
  std::size_t width = 0, value_width = 0;  // of queries and keys; of values and the result
  double scale = 0;
  bool causal = false;
  const audit::Mask* mask = nullptr;
  std::int64_t first_element = 0;  // of the mask
  std::size_t window = 0;
  double soft_cap = 0;
  std::vector<std::int32_t> first_keys = {};  // by query, of packed documents

  bool visible(std::size_t i, std::size_t j) const {
    return (!causal || j + queries <= i + keys) && (window == 0 || i + keys < j + queries + window) &&
           (first_keys.empty() || static_cast<std::int64_t>(j) >= first_keys[i]);
  }
  double tanh_of_score(std::size_t i, std::size_t j) const {
    return std::tanh(scale * dot(&q[i * width], &k[j * width], width) / soft_cap);
  }
  double score(std::size_t i, std::size_t j) const {
    return soft_cap > 0 ? soft_cap * tanh_of_score(i, j) : scale * dot(&q[i * width], &k[j * width], width);
  }
  double slope(std::size_t i, std::size_t j) const {
    const double t = soft_cap > 0 ? tanh_of_score(i, j) : 0;
    return 1 - t * t;
  }
  double score_terms(std::size_t i, std::size_t j) const {
    return std::abs(scale) * size_of_dot(&q[i * width], &k[j * width], width);
  }
  double kept(std::size_t i, std::size_t j) const {
    return (*mask)(first_element + static_cast<std::int64_t>(i * keys + j));
  }
};

// Scores meet roundings in fp32, or those of tf32 in their inputs; 16-bit kernels round probabilities and their
// gradients before they multiply by them.
static double score_error(double terms, ProductMath math, DType dtype) {
  const bool rounded = math == ProductMath::tf32 && dtype == DType::f32;
  return terms * (rounded ? 0x1p-10 : 32 * 0x1p-24);
}
static double product_error(ProductMath math, DType dtype, double rounding) {
  if (dtype == DType::f32) return math == ProductMath::tf32 ? 0x1p-10 : 0;
  return 2 * rounding;
}

void AuditedBackend::execute(const op::AttentionForward& op) {
  const auto call = [&] { real().run(op); };
  const double odds = odds_of_own_masks(op.q, op.shape);
  const Look look = look_at(op.q, op.k, op.v, 2, op.q.dim(2), odds > 0 ? rows_of_drawn_head : rows_of_head);
  if (!judge_->begins(op.name, op.q, look.cost, keys_text(op))) return call();
  call();
  const audit::Mask mask(real(), odds > 0 ? Dropout{} : op.shape.dropout);
  const std::int64_t heads = op.q.dim(2);
  double spread = 0;  // of all rows of draws, each relative to what is expected
  std::size_t rows_of_draws = 0;
  for (const std::int64_t pair : look.pairs) {
    const std::int64_t batch = pair / heads, head = pair % heads, key_head = head / group_of(op.q, op.k);
    AttentionHead h{judge_->read(head_of(op.q, batch, head)),
                    judge_->read(head_of(op.k, batch, key_head)),
                    judge_->read(head_of(op.v, batch, key_head)),
                    static_cast<std::size_t>(op.q.dim(1)),
                    static_cast<std::size_t>(op.k.dim(1)),
                    static_cast<std::size_t>(op.q.dim(3)),
                    static_cast<std::size_t>(op.v.dim(3)),
                    static_cast<double>(op.shape.scale),
                    op.shape.causal,
                    &mask,
                    pair * op.q.dim(1) * op.k.dim(1),
                    static_cast<std::size_t>(op.shape.window),
                    static_cast<double>(op.shape.soft_cap),
                    first_keys_of(real(), op.shape, batch)};
    const double sink = op.sinks ? judge_->read(op.sinks)[static_cast<std::size_t>(head)] : -INFINITY;
    const Values found = judge_->read_rows(head_of(op.out, batch, head), look.queries);
    const Values sums = judge_->read(op.lse.slice(0, batch, 1).slice(1, head, 1));
    Values p(h.keys);
    for (std::size_t r = 0; r < look.queries.size(); ++r) {
      const auto i = static_cast<std::size_t>(look.queries[r]);
      double most = -INFINITY, total = 0, error = 0;
      for (std::size_t j = 0; j < h.keys; ++j) {
        p[j] = h.visible(i, j) ? h.score(i, j) : -INFINITY;
        most = std::fmax(most, p[j]);
        if (h.visible(i, j)) error = std::fmax(error, score_error(h.score_terms(i, j), math_, op.q.dtype));
      }
      if (!(most > -INFINITY)) continue;  // no key is visible, or something is NaN
      most = std::fmax(most, sink);
      total = std::exp(sink - most);
      for (double& x : p) total += x = std::exp(x - most);
      judge_->within("lse", look.queries[r] + pair * op.q.dim(1), sums[i], most + std::log(total),
                     error + 64 * 0x1p-24 * (1 + std::abs(most)));
      double weights = 0, squares = 0;  // of the terms of the whole row
      for (std::size_t j = 0; j < h.keys && odds > 0; ++j) {
        const double weight =
            p[j] / total * p[j] / total * dot(&h.v[j * h.value_width], &h.v[j * h.value_width], h.value_width);
        weights += weight;
        squares += weight * weight;
      }
      const bool decides = weights > 0 && weights * weights >= std::fmax(terms_of_a_sum, (1 + odds) / odds) * squares;
      double differences = 0;
      for (std::size_t c = 0; c < h.value_width; ++c) {
        double expected = 0, terms = 0, least = 0, variance = 0, largest = 0;
        for (std::size_t j = 0; j < h.keys; ++j) {
          if (h.visible(i, j)) least += least_error(op.q.dtype) * std::abs(h.v[j * h.value_width + c]);
          if (p[j] == 0) continue;
          const double term = p[j] / total * h.kept(i, j) * h.v[j * h.value_width + c];
          expected += term;
          terms += std::abs(term);
          variance += odds * term * term;
          largest = std::fmax(largest, std::abs(term));
        }
        const double drawn =
            odds > 0 ? most_deviations_of_draws * std::sqrt(variance) + most_of_one_draw * largest * std::fmax(1, odds)
                     : 0;
        judge_->element(
            op.out, "out", static_cast<std::int64_t>(i * h.value_width + c), found[r * h.value_width + c], expected,
            terms,
            terms * (2 * error + product_error(math_, op.q.dtype, Judge::rounding_of(op.q.dtype))) + least + drawn);
        const double difference = found[r * h.value_width + c] - expected;
        differences += difference * difference;
      }
      if (!decides) continue;
      spread += differences / (odds * weights);
      ++rows_of_draws;
    }
  }
  if (odds > 0 && rows_of_draws < enough_rows_of_draws)
    judge_->leave_out("how much attention_forward drops");
  else if (odds > 0)
    judge_->within("the logarithm of the spread of out by dropout", 0,
                   std::log(spread / static_cast<double>(rows_of_draws)), 0, std::log(spread_within));
}

// Of the first head and the last one, from what is there before the operation, which may write where it reads.
AuditedBackend::SinkSums AuditedBackend::sink_sums(const op::AttentionBackward& op) {
  SinkSums sums;
  if (!op.sinks) return sums;
  const Values sinks = judge_->read(op.sinks);
  const Values before = op.accumulate ? judge_->read(op.dsinks) : Values(sinks.size());
  const auto width = static_cast<std::size_t>(op.out.dim(3));
  for (const std::int64_t head : {std::int64_t{0}, op.q.dim(2) - 1}) {
    const auto h = static_cast<std::size_t>(head);
    SinkSums::Of of{head, before[h], std::abs(before[h])};
    for (std::int64_t batch = 0; batch < op.q.dim(0); ++batch) {
      const Values out = judge_->read(head_of(op.out, batch, head)), dout = judge_->read(head_of(op.dout, batch, head));
      const Values lse = judge_->read(op.lse.slice(0, batch, 1).slice(1, head, 1));
      for (std::size_t i = 0; i < lse.size(); ++i) {
        const double p = std::exp(sinks[h] - lse[i]);
        of.sum -= p * dot(&out[i * width], &dout[i * width], width);
        of.terms += p * size_of_dot(&out[i * width], &dout[i * width], width) * (1 + std::abs(lse[i]));
      }
    }
    sums.all.push_back(of);
  }
  return sums;
}

void AuditedBackend::check_sink_sums(const op::AttentionBackward& op, const SinkSums& sums) {
  if (!op.sinks) return;
  const Values found = judge_->read(op.dsinks);
  for (const SinkSums::Of& of : sums.all)
    judge_->element(op.dsinks, "dsinks", of.head, found[static_cast<std::size_t>(of.head)], of.sum, of.terms);
}

void AuditedBackend::execute(const op::AttentionBackward& op) {
  const auto call = [&] { real().run(op); };
  const Look look = look_at(op.q, op.k, op.v, 4, op.k.dim(2));
  if (!judge_->begins(op.name, op.q, look.cost, keys_text(op))) return call();
  if (odds_of_own_masks(op.q, op.shape) > 0) {
    // The sums hold for gradients of the scores that are wrong, too: by a factor, or with another mask.
    judge_->leave_out("attention_backward under the device's own masks, but for sums over heads");
    return check_sums_of_backward(op, look.pairs);
  }
  const audit::Mask mask(real(), op.shape.dropout);
  const std::int64_t heads = op.q.dim(2), key_heads = op.k.dim(2), group = group_of(op.q, op.k);
  struct Before {
    AttentionHead head;
    Values dout, delta, delta_terms, lse;
  };
  const auto read = [&](std::int64_t batch, std::int64_t head) {
    Before b{{judge_->read(head_of(op.q, batch, head)), judge_->read(head_of(op.k, batch, head / group)),
              judge_->read(head_of(op.v, batch, head / group)), static_cast<std::size_t>(op.q.dim(1)),
              static_cast<std::size_t>(op.k.dim(1)), static_cast<std::size_t>(op.q.dim(3)),
              static_cast<std::size_t>(op.v.dim(3)), static_cast<double>(op.shape.scale), op.shape.causal, &mask,
              (batch * heads + head) * op.q.dim(1) * op.k.dim(1), static_cast<std::size_t>(op.shape.window),
              static_cast<double>(op.shape.soft_cap), first_keys_of(real(), op.shape, batch)},
             judge_->read(head_of(op.dout, batch, head)),
             {},
             {},
             judge_->read(op.lse.slice(0, batch, 1).slice(1, head, 1))};
    const Values o = judge_->read(head_of(op.out, batch, head));
    for (std::size_t i = 0; i < b.head.queries; ++i) {
      b.delta.push_back(dot(&o[i * b.head.value_width], &b.dout[i * b.head.value_width], b.head.value_width));
      b.delta_terms.push_back(
          size_of_dot(&o[i * b.head.value_width], &b.dout[i * b.head.value_width], b.head.value_width));
    }
    return b;
  };
  std::vector<std::vector<Before>> all;  // by pair, of the heads that read its keys; gradients may lie where inputs do
  for (const std::int64_t pair : look.pairs) {
    std::vector<Before>& members = all.emplace_back();
    for (std::int64_t member = 0; member < group; ++member)
      members.push_back(read(pair / key_heads, pair % key_heads * group + member));
  }
  const SinkSums sinks = sink_sums(op);
  call();
  check_sink_sums(op, sinks);
  const double on_the_way = product_error(math_, op.q.dtype, Judge::rounding_of(op.q.dtype));
  for (std::size_t which = 0; which < all.size(); ++which) {
    const std::vector<Before>& members = all[which];
    const AttentionHead& any = members.front().head;  // for the lengths, and for its keys and values
    const std::int64_t batch = look.pairs[which] / key_heads, key_head = look.pairs[which] % key_heads;
    // Probability, the score's gradient, and how far both may be off.
    struct Pair {
      double p, kept, ds, terms, error;
    };
    const auto at = [&](const Before& b, std::size_t i, std::size_t j) {
      const AttentionHead& h = b.head;
      if (!h.visible(i, j)) return Pair{0, 0, 0, -1, 0};
      const double p = std::exp(h.score(i, j) - b.lse[i]), kept = h.kept(i, j);
      const double dp = dot(&b.dout[i * h.value_width], &h.v[j * h.value_width], h.value_width) * kept;
      const double dp_terms = size_of_dot(&b.dout[i * h.value_width], &h.v[j * h.value_width], h.value_width) * kept;
      const double of_score = score_error(h.score_terms(i, j) + std::abs(b.lse[i]), math_, op.q.dtype);
      // The slope of a soft cap lies between 0 and 1, however far its score is off.
      const double of_slope =
          h.soft_cap > 0 ? std::min(1.0, 2 * std::abs(h.tanh_of_score(i, j)) * of_score / h.soft_cap) : 0;
      const double size = p + least_exponential;
      return Pair{p, kept, p * (dp - b.delta[i]) * h.slope(i, j), size * (dp_terms + b.delta_terms[i]),
                  2 * of_score + of_slope + least_exponential / size + on_the_way};
    };
    const auto row = [&](const Tensor& t, const char* name, std::int64_t head, const Places& places, std::size_t others,
                         auto term) {
      const Values found = judge_->read_rows(head_of(t, batch, head), places);
      const auto width = static_cast<std::size_t>(t.dim(3));
      Values expected(width), terms(width), stored(width);
      for (std::size_t r = 0; r < places.size(); ++r) {
        std::fill(expected.begin(), expected.end(), 0);
        std::fill(terms.begin(), terms.end(), 0);
        std::fill(stored.begin(), stored.end(), 0);
        for (std::size_t o = 0; o < others; ++o) {
          const auto [value, size, error, vector] = term(static_cast<std::size_t>(places[r]), o);
          if (size < 0) continue;  // not visible
          for (std::size_t c = 0; c < width; ++c) {
            expected[c] += value * vector[c];
            terms[c] += size * std::abs(vector[c]);
            stored[c] += (size * error + least_error(op.q.dtype)) * std::abs(vector[c]);
          }
        }
        for (std::size_t c = 0; c < width; ++c)
          judge_->element(t, name, places[r] * static_cast<std::int64_t>(width) + static_cast<std::int64_t>(c),
                          found[r * width + c], expected[c], terms[c], stored[c]);
      }
    };
    struct Term {
      double value, size, error;
      const double* vector;
    };
    for (std::size_t m = 0; m < members.size(); ++m)
      row(op.dq, "dq", key_head * group + static_cast<std::int64_t>(m), look.queries, any.keys,
          [&](std::size_t i, std::size_t j) {
            const Pair s = at(members[m], i, j);
            return Term{any.scale * s.ds, std::abs(any.scale) * s.terms, s.error, &any.k[j * any.width]};
          });
    // The queries of all heads of the group, one head after the other.
    row(op.dk, "dk", key_head, look.keys, members.size() * any.queries, [&](std::size_t j, std::size_t o) {
      const Before& b = members[o / any.queries];
      const std::size_t i = o % any.queries;
      const Pair s = at(b, i, j);
      return Term{any.scale * s.ds, std::abs(any.scale) * s.terms, s.error, &b.head.q[i * any.width]};
    });
    row(op.dv, "dv", key_head, look.keys, members.size() * any.queries, [&](std::size_t j, std::size_t o) {
      const Before& b = members[o / any.queries];
      const std::size_t i = o % any.queries;
      const Pair s = at(b, i, j);
      return Term{s.p * s.kept, s.terms < 0 ? -1 : s.p * s.kept, s.error, &b.dout[i * any.value_width]};
    });
  }
}

}  // namespace assay::compute
