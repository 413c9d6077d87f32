#include "assay/verification/path_check.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "gradient_scales.hpp"

namespace assay::verification {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {

// Nats. A loss near 0 is a difference of logits, and rounded as they are.
constexpr double least_loss = 1;

bool is_of_router(std::string_view name) { return name.ends_with("router.weight") || name.ends_with("router.bias"); }

// The name of the first parameter with a gradient that is not finite.
std::string nonfinite_gradient(const train::Trainer& trainer) {
  const train::ParameterSet& set = trainer.parameters();
  for (train::ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const Tensor flat = set.gradient(id).flat();
    constexpr std::int64_t chunk = std::int64_t{1} << 24;
    for (std::int64_t begin = 0; begin < flat.elements(); begin += chunk) {
      const std::vector<float> values =
          workload::download_f32(trainer.backend(), flat.slice(0, begin, std::min(chunk, flat.elements() - begin)));
      if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }))
        return set.all()[id].name;
    }
  }
  return "no parameter";
}

// The losses of tokens are off by what their logits are, which are of size one: in 16 bits by some 3 u each, u being
// half a unit in the last place (2^-8 of bf16, 2^-11 of fp16). The mean of n tokens has the root of n less of that;
// what all tokens have in common remains, 0.15 to 0.2 u. In fp32 sums of up to a thousand terms add ten times as much
// to one token (40 u), and the mean itself is rounded, of up to 8 nats (7.5 u). The most that was found is a third to a
// fifth: in fp32 9e-8 of 32 tokens and 6.6e-7 of 2, in bf16 6.4e-4 of 32 and 1.5e-3 of 2, in fp16 2.8e-4 of 1. tf32 has
// the digits of fp16, in inputs alone. In 8 bits 4e-3 was found, of few tokens: 0.06 u of e4m3, whose u is 2^-4.
double loss_tolerance(const workload::PrecisionPolicy& p, std::int64_t rows) {
  const double of_one = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, rows)));
  const auto of = [&](double u, double each, double in_common) { return u * std::max(in_common, each * of_one); };
  if (p.product_math == compute::ProductMath::tf32) return of(0x1p-11, 0, 0.2048);
  if (p.eight_bit_products) return of(0x1p-4, 0, 0.192);
  if (p.activation == DType::f16) return of(0x1p-11, 3.072, 0.2048);
  if (p.activation != DType::f32) return of(0x1p-8, 3.072, 0.1536);
  return of(0x1p-24, 40, 7.5);
}

}  // namespace

namespace {

// Where the figures below come from. A result that is rounded to p bits is off by half a unit in its last place at
// most, u = 2^-p of it; uniform errors of numbers spread over a binade have 0.43 u as their root mean square. Each
// rounding passes on to the gradients as it is, relative, since norms keep the size of the stream; many add up as a
// random walk does. A layer stores about 12 results on its way forward and 14 backward, and both paths round: a
// gradient is off by 0.43 u sqrt(2 x 26 x layers) = 3.1 u sqrt(layers), which is 1.2e-2 of bf16 and 1.5e-3 of fp16.
// Found, with decoders of 1 to 48 layers: 9e-3 on a CPU and 1.3e-2 on an H200, and 1.7e-3 of fp16.
constexpr double of_a_rounding = 0.43, stored_in_a_layer = 26;
double path_deviation(double u, std::int64_t layers) {
  return of_a_rounding * u * std::sqrt(2 * stored_in_a_layer * static_cast<double>(std::max<std::int64_t>(1, layers)));
}
// The worst of a hundred tensors is 2.5 deviations away at most, where they are as large as computed.
constexpr double safety = 2.5;

// In fp32 the partial sums of products count as well, with the root of their number. 1024 terms in 16 lanes are 64
// additions one after the other, each of half the last sum's size on average: 5 roundings for one, and twice that for
// 4096 terms. Found: 1e-6 sqrt(layers) on a CPU and 1.6e-6 on an H200; this is 1.8e-6.
constexpr double sums_in_fp32 = 10;
// Of fp16 gradients the small ones have a fixed step and not a relative one.
constexpr double small_fp16 = 1.9;
// tf32 rounds inputs to 11 bits and no results: of 21 products of a layer two inputs each, 2 x 21 roundings in place
// of 26. The paths round most inputs alike: 4.5e-4 sqrt(layers) was found, a third of what that makes.
constexpr double tf32_rounded = 42.0 / stored_in_a_layer, tf32_unlike = 1.0 / 3;

}  // namespace

