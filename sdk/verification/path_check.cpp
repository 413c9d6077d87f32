#include "assay/verification/path_check.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/verification/block_difference.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

namespace assay::verification {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {

// Nats. A loss near 0 is a difference of logits, and rounded as they are.
constexpr double least_loss = 1;

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

// By sample: the root mean square that rounding errors are in proportion to where a gradient is nearly zero because its
// terms cancel, as those of queries and keys are where there is one key. Parameters of a group are gradients of one
// product's parts, made of terms of like size. Of a group of biases the keys' is nearly zero at any length: it moves
// all scores of a query alike, but for the rotation.
std::vector<double> scales_of(const std::vector<BlockDifference>& differences, const train::ParameterSet& parameters) {
  constexpr double share_of_group = 0.1, share_of_all = 1e-2;
  const std::size_t count = std::min(differences.size(), parameters.all().size());
  const auto mean_square = [&](std::size_t begin, std::size_t end) {
    double squares = 0, elements = 0;
    for (std::size_t i = begin; i < end; ++i) {
      squares += differences[i].expected_squares();
      elements += static_cast<double>(differences[i].elements());
    }
    return elements > 0 ? std::sqrt(squares / elements) : 0;
  };
  const double of_all = share_of_all * mean_square(0, count);
  std::vector<double> scales(differences.size(), of_all);
  const std::vector<train::ParameterSet::Id>& groups = parameters.group_begins();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t end = std::min(count, g + 1 < groups.size() ? groups[g + 1] : count);
    const bool of_biases = end > groups[g] + 1 && parameters.all()[groups[g]].dims.size() == 1;
    const double of_group = (of_biases ? 1 : share_of_group) * mean_square(std::min(groups[g], end), end);
    for (std::size_t i = groups[g]; i < end; ++i) scales[i] = compute::worse(of_group, of_all);
  }
  return scales;
}

// The loss of 32 to 2200 tokens of decoders is off by up to 9e-8 in fp32, which has the rounding of its last sum, 6e-8
// of a nat times up to 8 nats, as the least that it can be; that of 2 tokens by up to 6.6e-7: the mean over tokens has
// the root of their number less than one of them. In bf16 that of 32 tokens was off by 6.4e-4, and that of 48, of
// decoders split over 2 ranks, by up to 5.2e-4, which is 3.6e-3 over the root of their number. In fp16, by a CPU that
// rounds as it does, those of 1, 2 and 4 tokens by up to 2.8e-4, 1.3e-4 and 1.7e-4, an eighth of bf16's, as its
// rounding is. Encoder-decoders scatter as decoders do: of 1 and 2 tokens by up to 2.5e-4 in fp16 and 1.5e-3 in bf16.
// In 8 bits 4e-3 was found, of few tokens.
double loss_tolerance(const workload::PrecisionPolicy& p, std::int64_t rows) {
  const double of_one = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, rows)));
  if (p.product_math == compute::ProductMath::tf32) return 1e-4;
  if (p.eight_bit_products) return 0.012;
  if (p.activation == DType::f16) return std::max(1e-4, 1.5e-3 * of_one);
  if (p.activation != DType::f32) return std::max(6e-4, 1.2e-2 * of_one);
  return std::max(4.5e-7, 2.4e-6 * of_one);
}

}  // namespace

// Errors of rounding add up as those of a random walk do, over the layers between a parameter and the loss. Found with
// decoders of 1 to 48 layers, divided by the root of their number: in fp32 1e-6 on a CPU and 1.6e-6 on an H200, in bf16
// 9e-3 and 1.3e-2, in fp16 1.7e-3, in tf32 4.5e-4. A block is off by up to four times as much as its tensor. Of a
// factor less is found, since roundings cancel in it: in fp32 2.8e-7 on a CPU, of decoders of 1 to 48 layers, and as
// many roundings as the root of a small tensor's elements leaves of them. Of 16 bits and tf32 that was not measured
// over as many shapes, and has more room. In 8 bits, of decoders of 1 to 32 layers, 32 to 256 wide, on a CPU: 0.1 of a
// tensor, 0.175 of a block, 0.035 of a factor.
PathTolerance path_tolerance(const workload::PrecisionPolicy& p, std::int64_t layers, std::int64_t rows) {
  const double depth = std::sqrt(static_cast<double>(std::max<std::int64_t>(1, layers)));
  const auto of = [&](double gradient) {
    return PathTolerance{loss_tolerance(p, rows), gradient * depth, 5 * gradient * depth, 0.6 * gradient * depth,
                         2 * gradient * depth};
  };
  if (p.product_math == compute::ProductMath::tf32) return of(2.2e-3);
  if (p.eight_bit_products) return {loss_tolerance(p, rows), 0.25 * depth, 0.5 * depth, 0.1 * depth, 0.5 * depth};
  if (p.activation == DType::f16) return of(7e-3);
  if (p.activation != DType::f32) return of(3e-2);
  PathTolerance fp32 = of(4.5e-6);
  fp32.block = 3 * fp32.gradient;
  fp32.factor = 0.25 * fp32.gradient;
  fp32.few = fp32.gradient;
  return fp32;
}

