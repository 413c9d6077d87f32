#include "assay/models/experts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/models/decoder.hpp"

namespace assay::models {

namespace {

// Finaliser of SplitMix64 over a counter: the same numbers on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t limit) {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t x = state_;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % limit;
  }

 private:
  std::uint64_t state_;
};

std::vector<std::int64_t> shuffled(std::int64_t count, Draws& draws) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
  return order;
}

// Tokens in a shuffled order take the next experts in turn.
void draw_balanced(std::vector<std::int32_t>& experts, const ExpertsConfig& c, std::int64_t tokens, Draws& draws) {
  const std::vector<std::int64_t> names = shuffled(c.count, draws), order = shuffled(tokens, draws);
  for (std::int64_t i = 0; i < tokens; ++i)
    for (std::int64_t j = 0; j < c.per_token; ++j)
      experts[static_cast<std::size_t>(order[static_cast<std::size_t>(i)] * c.per_token + j)] =
          static_cast<std::int32_t>(names[static_cast<std::size_t>((i * c.per_token + j) % c.count)]);
}

// One after the other by weight, of those that the token does not have. Weights are integers, so that a last digit of
// the host's power function decides nothing.
void draw_zipf(std::vector<std::int32_t>& experts, const ExpertsConfig& c, std::int64_t tokens, Draws& draws) {
  std::vector<std::uint64_t> weights;
  for (std::int64_t e = 0; e < c.count; ++e)
    weights.push_back(static_cast<std::uint64_t>(
        std::max(1.0, std::round(0x1p20 * std::pow(static_cast<double>(e + 1), -c.zipf_exponent)))));
  const std::uint64_t total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  std::vector<bool> has(weights.size());
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::fill(has.begin(), has.end(), false);
    std::uint64_t left = total;
    for (std::int64_t j = 0; j < c.per_token; ++j) {
      std::uint64_t at = draws.below(left);
      std::size_t e = 0;
      for (;; ++e) {
        if (has[e]) continue;
        if (at < weights[e]) break;
        at -= weights[e];
      }
      has[e] = true, left -= weights[e];
      experts[static_cast<std::size_t>(t * c.per_token + j)] = static_cast<std::int32_t>(e);
    }
  }
}

std::int64_t one_expert(const DecoderConfig& c) {
  const std::int64_t biases = c.experts.biases ? c.d_model + 2 * c.experts.d_ff : 0;
  return 3 * c.d_model * c.experts.d_ff + biases;
}

}  // namespace

void validate_experts(const DecoderConfig& c) {
  const ExpertsConfig& e = c.experts;
  const auto fail = [](const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, text); };
  const auto refuse = [](const char* text) {
    throw Error(ASSAY_UNSUPPORTED, std::string("a decoder with experts: ") + text);
  };
  if (e.per_token < 1 || e.per_token > e.count)
    fail("experts_per_token " + std::to_string(e.per_token) + "; expected 1 to " + std::to_string(e.count) +
         ", the number of experts");
  if (e.d_ff < 1 || e.shared_d_ff < 0)
    fail("expert_d_ff " + std::to_string(e.d_ff) + " and shared_d_ff " + std::to_string(e.shared_d_ff) +
         "; expected at least 1, and at least 0");
  if (e.first_dense_layers < 0 || e.first_dense_layers > c.layers)
    fail("first_dense_layers " + std::to_string(e.first_dense_layers) + "; expected 0 to " + std::to_string(c.layers) +
         ", the number of layers");
  if (e.per_token == 1 && e.rule.normalized && e.balance_coefficient == 0 && e.z_coefficient == 0)
    fail(
        "the normalized weight of one expert is the same whatever the router says, which would learn nothing; expected "
        "normalized_weights = false, experts_per_token = 2 or more, or a coefficient of a loss of the router");
  if (e.z_coefficient != 0 && e.rule.score == compute::ExpertScore::sigmoid)
    fail("the z loss is of softmax scores; expected z_coefficient = 0 or score = \"softmax\"");
  if (e.ranks < 1 || e.rank < 0 || e.rank >= e.ranks)
    fail("there is no rank " + std::to_string(e.rank) + " of " + std::to_string(e.ranks));
  if (e.count % e.ranks != 0)
    fail("experts " + std::to_string(e.count) + " is not a multiple of the " + std::to_string(e.ranks) +
         " ranks that share them");
  if (e.is_over_ranks() && c.checkpointing)
    refuse("rows that came from other ranks are not made again; expected activation_checkpointing = false");
  if (c.is_split()) refuse("they are all on one rank; expected no split of the products over ranks");
  if (c.side_lane) refuse("gradients are made on one lane; expected side_lane = false");
  if (c.precision.eight_bit_products) refuse("experts have no 8-bit products; expected a precision other than fp8");
  if (!c.backward) refuse("a step has a backward; expected a pass with one");
}

