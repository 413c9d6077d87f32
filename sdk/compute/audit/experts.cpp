// Mixtures of experts. What says where rows lie is checked whole; numbers by some rows. The first grouped product of
// each kind is checked in all groups and all rows by signed sums, like those of products.cpp, and others in some
// groups.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "judge.hpp"
#include "signed_sums.hpp"

namespace assay::compute {

using audit::Places;
using audit::Segments;
using audit::Values;

namespace {

using Indices = std::vector<std::int32_t>;

Indices read_indices(Backend& backend, const Tensor& t) {
  Indices values(static_cast<std::size_t>(t.elements()));
  if (!values.empty()) backend.download(values.data(), t);
  return values;
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Whole rows of tensors of `width`: all of them, or as many as come to `room` elements.
Places some_rows(std::int64_t rows, std::int64_t width) {
  return audit::some_of(rows, std::max<std::int64_t>(16, audit::room / std::max<std::int64_t>(1, width)));
}
double cost_of_rows(const Tensor& t, double cost) {
  return cost * static_cast<double>(t.dim(-1)) *
         static_cast<double>(some_rows(audit::rows_of(t), audit::width_of(t)).size());
}

Tensor one_a_row(const Tensor& t) { return t.view({t.elements(), 1}); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Indices have no rounding.
template <class Judge>
void judge_indices(Judge& judge, const char* tensor, const Indices& found, const Indices& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (found[i] != expected[i])
      judge.wrong(tensor, "has " + std::to_string(found[i]) + " at element " + std::to_string(i) + "; expected " +
                              std::to_string(expected[i]));
}

// ---- routing -------------------------------------------------------------------------------------------------------

// Of one token: that its experts are experts, and none is there twice.
template <class Judge>
void judge_names(Judge& judge, const std::int32_t* experts, std::int64_t k, std::int64_t count, std::int64_t token) {
  for (std::int64_t j = 0; j < k; ++j) {
    if (experts[j] < 0 || experts[j] >= count)
      judge.wrong("experts", "has " + std::to_string(experts[j]) + " for token " + std::to_string(token) +
                                 "; expected " + "less than " + std::to_string(count));
    if (std::find(experts, experts + j, experts[j]) != experts + j)
      judge.wrong("experts", "has " + std::to_string(experts[j]) + " twice for token " + std::to_string(token));
  }
}

// That they are in the order of their scores, and that none that was left out is better than the last of them.
template <class Judge>
void judge_choice(Judge& judge, const std::int32_t* experts, std::int64_t k, const Values& keys, double rounding,
                  std::int64_t token) {
  const auto is_better = [&](std::int64_t a, std::int64_t b) { return keys[at(a)] > keys[at(b)] + rounding; };
  const auto text = [&](std::int64_t e) { return std::to_string(e) + " (" + std::to_string(keys[at(e)]) + ")"; };
  std::vector<bool> chosen(keys.size());
  for (std::int64_t j = 0; j < k; ++j) {
    chosen[at(experts[j])] = true;
    if (j > 0 && is_better(experts[j], experts[j - 1]))
      judge.wrong("experts", "has " + text(experts[j - 1]) + " before " + text(experts[j]) + " for token " +
                                 std::to_string(token));
  }
  for (std::size_t e = 0; e < keys.size(); ++e)
    if (!chosen[e] && is_better(static_cast<std::int64_t>(e), experts[k - 1]))
      judge.wrong("experts", "has " + text(experts[k - 1]) + " and not " + text(static_cast<std::int64_t>(e)) +
                                 " for token " + std::to_string(token));
}

// A token's scores in float64 and the magnitudes that rounding goes by, relative to a score.
struct TokenScores {
  double lse = 0, largest = 0;
  Values scores;
};
TokenScores scores_of(const double* logits, std::size_t count, ExpertScore kind) {
  TokenScores token;
  double most = -INFINITY, sum = 0;
  for (std::size_t e = 0; e < count; ++e) {
    most = std::fmax(most, logits[e]);
    token.largest = std::fmax(token.largest, std::abs(logits[e]));
  }
  for (std::size_t e = 0; e < count; ++e) sum += std::exp(logits[e] - most);
  token.lse = most + std::log(sum);
  for (std::size_t e = 0; e < count; ++e)
    token.scores.push_back(kind == ExpertScore::softmax ? std::exp(logits[e] - token.lse) : sigmoid(logits[e]));
  return token;
}

}  // namespace

void AuditedBackend::execute(const op::RouteForward& op) {
  real().run(op);
  if (op.logits.elements() == 0) return;
  if (!judge_->begins(op.name, op.logits, cost_of_rows(op.logits, 6), op.given ? " given" : "")) return;
  const std::int64_t tokens = op.logits.dim(0), count = op.logits.dim(1), k = op.experts.dim(1);
  const Indices experts = read_indices(real(), op.experts);
  for (std::int64_t t = 0; t < tokens; ++t) judge_names(*judge_, experts.data() + t * k, k, count, t);
  if (op.given) judge_indices(*judge_, "experts", experts, read_indices(real(), op.given));
  const Places rows = some_rows(tokens, count);
  const Values logits = judge_->read_rows(op.logits, rows), scores = judge_->read_rows(op.scores, rows);
  const Values lse = judge_->read_rows(one_a_row(op.lse), rows), weights = judge_->read_rows(op.weights, rows);
  const Values bias = op.bias ? judge_->read(op.bias) : Values(at(count));
  double largest_bias = 0;
  for (const double b : bias) largest_bias = std::fmax(largest_bias, std::abs(b));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int64_t t = rows[r];
    const TokenScores token = scores_of(logits.data() + r * at(count), at(count), op.rule.score);
    // A score's exponent is a difference of two numbers of fp32.
    const double terms = 2 + 2 * token.largest;
    judge_->element(op.lse, "lse", t, lse[r], token.lse, 2 + token.largest);
    Values keys(at(count));
    double largest_score = 0, chosen = 0;
    bool is_finite = true;
    for (std::size_t e = 0; e < keys.size(); ++e) {
      const double found = scores[r * keys.size() + e];
      judge_->element(op.scores, "scores", t * count + static_cast<std::int64_t>(e), found, token.scores[e],
                      token.scores[e] * terms);
      keys[e] = found + bias[e];
      largest_score = std::fmax(largest_score, found);
      is_finite = is_finite && std::isfinite(keys[e]);
    }
    const std::int32_t* const names = experts.data() + t * k;
    const double rounding = 16 * 0x1p-24 * (largest_score * terms + largest_bias);
    if (!op.given && is_finite) judge_choice(*judge_, names, k, keys, rounding, t);
    for (std::int64_t j = 0; j < k; ++j) chosen += token.scores[at(names[j])];
    // Where all scores are 0, or as good as, their shares are what the exponential's last numbers make of them.
    if (op.rule.normalized && chosen < 1e-30) continue;
    const double factor = static_cast<double>(op.rule.factor) / (op.rule.normalized ? chosen : 1);
    for (std::int64_t j = 0; j < k; ++j) {
      const double expected = factor * token.scores[at(names[j])];
      judge_->element(op.weights, "weights", t * k + j, weights[r * at(k) + at(j)], expected,
                      std::abs(expected) * (1 + 2 * terms));
    }
  }
}

void AuditedBackend::execute(const op::RouteBackward& op) {
  real().run(op);
  if (op.dlogits.elements() == 0) return;
  const bool softmax = op.rule.score == ExpertScore::softmax;
  if (!judge_->begins(op.name, op.dlogits, cost_of_rows(op.dlogits, 6))) return;
  const std::int64_t tokens = op.scores.dim(0), count = op.scores.dim(1), k = op.experts.dim(1);
  const Places rows = some_rows(tokens, count);
  const Indices experts = read_indices(real(), op.experts), counts = read_indices(real(), op.counts);
  const Values scores = judge_->read_rows(op.scores, rows), lse = judge_->read_rows(one_a_row(op.lse), rows);
  const Values given = judge_->read_rows(op.dweights, rows), found = judge_->read_rows(op.dlogits, rows);
  const double scale = op.scale ? judge_->number(op.scale) : 1, n = static_cast<double>(tokens);
  const double balance =
      scale * static_cast<double>(op.balance) * static_cast<double>(count) / (n * n * static_cast<double>(k));
  const double z = scale * static_cast<double>(op.z) * 2 / n, factor = static_cast<double>(op.rule.factor);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int32_t* const names = experts.data() + rows[r] * k;
    const double *const s = scores.data() + r * at(count), *const by_weight = given.data() + r * at(k);
    Values by_score(at(count)), terms(at(count));
    for (std::size_t e = 0; e < by_score.size(); ++e) {
      by_score[e] = balance * counts[e];
      terms[e] = std::abs(by_score[e]);
    }
    double chosen = 0, weighted = 0, weighted_terms = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      chosen += s[names[j]];
      weighted += s[names[j]] * by_weight[j], weighted_terms += std::abs(s[names[j]] * by_weight[j]);
    }
    const double by = op.rule.normalized ? factor / chosen : factor;
    for (std::int64_t j = 0; j < k; ++j) {
      by_score[at(names[j])] += by * (by_weight[j] - (op.rule.normalized ? weighted / chosen : 0));
      terms[at(names[j])] +=
          std::abs(by) * (std::abs(by_weight[j]) + (op.rule.normalized ? weighted_terms / chosen : 0));
    }
    double inner = 0, inner_terms = 0;
    for (std::size_t e = 0; e < by_score.size(); ++e) inner += by_score[e] * s[e], inner_terms += terms[e] * s[e];
    for (std::size_t e = 0; e < by_score.size(); ++e) {
      const double of_z = z * lse[r];
      const double expected = softmax ? s[e] * (by_score[e] - inner + of_z) : by_score[e] * s[e] * (1 - s[e]);
      const double size = softmax ? s[e] * (terms[e] + inner_terms + std::abs(of_z)) : terms[e] * s[e];
      judge_->element(op.dlogits, "dlogits", rows[r] * count + static_cast<std::int64_t>(e), found[r * at(count) + e],
                      expected, size);
    }
  }
}