// Found with encoder-decoders: in fp16 on an H200 0.022, 0.043, 0.099 and 0.265 of 6, 12, 24 and 48 layers, in bf16 on
// a CPU 0.06 to 0.08 of 4 to 9. A difference goes with the root of a rounding: in fp32, which rounds 2^13 times finer
// than fp16, it is 2^-6.5 of that; but one state of a small model that changes its side is more.
PathTolerance relu_path_tolerance(const workload::PrecisionPolicy& p, std::int64_t layers, std::int64_t rows) {
  const auto of = [&](double gradient) {
    return PathTolerance{loss_tolerance(p, rows), gradient, 3.2 * gradient, 0.3 * gradient, 2 * gradient};
  };
  const auto depth = static_cast<double>(layers);
  const double fp16 = 0.04 + 0.011 * depth;
  if (p.product_math == compute::ProductMath::tf32 || p.activation == DType::f16) return of(fp16);
  if (p.activation != DType::f32) return of(0.2 + 0.012 * depth);
  // Found: 0.017 on an H200, of 6 layers over 65,000 tokens, where the gradient as a whole is off by 0.0005, and 0.007
  // on a CPU over 1,000.
  PathTolerance fp32 = of(std::max(2e-3, 0.011 * fp16));
  fp32.loss = std::max(fp32.loss, 1e-6);
  fp32.block_of_few_tokens = 0.05;
  return fp32;
}

bool has_few_relu_states(const workload::PrecisionPolicy& p, double states) {
  constexpr double near_zero = 4e-7, most_expected = 0.3;
  return p.activation == DType::f32 && p.product_math == compute::ProductMath::exact &&
         near_zero * states <= most_expected;
}

// Found on a CPU with encoder-decoders of 2 to 24 layers and widths of 32 to 256: gradients up to 8.2e-7 apart, blocks
// 3.3e-6, factors 5e-7, losses not at all.
PathTolerance few_states_path_tolerance(const workload::PrecisionPolicy& p, std::int64_t layers, std::int64_t rows,
                                        double states) {
  if (!has_few_relu_states(p, states)) return relu_path_tolerance(p, layers, rows);
  const double gradient = 4e-6 * std::max(1.0, std::sqrt(static_cast<double>(layers) / 24));
  return {loss_tolerance(p, rows), gradient, 3.2 * gradient, 0.3 * gradient, gradient};
}

double check_finite_loss(const train::Trainer& trainer) {
  const double loss = trainer.last_loss();
  if (!std::isfinite(loss)) throw Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + workload::number(loss));
  return loss;
}

std::string check_finite(const train::Trainer& trainer, const train::Model& model) {
  const double loss = check_finite_loss(trainer);
  float nonfinite = 0;
  trainer.backend().run(op::CountNonfinite{.x = trainer.parameters().all_gradients(), .out = model.loss()});
  trainer.backend().download(&nonfinite, model.loss());
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

std::string compare_paths(const std::string& what, const Outcome& timed, double reference_loss,
                          const SampleOf& reference, const PathTolerance& tolerance,
                          const train::ParameterSet& parameters, const std::string& last_sample) {
  std::vector<BlockDifference> differences;
  for (std::size_t i = 0; i < timed.samples.size(); ++i) differences.emplace_back(timed.samples[i], reference(i));
  const std::vector<double> scales = scales_of(differences, parameters);
  compute::Worst whole, block, factor;  // block and factor: by what is allowed
  std::vector<double> blocks, allowed_blocks, factors, allowed_factors;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    whole.add(differences[i].whole(scales[i]), i);
    blocks.push_back(differences[i].worst_block(scales[i]));
    allowed_blocks.push_back(static_cast<std::int64_t>(i) == tolerance.few_tokens
                                 ? std::max(tolerance.block, tolerance.block_of_few_tokens)
                                 : tolerance.block);
    block.add(blocks.back() / allowed_blocks.back(), i);
    factors.push_back(differences[i].factor(scales[i]));
    // The roundings of n elements cancel to 1 / sqrt(n) of their norm.
    allowed_factors.push_back(tolerance.factor +
                              tolerance.few / std::sqrt(std::max(1.0, double(differences[i].elements()))));
    factor.add(factors.back() / allowed_factors.back(), i);
  }
  compute::Difference loss(least_loss);
  loss.add(timed.loss, reference_loss);
  const bool gradients = timed.samples.size() > 1;
  const auto found = [&](const std::string& figure, double value, std::size_t index, double allowed) {
    const bool is_parameter = gradients && index < parameters.all().size();
    return figure + workload::number(value) + " (" + (is_parameter ? parameters.all()[index].name : last_sample) +
           "; tolerance " + workload::number(allowed) + ")";
  };
  std::string text = what + ": loss differs by " + workload::number(loss.relative()) + " (tolerance " +
                     workload::number(tolerance.loss) + ")";
  if (!timed.samples.empty())
    text += std::string(gradients ? ", gradients" : ", logits") +
            found(" by at most ", whole.value(), whole.index(), tolerance.gradient) +
            found(", " + std::to_string(BlockDifference::block_elements) + " neighbours by ", blocks[block.index()],
                  block.index(), allowed_blocks[block.index()]) +
            found(", by a factor of 1 +- ", factors[factor.index()], factor.index(), allowed_factors[factor.index()]);
  if (!(loss.relative() <= tolerance.loss && whole.within(tolerance.gradient) && block.within(1) && factor.within(1)))
    throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

std::string compare_paths(const std::string& what, const Outcome& timed, const Outcome& reference,
                          const PathTolerance& tolerance, const train::ParameterSet& parameters,
                          const std::string& last_sample) {
  if (timed.samples.size() != reference.samples.size())
    throw Error(ASSAY_INTERNAL, what + ": " + std::to_string(timed.samples.size()) + " tensors are held against " +
                                    std::to_string(reference.samples.size()));
  return compare_paths(
      what, timed, reference.loss, [&](std::size_t i) { return reference.samples[i]; }, tolerance, parameters,
      last_sample);
}

}  // namespace assay::verification
