// Mixtures of experts: which experts a token goes to, its way to their rows and back, and products by groups of rows.
//
// N tokens, E experts, k of them for each token; M rows, grouped by expert: those of expert e are offsets[e] to
// offsets[e + 1], in the order of the tokens, and a group may be empty. Rows from offsets[E] on belong to no group;
// nothing reads them, and they are written as each operation says. Offsets lie on the device, so that a captured step
// takes any routing.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/operations/optimizers.hpp>

#include <array>
#include <cstdint>

namespace assay::compute {

// What an expert's score is made of. softmax: over all experts. sigmoid: of each by itself.
enum class ExpertScore : std::int32_t { softmax, sigmoid };

// How scores become the weights of a token's experts.
struct RoutingRule {
  ExpertScore score = ExpertScore::softmax;
  bool normalized = true;  // weights of a token add up to `factor`: each is divided by the sum of the chosen scores
  float factor = 1.0F;
};

// A gated unit, of numbers g (gate) and u (up):
//   h = g sigmoid(alpha g) (u + offset), after g = min(g, limit) and u = max(-limit, min(u, limit)) where limit > 0.
// SwiGLU is alpha 1, no limit, offset 0. Of gpt-oss: alpha 1.702, limit 7, offset 1.
struct GatedUnit {
  float alpha = 1.0F, limit = 0.0F, offset = 0.0F;
};

// An update by AdamW (op::AdamW) that follows a gradient while it is at hand. Empty tensors: none. Types and arithmetic
// are op::AdamW's; its gradient is the one that is written, rounded to its type.
struct WeightUpdate {
  Optional<InOut> parameter = {}, m = {}, v = {};  // of the gradient's shape
  Optional<In> step = {}, lr = {};
  Optional<Out> compute_copy = {};
  // i64 [1], where the gradient itself is left out: its address in the device's memory, to be written there as well; 0:
  // it is written nowhere. Read when the operation runs, so that the same captured step can show its gradients.
  Optional<In> gradient_place = {};
  AdamWOptions options = {};
  bool any() const { return static_cast<bool>(parameter); }
  ASSAY_TENSORS(parameter, m, v, step, lr, compute_copy, gradient_place)
};

namespace op {

// scores[t, e] = softmax or sigmoid of logits[t]; experts[t] = the k of the highest scores[t, e] + bias[e], the highest
// first, of equals the lower number first; weights[t, j] = factor s[t, j] (/ sum of s[t, :]) of the chosen scores s,
// without bias. lse[t] = log(sum_e exp(logits[t, e])). With `given` the experts are those, in that order, and distinct.
// Logits that are not finite: experts are still numbers below E and distinct.
struct RouteForward {
  In logits;           // T or fp32 [N, E]
  Optional<In> bias;   // fp32 [E]
  Optional<In> given;  // i32 [N, k]
  Out scores;          // fp32 [N, E]
  Out lse;             // fp32 [N]
  Out experts;         // i32 [N, k]
  Out weights;         // fp32 [N, k]
  RoutingRule rule = {};
  ASSAY_OPERATION("route_forward", logits, bias, given, scores, lse, experts, weights)
};
// The gradient by the logits, of the weights and of the two losses below:
//   ds[t, e] = the weights' gradients through the rule (of the chosen experts) + balance E counts[e] / (N N k)
//   dlogits[t] = ds through softmax or sigmoid + z 2 lse[t] softmax(logits[t]) / N
// all times `scale`, if given, but for dweights, which has it already. The choice itself has no gradient. With sigmoid
// z must be 0.
struct RouteBackward {
  In scores, lse;  // of the forward
  In experts;      // i32 [N, k]
  In counts;       // i32 [E], tokens that chose each expert, of op::GroupRows
  In dweights;     // fp32 [N, k]
  Out dlogits;     // T or fp32 [N, E]
  RoutingRule rule = {};
  float balance = 0.0F, z = 0.0F;
  Optional<In> scale = {};  // fp32 [1]
  ASSAY_OPERATION("route_backward", scores, lse, experts, counts, dweights, dlogits, scale)
};
// losses[0] = E sum_e (counts[e] / (N k)) (sum_t scores[t, e] / N), 1 where tokens and scores are balanced
// (Fedus et al. 2022, equation 4, of k experts as in Megatron-LM); losses[1] = sum_t lse[t]^2 / N (Zoph et al. 2022).
// The same sum in the same order every time.
struct RoutingLosses {
  In scores, lse;
  In counts;   // i32 [E], that add up to N k
  Out losses;  // fp32 [2]
  ASSAY_OPERATION("routing_losses", scores, lse, counts, losses)
};

// Sorts the N k choices by expert, in the order of the tokens. A number outside of 0 to E - 1 belongs to no group.
struct GroupRows {
  In experts;   // i32 [N, k]
  Out counts;   // i32 [E]
  Out offsets;  // i32 [E + 1]
  Out places;   // i32 [N, k]: the row of each choice; -1: it has none
  Out sources;  // i32 [N k]: the choice t k + j of each row; -1 from offsets[E] on
  ASSAY_OPERATION("group_rows", experts, counts, offsets, places, sources)
};
// rows[r, :] = x[sources[r] / copies, :], and 0 where sources[r] is -1.
struct GatherRows {
  In x;        // T [N, C]
  In sources;  // i32 [M], from -1 to N copies - 1
  Out rows;    // T [M, C]
  std::int64_t copies = 1;
  ASSAY_OPERATION("gather_rows", x, sources, rows)
};
// y[t, :] = sum_j rows[places[t, j], :] (+ residual[t, :]), j in its order, in fp32, rounded once; a place of -1 adds
// nothing. It is also the gradient of GatherRows by x.
struct CombineRows {
  In rows;                // T [M, C]
  In places;              // i32 [N, k], each row at most once
  Optional<In> residual;  // T [N, C]
  Out y;                  // T [N, C]
  ASSAY_OPERATION("combine_rows", rows, places, residual, y)
};

// A product for each group of rows, with the group's own matrix. c[r, :] = a[r, :] b[e]^T (+ bias[e, :]) with
// transpose_b, else a[r, :] b[e]; sums are fp32. Rows of no group: unspecified, but finite where memory was.
struct GroupedMatmul {
  In a;        // T [M, K]
  In b;        // T [E, Q, K] with transpose_b, else [E, K, Q]
  In offsets;  // i32 [E + 1]
  Out c;       // T [M, Q]
  bool transpose_b = false;
  Optional<In> bias = {};  // T [E, Q]
  ASSAY_OPERATION("grouped_matmul", a, b, offsets, c, bias)
};
// The gradient of each group's matrix: dw[e] (+)= sum over its rows r of dy[r, :]^T x[r, :]; dbias[e] (+)= of dy[r, :].
// Of an empty group 0, or unchanged with `accumulate`. The same sum in the same order every time. With `update` the
// matrices of all groups, empty ones too, are updated by it: what is read here must not be they.
struct GroupedWeightGradient {
  In dy;       // T [M, Q]
  In x;        // T [M, K]
  In offsets;  // i32 [E + 1]
  // T or fp32 [E, Q, K]. With update.gradient_place no memory, but type and shape, and no `accumulate`.
  Optional<OutOrSum> dw;
  Optional<OutOrSum> dbias = {};  // of the type of dw, [E, Q]
  bool accumulate = false;
  WeightUpdate update = {};
  ASSAY_OPERATION("grouped_weight_gradient", dy, x, offsets, dw, dbias, update)
};

// h[r, :] = w h', where h' is the gated unit of gate[r, :] and up[r, :], and w = weights[sources[r]]. As the product
// that follows is linear, a token's weight may as well be here as behind it. Rows whose source is -1: 0.
struct WeightedGatedForward {
  In gate, up;  // T [M, C]; honour row strides
  In weights;   // fp32, any shape
  In sources;   // i32 [M], from -1 to the number of weights - 1, none twice
  Out h;        // T [M, C]
  GatedUnit unit = {};
  ASSAY_OPERATION("weighted_gated_forward", gate, up, weights, sources, h)
};
// Its backward: dgate and dup of w dh[r, :], and dweights[sources[r]] = sum_c dh[r, c] h'[r, c]; a weight that no row
// has gets 0. Where g or u is beyond the limit its gradient is 0. Rows whose source is -1: 0. `h`, when it is given:
// as the forward made it.
struct WeightedGatedBackward {
  In gate, up, dh;
  In weights, sources;
  Out dgate, dup;  // honour row strides
  Out dweights;    // fp32, the shape of weights
  Optional<Out> h = {};
  GatedUnit unit = {};
  static constexpr auto in_place = std::to_array<InPlace>({{"dgate", "gate"}, {"dup", "up"}});
  ASSAY_OPERATION("weighted_gated_backward", gate, up, dh, weights, sources, dgate, dup, dweights, h)
};

// The update alone, of one that has any.
inline AdamW adamw_of(const GroupedWeightGradient& op) {
  const WeightUpdate& u = op.update;
  return {.parameter = u.parameter.flat(),
          .gradient = op.dw.flat(),
          .m = u.m.flat(),
          .v = u.v.flat(),
          .step = u.step,
          .lr = u.lr,
          .options = u.options,
          .compute_copy = u.compute_copy ? u.compute_copy.flat() : Tensor()};
}

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_EXPERTS(X) \
  X(RouteForward) X(RouteBackward) X(RoutingLosses) X(GroupRows) X(GatherRows) X(CombineRows) \
  X(GroupedMatmul) X(GroupedWeightGradient) X(WeightedGatedForward) X(WeightedGatedBackward)
// clang-format on