void AuditedBackend::execute(const op::RoutingLosses& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.scores, static_cast<double>(op.scores.elements()))) return;
  const std::int64_t tokens = op.scores.dim(0);
  const Values ones(at(tokens), 1), lse = judge_->read(op.lse), found = judge_->read(op.losses);
  const LineSums sums = inspector_of(real())->sum_matrix(op.scores, {}, {ones, ones}).of_columns;
  const Indices counts = read_indices(real(), op.counts);
  const double choices = std::accumulate(counts.begin(), counts.end(), 0.0), n = static_cast<double>(tokens);
  double balance = 0, squares = 0;
  for (std::size_t e = 0; e < counts.size(); ++e)
    balance += static_cast<double>(counts.size()) * (counts[e] / choices) * (sums.values[e] / n);
  for (const double x : lse) squares += x * x / n;
  judge_->element(op.losses, "losses", 0, found[0], balance, std::abs(balance));
  judge_->element(op.losses, "losses", 1, found[1], squares, squares);
}

// ---- rows ----------------------------------------------------------------------------------------------------------

void AuditedBackend::execute(const op::GroupRows& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.experts, 6 * static_cast<double>(op.experts.elements()))) return;
  const Indices experts = read_indices(real(), op.experts);
  const std::int64_t groups = op.counts.dim(0);
  Indices counts(at(groups)), offsets(at(groups) + 1), places(experts.size(), -1), sources(experts.size(), -1);
  const auto has_group = [&](std::int32_t e) { return e >= 0 && e < groups; };
  for (const std::int32_t e : experts)
    if (has_group(e)) ++counts[at(e)];
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  Indices next = offsets;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    if (!has_group(experts[i])) continue;
    places[i] = next[at(experts[i])]++;
    sources[at(places[i])] = static_cast<std::int32_t>(i);
  }
  judge_indices(*judge_, "counts", read_indices(real(), op.counts), counts);
  judge_indices(*judge_, "offsets", read_indices(real(), op.offsets), offsets);
  judge_indices(*judge_, "places", read_indices(real(), op.places), places);
  judge_indices(*judge_, "sources", read_indices(real(), op.sources), sources);
}