ExpertParameters add_expert_parameters(train::ParameterSet& set, const DecoderConfig& c, const std::string& prefix) {
  const std::int64_t count = c.experts.own_count(), d = c.d_model, ff = c.experts.d_ff, shared = c.experts.shared_d_ff;
  const auto deviation = [](std::int64_t out, std::int64_t in) {
    return std::sqrt(2.0F / static_cast<float>(in + out));
  };
  const auto add = [&](const char* name, std::vector<std::int64_t> dims, float std, std::int64_t row_parts = 1) {
    return set.add({{prefix + "moe." + name, std::move(dims), 0, 0.0F, std, row_parts}});
  };
  constexpr std::int64_t no_matrix = 0, gate_and_up = 2;
  ExpertParameters p;
  p.w2 = add("experts.w2.weight", {count, d, ff}, deviation(d, ff));
  if (c.experts.biases) p.w2_bias = add("experts.w2.bias", {count, d}, 0, no_matrix);
  p.w13 = add("experts.w13.weight", {count, 2 * ff, d}, deviation(ff, d), gate_and_up);
  if (c.experts.biases) p.w13_bias = add("experts.w13.bias", {count, 2 * ff}, 0, no_matrix);
  p.router = add("router.weight", {c.experts.count, d}, deviation(c.experts.count, d));
  if (c.experts.biases) p.router_bias = add("router.bias", {c.experts.count}, 0);
  if (shared == 0) return p;
  p.shared_w2 = add("shared.w2.weight", {d, shared}, deviation(d, shared));
  p.shared_w1 = set.add({{prefix + "moe.shared.w1.weight", {shared, d}, 0, 0.0F, deviation(shared, d)},
                         {prefix + "moe.shared.w3.weight", {shared, d}, 0, 0.0F, deviation(shared, d)}});
  p.shared_w3 = p.shared_w1 + 1;
  return p;
}

std::vector<train::ElementRange> own_expert_ranges(const DecoderConfig& c, const train::ParameterSet& set,
                                                   const std::vector<ExpertParameters>& by_layer) {
  std::vector<train::ElementRange> ranges;
  if (!c.experts.is_over_ranks()) return ranges;
  for (const ExpertParameters& p : by_layer)
    ranges.push_back({set.elements_before(p.w2), set.elements_before((c.experts.biases ? p.w13_bias : p.w13) + 1)});
  // Layers lie in the order of backward.
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return ranges;
}

void draw_experts(compute::Backend& backend, const train::ParameterSet& set,
                  const std::vector<ExpertParameters>& by_layer, const ExpertsConfig& config, std::int64_t first_rank,
                  std::int64_t ranks, std::uint64_t seed) {
  // Beyond the streams of parameters, which are their numbers, of tokens and of labels.
  constexpr std::uint64_t streams_of_a_rank = std::uint64_t{1} << 24;
  for (const ExpertParameters& p : by_layer)
    for (const train::ParameterSet::Id id : {p.w2, p.w13}) {
      const compute::Tensor whole =
          set.value(id).view({ranks, config.own_count(), set.value(id).dim(1), set.value(id).dim(2)});
      for (std::int64_t r = 0; r < ranks; ++r)
        backend.run(
            compute::op::RandomNormal{.x = whole.slice(0, r, 1),
                                      .seed = seed,
                                      .stream = static_cast<std::uint64_t>(first_rank + r) * streams_of_a_rank + id,
                                      .mean = set.all()[id].init_mean,
                                      .std = set.all()[id].init_std});
    }
  set.refresh_compute_copy(backend);
}

std::int64_t whole_parameters(const DecoderConfig& c, std::int64_t own) {
  return own + c.expert_layers() * (c.experts.count - c.experts.own_count()) * one_expert(c);
}

std::int64_t expert_parameters(const DecoderConfig& c) { return c.experts.count * one_expert(c); }
std::int64_t active_expert_parameters(const DecoderConfig& c) { return c.experts.per_token * one_expert(c); }
std::int64_t active_parameters(const DecoderConfig& c, std::int64_t all) {
  return all - c.expert_layers() * (expert_parameters(c) - active_expert_parameters(c));
}

std::uint64_t expert_layer_flops(const DecoderConfig& c) {
  const ExpertsConfig& e = c.experts;
  return 2 * static_cast<std::uint64_t>(c.d_model * (e.count + 3 * (e.per_token * e.d_ff + e.shared_d_ff)));
}

std::vector<std::int32_t> drawn_experts(const ExpertsConfig& c, std::int64_t tokens, std::int64_t micro_batches,
                                        std::uint64_t seed) {
  std::vector<std::int32_t> all;
  Draws draws(seed);
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    std::vector<std::int32_t> experts(static_cast<std::size_t>(tokens * c.per_token));
    if (c.routing == Routing::balanced) draw_balanced(experts, c, tokens, draws);
    if (c.routing == Routing::zipf) draw_zipf(experts, c, tokens, draws);
    all.insert(all.end(), experts.begin(), experts.end());
  }
  return all;
}

}  // namespace assay::models