PathTolerance path_tolerance(const workload::PrecisionPolicy& p, std::int64_t layers, std::int64_t rows) {
  const double depth = std::sqrt(static_cast<double>(std::max<std::int64_t>(1, layers)));
  // A block of 256 neighbours may be made of few tokens, whose errors are alike: up to four times that of its tensor
  // was found. In a factor the errors of independent elements cancel; those of a whole layer's scale remain.
  const auto of = [&](double gradient, double block = 5, double factor = 0.6, double few = 2) {
    return PathTolerance{loss_tolerance(p, rows), gradient, block * gradient, factor * gradient, few * gradient};
  };
  if (p.product_math == compute::ProductMath::tf32)
    return of(safety * tf32_unlike * std::sqrt(tf32_rounded) * path_deviation(0x1p-11, layers));
  // e4m3 has 4 bits: inputs of 21 products are off by 0.43 x 2^-4 each, and one scale serves a whole row. With 1 to 32
  // layers, 32 to 256 wide, on a CPU 0.1 was found of a tensor, 0.175 of a block, 0.035 of a factor, by sqrt(layers).
  if (p.eight_bit_products) return {loss_tolerance(p, rows), 0.25 * depth, 0.5 * depth, 0.1 * depth, 0.5 * depth};
  if (p.activation == DType::f16) return of(safety * small_fp16 * path_deviation(0x1p-11, layers));
  if (p.activation != DType::f32) return of(safety * path_deviation(0x1p-8, layers));
  // Of fp32 more shapes were looked at: roundings cancel in a factor (2.8e-7 was found), and in blocks less is found.
  return of(safety * sums_in_fp32 * path_deviation(0x1p-24, layers), 3, 0.25, 1);
}

// States of two runs that are e apart, relative, lie on different sides of 0 with probability 0.32 e: the density of a
// normal at 0, 0.4, times the mean of |e|. Half of all states pass a gradient, so that of its squares 0.64 e change in
// each of the layers: gradients differ by sqrt(0.64 e layers). The error of states grows through the layers up to
// path_deviation: on average it is two thirds of it. Found with encoder-decoders: a fifth to a half of that.
PathTolerance relu_path_tolerance(const workload::PrecisionPolicy& p, std::int64_t layers, std::int64_t rows) {
  constexpr double share_on_other_side = 0.64, on_average = 2.0 / 3;
  PathTolerance tolerance = path_tolerance(p, layers, rows);
  const double apart = on_average * tolerance.gradient / safety;
  const double gradient =
      std::sqrt(share_on_other_side * apart * static_cast<double>(std::max<std::int64_t>(1, layers)));
  // A row of a weight is the gradient of one state over all tokens, and half of the tokens pass one. A token that
  // changes its side is one of rows / 2 random terms, and three times the usual size where its loss is large. Found:
  // 0.0144 of 1020 tokens, where this is 0.13.
  const double of_one_state = 3 / std::sqrt(static_cast<double>(std::max<std::int64_t>(2, rows)) / 2);
  tolerance.gradient = std::min(gradient, 0.6);
  tolerance.block = std::max(3.2 * tolerance.gradient, std::min(1.0, of_one_state));
  tolerance.factor = 0.3 * tolerance.gradient;
  tolerance.few = 2 * tolerance.gradient;
  tolerance.loss = std::max(tolerance.loss, 1e-6);
  return tolerance;
}

double check_finite_loss(const train::Trainer& trainer) {
  const double loss = trainer.last_loss();
  if (!std::isfinite(loss)) throw Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + workload::number(loss));
  return loss;
}

std::string check_finite(const train::Trainer& trainer, const train::Model& model) {
  const double loss = check_finite_loss(trainer);
  float nonfinite = 0;
  const auto count = [&](const Tensor& x) {
    float found = 0;
    trainer.backend().run(op::CountNonfinite{.x = x, .out = model.loss()});
    trainer.backend().download(&found, model.loss());
    nonfinite += found;
  };
  count(trainer.parameters().all_gradients());
  // A dropped gradient is in the first moment.
  if (!trainer.parameters().dropped_gradients().empty()) count(trainer.optimizer().moment(0));
  if (nonfinite > 0 && trainer.scaler().active())
    return "last loss " + workload::number(loss, "%.5g") + ", " + workload::number(nonfinite, "%.0f") +
           " gradient elements overflowed in the last step, which the loss scale answers by skipping it; ";
  if (nonfinite > 0)
    throw Error(ASSAY_WRONG_RESULT,
                workload::number(nonfinite, "%.0f") + " gradient elements of the last step are not finite");
  return "last loss " + workload::number(loss, "%.5g") + ", all gradients finite; ";
}