void AuditedBackend::execute(const op::GatherRows& op) {
  real().run(op);
  if (op.rows.elements() == 0 || !judge_->begins(op.name, op.rows, cost_of_rows(op.rows, 2))) return;
  const Indices sources = read_indices(real(), op.sources);
  const Places rows = some_rows(op.rows.dim(0), op.rows.dim(1));
  Places from;
  for (const std::int64_t r : rows)
    if (sources[at(r)] >= 0) from.push_back(sources[at(r)] / op.copies);
  const Values there = judge_->read_rows(op.x, from);
  const auto width = at(op.x.dim(1));
  std::size_t next = 0;  // of those that have a source
  Values expected;
  for (const std::int64_t r : rows) {
    const bool has_source = sources[at(r)] >= 0;
    for (std::size_t c = 0; c < width; ++c) expected.push_back(has_source ? there[next * width + c] : 0);
    next += has_source ? 1 : 0;
  }
  judge_->each(op.rows, "rows", audit::whole_rows(op.rows, rows),
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], 0.0); });
}

void AuditedBackend::execute(const op::CombineRows& op) {
  real().run(op);
  const auto k = op.places.dim(1);
  if (op.y.elements() == 0) return;
  if (!judge_->begins(op.name, op.y, cost_of_rows(op.y, 2 + static_cast<double>(k)), op.residual ? " residual" : ""))
    return;
  const Indices places = read_indices(real(), op.places);
  const Places tokens = some_rows(op.y.dim(0), op.y.dim(1));
  const auto width = at(op.y.dim(1));
  Values expected = op.residual ? judge_->read_rows(op.residual, tokens) : Values(tokens.size() * width),
         terms = expected;
  for (double& x : terms) x = std::abs(x);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    Places from;
    for (std::int64_t j = 0; j < k; ++j)
      if (const std::int32_t place = places[at(tokens[t] * k + j)]; place >= 0) from.push_back(place);
    const Values rows = judge_->read_rows(op.rows, from);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      expected[t * width + i % width] += rows[i];
      terms[t * width + i % width] += std::abs(rows[i]);
    }
  }
  judge_->each(op.y, "y", audit::whole_rows(op.y, tokens),
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], terms[i]); });
}

