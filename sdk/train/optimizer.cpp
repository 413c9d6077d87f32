#include "assay/train/optimizer.hpp"

#include <algorithm>
#include <cassert>

namespace assay::train {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {
constexpr std::size_t learning_rate_offset = 256;  // each of step and lr on its own aligned line
}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterSet& parameters)
    : config_(config),
      parameters_(parameters),
      moments_(config.name == "adamw" ? 2
               : config.momentum != 0 ? 1
                                      : 0) {
  restrict_to({{0, parameters.arena_elements()}});
}

void Optimizer::restrict_to(std::vector<ElementRange> ranges) {
  ranges_ = std::move(ranges);
  packed_.assign(1, 0);
  for (const ElementRange& r : ranges_) {
    const bool aligned =
        r.begin % alignment_elements == 0 && (r.end % alignment_elements == 0 || r.end == parameters_.arena_elements());
    if (!aligned || r.begin < 0 || r.elements() < 0 || r.end > parameters_.arena_elements())
      throw Error(ASSAY_INVALID_ARGUMENT, "an optimizer cannot be restricted to elements " + std::to_string(r.begin) +
                                              " to " + std::to_string(r.end) + " of an arena of " +
                                              std::to_string(parameters_.arena_elements()) +
                                              "; ranges begin and end at multiples of 64");
    packed_.push_back(packed_.back() + r.elements());
  }
}

ElementRange Optimizer::packed(const ElementRange& piece) const {
  for (std::size_t i = 0; i < ranges_.size(); ++i)
    if (piece.begin >= ranges_[i].begin && piece.end <= ranges_[i].end) {
      const std::int64_t shift = packed_[i] - ranges_[i].begin;
      return {piece.begin + shift, piece.end + shift};
    }
  throw Error(ASSAY_INTERNAL, "elements " + std::to_string(piece.begin) + " to " + std::to_string(piece.end) +
                                  " lie in none of the optimizer's ranges");
}

std::size_t Optimizer::moment_bytes() const {
  return moments_ * static_cast<std::size_t>(packed_.back()) * compute::size_of(parameters_.policy().state);
}

void Optimizer::bind(void* state) { state_ = state; }

Tensor Optimizer::step_number() const { return Tensor(state_, DType::i64, {1}); }
Tensor Optimizer::learning_rate() const {
  return Tensor(static_cast<char*>(state_) + learning_rate_offset, DType::f32, {1});
}

Tensor Optimizer::moment(std::size_t index) const {
  if (index >= moments_) return {};
  const DType dtype = parameters_.policy().state;
  const std::int64_t n = packed_.back();
  char* base = static_cast<char*>(state_) + scalar_bytes;
  return Tensor(base + index * static_cast<std::size_t>(n) * compute::size_of(dtype), dtype, {n});
}

Tensor Optimizer::moment_of(std::size_t index, const ElementRange& stretch) const {
  if (index >= moments_) return {};
  return moment(index).slice(0, packed(stretch).begin, stretch.elements());
}

void Optimizer::reset(compute::Backend& backend) const {
  backend.run(op::Fill{.x = step_number(), .value = 0});
  backend.run(op::Fill{.x = learning_rate(), .value = config_.lr});
  for (std::size_t i = 0; i < moments_; ++i) backend.run(op::Fill{.x = moment(i), .value = 0.0});
}

void Optimizer::begin_step(compute::Backend& backend, const LossScaler& scaler) const {
  scaler.inspect(backend, parameters_.all_gradients());
  backend.run(op::Advance{.step = step_number(), .loss_scale = scaler.tensors()});
}

void Optimizer::step_stretch(compute::Backend& backend, const LossScaler& scaler, const ElementRange& range) const {
  const Tensor values = parameters_.values(range);
  const Tensor gradients = parameters_.gradients(range);
  const Tensor copy = parameters_.compute_copy();
  const Tensor copied = copy ? copy.slice(0, range.begin, range.elements()) : Tensor();
  if (config_.name == "adamw")
    backend.run(op::AdamW{.parameter = values,
                          .gradient = gradients,
                          .m = moment_of(0, range),
                          .v = moment_of(1, range),
                          .step = step_number(),
                          .lr = learning_rate(),
                          .options = {config_.beta1, config_.beta2, config_.eps, config_.weight_decay},
                          .compute_copy = copied,
                          .loss_scale = scaler.tensors()});
  else
    backend.run(op::Sgd{.parameter = values,
                        .gradient = gradients,
                        .momentum = moment_of(0, range),
                        .step = step_number(),
                        .lr = learning_rate(),
                        .options = {config_.momentum, config_.weight_decay},
                        .compute_copy = copied,
                        .loss_scale = scaler.tensors()});
}

void Optimizer::step(compute::Backend& backend, const LossScaler& scaler) const {
  begin_step(backend, scaler);
  for (std::size_t i = 0; i < ranges_.size(); ++i) step_range(backend, scaler, i);
  end_step(backend, scaler);
}

}  // namespace assay::train