double find_finite_gradients(train::Trainer& trainer, const std::function<void()>& step) {
  constexpr double lower_by = 32;
  if (!trainer.scaler().active()) return 1;
  compute::Backend& backend = trainer.backend();
  const Tensor count = trainer.scaler().tensors().nonfinite;
  for (double scale = verification_loss_scale;; scale /= lower_by) {
    trainer.start(scale);
    step();
    float nonfinite = 0;
    backend.run(op::CountNonfinite{.x = trainer.parameters().all_gradients(), .out = count});
    backend.download(&nonfinite, count);
    if (nonfinite == 0) return scale;
    if (scale <= 1)
      throw Error(ASSAY_WRONG_RESULT, "from the start the gradient of " + nonfinite_gradient(trainer) +
                                          " is not finite, whatever the loss scale");
  }
}

std::string compare_paths(const std::string& what, double timed_loss, double reference_loss,
                          const std::vector<BlockDifference>& differences, const PathTolerance& tolerance,
                          const train::ParameterSet& parameters, const std::string& last_sample) {
  const std::vector<double> scales = gradient_scales(differences, parameters, tolerance);
  compute::Worst whole, block, factor;  // block and factor: by what is allowed
  std::vector<double> blocks, factors, allowed_factors;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    whole.add(differences[i].whole(scales[i]), i);
    blocks.push_back(differences[i].worst_block(scales[i]));
    block.add(blocks.back() / tolerance.block, i);
    factors.push_back(differences[i].factor(scales[i]));
    // The roundings of n elements cancel to 1 / sqrt(n) of their norm.
    auto roundings = static_cast<double>(differences[i].elements());
    if (tolerance.routed > 0 && i < parameters.all().size() && is_of_router(parameters.all()[i].name))
      roundings = std::min(roundings, tolerance.routed);
    allowed_factors.push_back(tolerance.factor + tolerance.few / std::sqrt(std::max(1.0, roundings)));
    factor.add(factors.back() / allowed_factors.back(), i);
  }
  compute::Difference loss(least_loss);
  loss.add(timed_loss, reference_loss);
  const bool gradients = differences.size() > 1;
  const auto found = [&](const std::string& figure, double value, std::size_t index, double allowed) {
    const bool is_parameter = gradients && index < parameters.all().size();
    return figure + workload::number(value) + " (" + (is_parameter ? parameters.all()[index].name : last_sample) +
           "; tolerance " + workload::number(allowed) + ")";
  };
  std::string text = what + ": loss differs by " + workload::number(loss.relative()) + " (tolerance " +
                     workload::number(tolerance.loss) + ")";
  if (!differences.empty())
    text += std::string(gradients ? ", gradients" : ", logits") +
            found(" by at most ", whole.value(), whole.index(), tolerance.gradient) +
            found(", " + std::to_string(BlockDifference::block_elements) + " neighbours by ", blocks[block.index()],
                  block.index(), tolerance.block) +
            found(", by a factor of 1 +- ", factors[factor.index()], factor.index(), allowed_factors[factor.index()]);
  if (!(loss.relative() <= tolerance.loss && whole.within(tolerance.gradient) && block.within(1) && factor.within(1)))
    throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

Outcome outcome_of_gradients(compute::Backend& backend, const train::ParameterSet& set, double loss,
                             std::int64_t most_on_host) {
  Outcome outcome{.loss = loss};
  const auto inspector = compute::inspector_of(backend);
  for (train::ParameterSet::Id id = 0; id < set.all().size(); ++id)
    outcome.kept.push_back(inspector->keep(set.gradient(id), sampled_elements(set, id, most_on_host)));
  return outcome;
}

bool move_to_host(compute::Backend& backend, const Outcome& outcome) {
  bool has_freed = false;
  for (const auto& kept : outcome.kept) has_freed = kept->move_to_host() || has_freed;
  compute::inspector_of(backend)->release_memory();  // which the moving has taken
  return has_freed;
}

std::string share_of(const Outcome& outcome, const train::ParameterSet& set) {
  std::int64_t kept = 0;
  for (train::ParameterSet::Id id = 0; id < std::min(set.all().size(), outcome.kept.size()); ++id)
    kept += outcome.kept[id]->elements();
  return share_text(static_cast<double>(kept) / static_cast<double>(std::max<std::int64_t>(1, set.parameter_count())));
}

std::string compare_paths(const std::string& what, compute::Backend& backend, const Outcome& timed,
                          double reference_loss, const TensorOf& reference, const PathTolerance& tolerance,
                          const train::ParameterSet& parameters, const std::string& last_sample) {
  const auto inspector = compute::inspector_of(backend);
  std::vector<BlockDifference> differences;
  for (std::size_t i = 0; i < timed.kept.size(); ++i)
    differences.emplace_back(
        with_room_of(backend, timed, [&] { return inspector->difference(*timed.kept[i], reference(i)); }));
  return compare_paths(what, timed.loss, reference_loss, differences, tolerance, parameters, last_sample);
}

}  // namespace assay::verification