// ---- products by groups --------------------------------------------------------------------------------------------

namespace {

// Group e of a tensor with a matrix for each.
Tensor matrix_of(const Tensor& t, std::int64_t e) {
  const Tensor one = t.slice(0, e, 1);
  return {one.data, t.dtype, {t.dim(1), t.dim(2)}};
}

// All groups, or some: the first and the last, the largest, and, of those that are empty, as many as there happen to
// be.
Places some_groups(const Indices& offsets, bool all) {
  constexpr std::int64_t groups_of_many = 6;
  const auto count = static_cast<std::int64_t>(offsets.size()) - 1;
  Places groups = audit::some_of(count, all ? count : groups_of_many);
  if (all) return groups;
  std::int64_t largest = 0;
  const auto rows = [&](std::int64_t e) { return offsets[at(e) + 1] - offsets[at(e)]; };
  for (std::int64_t e = 0; e < count; ++e) largest = rows(e) > rows(largest) ? e : largest;
  groups.push_back(largest);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

double least_of(const Tensor& t, std::int64_t terms) {
  return t.dtype == DType::f16 ? 0x1p-25 * std::sqrt(static_cast<double>(terms)) : 0x1p-126;
}

}  // namespace

// Row r of c, with signs t: a[r, :] (b[e] t) + bias[e, :] t.
void AuditedBackend::execute(const op::GroupedMatmul& op) {
  real().run(op);
  if (op.c.elements() == 0) return;
  const std::int64_t inner = op.a.dim(1), width = op.c.dim(1), groups = op.b.dim(0);
  const auto elements = [](const Tensor& t) { return static_cast<double>(t.elements()); };
  const std::string signature = " k " + std::to_string(inner) + (op.transpose_b ? " transposed b" : "") +
                                (op.bias ? " bias" : "") + " groups " + std::to_string(groups);
  const double of_whole = elements(op.a) + elements(op.b) + elements(op.c);
  const bool whole = judge_->may_look_at_whole(op.name, op.c, of_whole, signature);
  // Groups may hold all of the rows.
  const double cost = whole ? 0 : elements(op.a) + elements(op.c) + 7 * elements(op.b) / static_cast<double>(groups);
  const bool is_new = judge_->is_new(op.name, op.c, signature);
  if (!judge_->begins(op.name, op.c, cost, signature)) return;
  if (is_new && !whole) judge_->leave_out_of_this("some groups of");
  const Indices offsets = read_indices(real(), op.offsets);
  const LineWeights signs = audit::random_signs(width, 1);
  const std::shared_ptr<Inspector> inspector = inspector_of(real());
  audit::Rounding rounding =
      audit::rounding_of_products(op.a.dtype, false, op.c.dtype, Judge::rounding_of(op.c.dtype), math_, inner);
  rounding.least = least_of(op.c, width);
  for (const std::int64_t e : some_groups(offsets, whole)) {
    const std::int64_t first = offsets[at(e)], count = offsets[at(e) + 1] - first;
    if (count == 0) continue;
    const Tensor b = matrix_of(op.b, e), right = op.transpose_b ? b.transposed(0, 1) : b;
    const LineSums of_b = inspector->sum_matrix(right, signs, {}).of_rows;
    const LineSums products = inspector->sum_matrix(op.a.slice(0, first, count), audit::weights_of(of_b), {}).of_rows;
    const LineSums found = inspector->sum_matrix(op.c.slice(0, first, count), signs, {}).of_rows;
    audit::Sum bias;
    if (op.bias) {
      const LineSums sums = inspector->sum_matrix(op.bias.slice(0, e, 1), signs, {}).of_rows;
      bias = audit::sum_at(sums, 0);
    }
    audit::Lines rows{.name = "row"};
    for (std::int64_t r = 0; r < count; ++r)
      rows.judge({first + r, audit::sum_at(found, at(r)), audit::sum_at(products, at(r)), {}, bias}, rounding);
    audit::decide(*judge_, "c", e, rows, audit::Lines{.name = "column"});
  }
}

// Row q of dw[e], with signs t: sum over r of dy[r, q] (x[r, :] t) (+ the old row's).
void AuditedBackend::execute(const op::GroupedWeightGradient& op) {
  const auto call = [&] { real().run(op); };
  if (!op.dw || op.dw.rank != 3 || !op.dw.contiguous() || op.dw.elements() == 0) return call();
  const std::int64_t inner = op.dw.dim(2), width = op.dw.dim(1), groups = op.dw.dim(0);
  if (op.offsets.dtype != DType::i32 || op.offsets.elements() != groups + 1) return call();
  const auto elements = [](const Tensor& t) { return static_cast<double>(t.elements()); };
  const std::string signature = std::string(op.accumulate ? " accumulate" : "") + (op.dbias ? " bias" : "") + " of " +
                                name_of(op.dy.dtype) + ' ' + std::to_string(op.dy.dim(0));
  const double of_dw = (op.accumulate ? 2 : 1) * elements(op.dw), of_rows = 2 * elements(op.dy) + elements(op.x);
  const bool whole = judge_->may_look_at_whole(op.name, op.dw, of_rows + of_dw, signature);
  const double cost = whole ? 0 : of_rows + 7 * of_dw / static_cast<double>(groups);
  const bool is_new = judge_->is_new(op.name, op.dw, signature);
  if (!judge_->begins(op.name, op.dw, cost, signature)) return call();
  if (is_new && !whole) judge_->leave_out_of_this("some groups of");
  const Indices offsets = read_indices(real(), op.offsets);
  const Places looked_at = some_groups(offsets, whole);
  const LineWeights signs = audit::random_signs(inner, 1);
  const std::shared_ptr<Inspector> inspector = inspector_of(real());
  std::vector<LineSums> before(looked_at.size());
  Values bias_before;
  for (std::size_t i = 0; op.accumulate && i < looked_at.size(); ++i)
    before[i] = inspector->sum_matrix(matrix_of(op.dw, looked_at[i]), signs, {}).of_rows;
  if (op.accumulate && op.dbias) bias_before = judge_->read(op.dbias);
  call();
  const Values biases = op.dbias ? judge_->read(op.dbias) : Values();
  for (std::size_t i = 0; i < looked_at.size(); ++i) {
    const std::int64_t e = looked_at[i], first = offsets[at(e)], count = offsets[at(e) + 1] - first;
    const LineSums found = inspector->sum_matrix(matrix_of(op.dw, e), signs, {}).of_rows;
    LineSums products, sums;
    if (count > 0) {
      const Tensor dy = op.dy.slice(0, first, count);
      const LineSums of_x = inspector->sum_matrix(op.x.slice(0, first, count), signs, {}).of_rows;
      products = inspector->sum_matrix(dy, {}, audit::weights_of(of_x)).of_columns;
      const Values ones(at(count), 1);
      if (op.dbias) sums = inspector->sum_matrix(dy, {}, {ones, ones}).of_columns;
    }
    audit::Rounding rounding =
        audit::rounding_of_products(op.dy.dtype, false, op.dw.dtype, Judge::rounding_of(op.dw.dtype), math_, count);
    rounding.least = least_of(op.dw, inner);
    audit::Lines rows{.name = "row"};
    for (std::int64_t q = 0; q < width; ++q)
      rows.judge({q, audit::sum_at(found, at(q)), audit::sum_at(products, at(q)), audit::sum_at(before[i], at(q)), {}},
                 rounding);
    audit::decide(*judge_, "dw", e, rows, audit::Lines{.name = "column"});
    for (std::int64_t q = 0; op.dbias && q < width; ++q) {
      const double old = bias_before.empty() ? 0 : bias_before[at(e * width + q)];
      const audit::Sum sum = audit::sum_at(sums, at(q));
      judge_->element(op.dbias, "dbias", e * width + q, biases[at(e * width + q)], old + sum.value,
                      std::abs(old) + std::sqrt(static_cast<double>(count)) * sum.norm);
    }
  }
}

// ---- gated units ---------------------------------------------------------------------------------------------------

namespace {

struct UnitValue {
  double h, by_gate, by_up;                    // h, and its derivatives
  double h_terms, by_gate_terms, by_up_terms;  // what rounding goes by
};

UnitValue unit_value(double gate, double up, const GatedUnit& unit) {
  const auto alpha = static_cast<double>(unit.alpha), offset = static_cast<double>(unit.offset);
  const auto limit = unit.limit > 0 ? static_cast<double>(unit.limit) : INFINITY;
  const double g = gate > limit ? limit : gate, u = (up > limit ? limit : up < -limit ? -limit : up) + offset;
  const double s = sigmoid(alpha * g), size = std::abs(u - offset) + std::abs(offset), steep = 1 + std::abs(alpha * g);
  UnitValue value{};
  value.h = g * s * u, value.h_terms = std::abs(g) * s * size * steep;
  if (!(gate > limit))
    value.by_gate = s * (1 + alpha * g * (1 - s)) * u, value.by_gate_terms = s * steep * steep * size;
  if (!(up > limit || up < -limit)) value.by_up = g * s, value.by_up_terms = std::abs(g) * s * steep;
  return value;
}

bool are_of_one_shape(std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const Tensor* t) { return t->rank == first.rank && t->shape == first.shape; });
}

}  // namespace

