// The feed-forward of a mixture of experts: a router gives each token a weight for each of its experts, and
//
//   y = x + sum_j weight_j expert_j(rms_norm(x)) (+ shared(rms_norm(x)))
//
// where an expert is a gated unit between two products. No token is dropped: the N k rows are sorted by expert, in the
// order of the tokens, and each expert multiplies as many as it has. On one rank the host reads nothing of a step.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/compute/operations/experts.hpp>

#include <assay/train/buffer_plan.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::models {

struct DecoderConfig;

// Who chooses the experts of a token: the router by its scores; or a table that is drawn once, of equal counts, or of
// counts as skewed as Zipf's law. Weights are the router's in any case.
enum class Routing { learned, balanced, zipf };

struct ExpertsConfig {
  std::int64_t count = 0;               // 0: none; every feed-forward is dense
  std::int64_t per_token = 1;           // experts that a token goes to
  std::int64_t d_ff = 0;                // hidden states of one expert
  std::int64_t shared_d_ff = 0;         // of the SwiGLU that every token goes to, too; 0: none
  std::int64_t first_dense_layers = 0;  // that have a dense feed-forward instead
  compute::RoutingRule rule;
  compute::GatedUnit unit;
  bool biases = false;       // of the router and of the experts' products; the router's logits are then rounded
  bool choice_bias = false;  // one number added to each expert's score, only for the choice; it stays 0
  // The factors of the gradients of the two losses of op::RoutingLosses, of each layer and micro-batch; the reported
  // loss is only the cross-entropy.
  double balance_coefficient = 0, z_coefficient = 0;
  Routing routing = Routing::learned;
  // How many ranks share the experts of each layer ("expert parallel"), which one this is, and for how many times the
  // rows of balanced routing it has room (expert_travel.hpp). Each rank has different tokens, and the gradients of a
  // step are terms of a sum over the ranks; those of its experts already are that sum.
  std::int64_t rank = 0, ranks = 1;
  double capacity_factor = 2;
  // For a model with all experts: draws this many parts of them as ranks that share them draw theirs.
  std::int64_t drawn_parts = 1;
  double zipf_exponent = 1;  // expert e, counted from 0, has a weight of (e + 1)^-exponent

  bool any() const { return count > 0; }
  bool is_over_ranks() const { return ranks > 1; }
  std::int64_t own_count() const { return count / ranks; }
};

// Throws assay::Error: INVALID_ARGUMENT, or UNSUPPORTED where the form of the decoder has no experts.
void validate_experts(const DecoderConfig& config);

// Ids of the parameters of one layer, in the order of the arena.
struct ExpertParameters {
  train::ParameterSet::Id w2 = 0, w2_bias = 0, w13 = 0, w13_bias = 0, router = 0, router_bias = 0;
  train::ParameterSet::Id shared_w2 = 0, shared_w1 = 0, shared_w3 = 0;
};
// w2 [E / R, d_model, d_ff]; w13 [E / R, 2 d_ff, d_model], an expert's rows of the gate and then those of up. Initial
// values are normal with the deviation that one expert's matrix has by itself.
ExpertParameters add_expert_parameters(train::ParameterSet& set, const DecoderConfig& config,
                                       const std::string& layer_prefix);

// The arena's ranges of the parameters that only this rank has, in ascending order; empty if experts are not shared.
std::vector<train::ElementRange> own_expert_ranges(const DecoderConfig& config, const train::ParameterSet& set,
                                                   const std::vector<ExpertParameters>& by_layer);
// Draws the experts in `set` of ranks `first_rank` to `first_rank + ranks`, each rank's separately: ranks have
// different numbers, and a model with the experts of all ranks has the same as they.
void draw_experts(compute::Backend& backend, const train::ParameterSet& set,
                  const std::vector<ExpertParameters>& by_layer, const ExpertsConfig& config, std::int64_t first_rank,
                  std::int64_t ranks, std::uint64_t seed);

// All parameters of the experts of a layer, of all ranks, and those that one token uses.
std::int64_t expert_parameters(const DecoderConfig& config);
std::int64_t active_expert_parameters(const DecoderConfig& config);
// Of the whole model, where `own` are here of one whose experts are shared.
std::int64_t whole_parameters(const DecoderConfig& config, std::int64_t own);
// Of the whole model: what a token does not use is left out.
std::int64_t active_parameters(const DecoderConfig& config, std::int64_t all);

// Of one token, a multiply-add as two: the router, its experts, the shared one.
std::uint64_t expert_layer_flops(const DecoderConfig& config);

// Experts [micro_batches, tokens, per_token] by `routing`, which is not learned; of a token distinct, and balanced in
// each micro-batch. The same on every machine.
std::vector<std::int32_t> drawn_experts(const ExpertsConfig& config, std::int64_t tokens, std::int64_t micro_batches,
                                        std::uint64_t seed);

// The buffers of the choice and of the sorting, which backward reads, too; they are made once, also with checkpointing.
struct RoutingBuffers {
  using Id = train::BufferPlan::Id;
  Id logits = 0, scores = 0, lse = 0, experts = 0, weights = 0, counts = 0, offsets = 0, places = 0, sources = 0;
};
struct ExpertForward {
  using Id = train::BufferPlan::Id;
  Id rows = 0, gate_up = 0, hidden = 0, outputs = 0, weighted = 0;
  Id shared_gate_up = 0, shared_hidden = 0, shared_branch = 0;
};
struct ExpertBackward {
  using Id = train::BufferPlan::Id;
  Id doutputs = 0, dhidden = 0, hidden = 0, rows = 0, drows = 0, dgate = 0, dweights = 0, unused_dweights = 0;
  Id row_dweights = 0;  // of rows that came from other ranks, too
  Id dlogits = 0, drouted = 0, shared_hidden = 0, shared_dhidden = 0;
};

}  // namespace assay::models