void AuditedBackend::execute(const op::WeightedGatedForward& op) {
  real().run(op);
  if (op.h.elements() == 0 || !judge_->begins(op.name, op.h, cost_of_rows(op.h, 4))) return;
  const Indices sources = read_indices(real(), op.sources);
  const Values weights = judge_->read(op.weights);
  const Places rows = some_rows(op.h.dim(0), op.h.dim(1));
  const Values gate = judge_->read_rows(op.gate, rows), up = judge_->read_rows(op.up, rows);
  const auto width = at(op.h.dim(1));
  judge_->each(op.h, "h", audit::whole_rows(op.h, rows), [&](std::size_t i, std::int64_t, std::size_t) {
    const std::int32_t source = sources[at(rows[i / width])];
    if (source < 0) return std::pair(0.0, 0.0);
    const UnitValue value = unit_value(gate[i], up[i], op.unit);
    return std::pair(weights[at(source)] * value.h, std::abs(weights[at(source)]) * value.h_terms);
  });
}

void AuditedBackend::execute(const op::WeightedGatedBackward& op) {
  const auto call = [&] { real().run(op); };
  if (op.gate.rank != 2 || op.gate.elements() == 0 || !are_of_one_shape({&op.gate, &op.up, &op.dh})) return call();
  if (!judge_->begins(op.name, op.gate, cost_of_rows(op.gate, 8))) return call();
  // dgate may be in the place of gate, dup in that of up.
  const Places rows = some_rows(op.gate.dim(0), op.gate.dim(1));
  const Values gate = judge_->read_rows(op.gate, rows), up = judge_->read_rows(op.up, rows);
  call();
  const Values dh = judge_->read_rows(op.dh, rows), weights = judge_->read(op.weights);
  const Values dweights = judge_->read(op.dweights);
  const Indices sources = read_indices(real(), op.sources);
  const auto width = at(op.gate.dim(1));
  Values by_weight(rows.size()), by_weight_terms(rows.size());
  const auto judge = [&](const Tensor& t, const char* tensor, const auto& value_of) {
    judge_->each(t, tensor, audit::whole_rows(t, rows), [&](std::size_t i, std::int64_t, std::size_t) {
      const std::int32_t source = sources[at(rows[i / width])];
      if (source < 0) return std::pair(0.0, 0.0);
      return value_of(unit_value(gate[i], up[i], op.unit), weights[at(source)], i);
    });
  };
  judge(op.dgate, "dgate", [&](const UnitValue& value, double weight, std::size_t i) {
    return std::pair(weight * dh[i] * value.by_gate, std::abs(weight * dh[i]) * value.by_gate_terms);
  });
  judge(op.dup, "dup", [&](const UnitValue& value, double weight, std::size_t i) {
    by_weight[i / width] += dh[i] * value.h, by_weight_terms[i / width] += std::abs(dh[i]) * value.h_terms;
    return std::pair(weight * dh[i] * value.by_up, std::abs(weight * dh[i]) * value.by_up_terms);
  });
  if (op.h)
    judge(op.h, "h", [&](const UnitValue& value, double weight, std::size_t) {
      return std::pair(weight * value.h, std::abs(weight) * value.h_terms);
    });
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (const std::int32_t source = sources[at(rows[r])]; source >= 0)
      judge_->element(op.dweights, "dweights", source, dweights[at(source)], by_weight[r], by_weight_terms[r]);
  std::vector<bool> has_row(dweights.size());
  for (const std::int32_t source : sources)
    if (source >= 0) has_row[at(source)] = true;
  for (std::size_t i = 0; i < dweights.size(); ++i)
    if (!has_row[i]) judge_->element(op.dweights, "dweights", static_cast<std::int64_t>(i), dweights[i], 0, 0);
}

}  // namespace assay::compute
