#include "assay/train/optimizer.hpp"

#include <algorithm>
#include <cassert>

namespace assay::train {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {
// Each of step and rates on its own aligned line.
constexpr std::size_t learning_rate_offset = 256, matrix_learning_rate_offset = 384;
}  // namespace

struct Optimizer::Kind {
  std::string_view name;
  std::size_t (*moments)(const OptimizerConfig&);
  // Enqueues the update of a stretch, of what is no matrix of Muon's.
  void (Optimizer::*update)(compute::Backend&, const LossScaler&, const ElementRange&) const;
  bool has_matrices;  // that are made orthogonal
};

const Optimizer::Kind& Optimizer::kind_of(std::string_view name) {
  static constexpr auto two = [](const OptimizerConfig&) -> std::size_t { return 2; };
  static constexpr auto momentum_alone = [](const OptimizerConfig& c) -> std::size_t {
    return c.momentum != 0 ? 1 : 0;
  };
  static constexpr Kind kinds[] = {{"adamw", two, &Optimizer::adamw, false},
                                   {"sgd", momentum_alone, &Optimizer::sgd, false},
                                   {"muon", two, &Optimizer::adamw_of_rest, true}};
  static_assert(std::size(kinds) == optimizer_names.size());
  for (const Kind& kind : kinds)
    if (kind.name == name) return kind;
  throw Error(ASSAY_INVALID_ARGUMENT, "there is no optimizer '" + std::string(name) + "'");
}

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterSet& parameters)
    : config_(config), kind_(kind_of(config.name)), parameters_(parameters), moments_(kind_.moments(config)) {
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
  if (!kind_.has_matrices) return;
  muon_.emplace(config_.muon, parameters_, ranges_);
  packed_rest_.assign(1, 0);
  for (const ElementRange& piece : muon_->rest()) {
    const std::int64_t end = packed_rest_.back() + piece.elements();
    packed_rest_.push_back((end + alignment_elements - 1) / alignment_elements * alignment_elements);
  }
}

ElementRange Optimizer::packed(const ElementRange& piece, std::size_t index) const {
  if (muon_ && index == 1) {
    const std::vector<ElementRange>& rest = muon_->rest();
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (piece.begin >= rest[i].begin && piece.end <= rest[i].end) {
        const std::int64_t shift = packed_rest_[i] - rest[i].begin;
        return {piece.begin + shift, piece.end + shift};
      }
    throw Error(ASSAY_INTERNAL, "elements " + std::to_string(piece.begin) + " to " + std::to_string(piece.end) +
                                    " have no second moment");
  }
  for (std::size_t i = 0; i < ranges_.size(); ++i)
    if (piece.begin >= ranges_[i].begin && piece.end <= ranges_[i].end) {
      const std::int64_t shift = packed_[i] - ranges_[i].begin;
      return {piece.begin + shift, piece.end + shift};
    }
  throw Error(ASSAY_INTERNAL, "elements " + std::to_string(piece.begin) + " to " + std::to_string(piece.end) +
                                  " lie in none of the optimizer's ranges");
}

std::int64_t Optimizer::moment_elements(std::size_t index) const {
  return muon_ && index == 1 ? packed_rest_.back() : packed_.back();
}

std::size_t Optimizer::moment_bytes() const {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < moments_; ++i) elements += moment_elements(i);
  return static_cast<std::size_t>(elements) * compute::size_of(parameters_.policy().state);
}

void Optimizer::bind(void* state) { state_ = state; }

void Optimizer::bind_scratch(void* scratch) {
  if (muon_) muon_->bind(scratch);
}

Tensor Optimizer::step_number() const { return Tensor(state_, DType::i64, {1}); }
Tensor Optimizer::learning_rate() const {
  return Tensor(static_cast<char*>(state_) + learning_rate_offset, DType::f32, {1});
}

Tensor Optimizer::matrix_learning_rate() const {
  return muon_ ? Tensor(static_cast<char*>(state_) + matrix_learning_rate_offset, DType::f32, {1}) : Tensor();
}

Tensor Optimizer::moment(std::size_t index) const {
  if (index >= moments_) return {};
  const DType dtype = parameters_.policy().state;
  const auto before = static_cast<std::size_t>(index * moment_elements(0));
  return Tensor(static_cast<char*>(state_) + scalar_bytes + before * compute::size_of(dtype), dtype,
                {moment_elements(index)});
}

Tensor Optimizer::moment_of(std::size_t index, const ElementRange& stretch) const {
  if (index >= moments_) return {};
  return moment(index).slice(0, packed(stretch, index).begin, stretch.elements());
}

Tensor Optimizer::copy_of(const ElementRange& stretch) const {
  const Tensor copy = parameters_.compute_copy();
  return copy ? copy.slice(0, stretch.begin, stretch.elements()) : Tensor();
}

void Optimizer::reset(compute::Backend& backend) const {
  backend.run(op::Fill{.x = step_number(), .value = 0});
  backend.run(op::Fill{.x = learning_rate(), .value = config_.lr});
  if (muon_) backend.run(op::Fill{.x = matrix_learning_rate(), .value = config_.muon.lr});
  for (std::size_t i = 0; i < moments_; ++i) backend.run(op::Fill{.x = moment(i), .value = 0.0});
}

void Optimizer::begin_step(compute::Backend& backend, const LossScaler& scaler) const {
  scaler.inspect(backend, parameters_.all_gradients());
  backend.run(op::Advance{.step = step_number(), .loss_scale = scaler.tensors()});
}

void Optimizer::step_stretch(compute::Backend& backend, const LossScaler& scaler, const ElementRange& range) const {
  (this->*kind_.update)(backend, scaler, range);
}

void Optimizer::end_step(compute::Backend& backend, const LossScaler& scaler) const {
  if (muon_.has_value()) muon_->step(backend, scaler, muon_state());
  scaler.update(backend);
}

void Optimizer::step_matrices(compute::Backend& backend, const LossScaler& scaler, const MatrixShape& shape) const {
  muon_->step(backend, scaler, muon_state(), shape);
}

Muon::State Optimizer::muon_state() const {
  return {.momentum = moment(0),
          .packed = [this](const ElementRange& piece) { return packed(piece).begin; },
          .learning_rate = matrix_learning_rate()};
}

void Optimizer::adamw(compute::Backend& backend, const LossScaler& scaler, const ElementRange& range) const {
  backend.run(op::AdamW{.parameter = parameters_.values(range),
                        .gradient = parameters_.gradients(range),
                        .m = moment_of(0, range),
                        .v = moment_of(1, range),
                        .step = step_number(),
                        .lr = learning_rate(),
                        .options = adamw_options(),
                        .compute_copy = copy_of(range),
                        .loss_scale = scaler.tensors()});
}

compute::AdamWOptions Optimizer::adamw_options() const {
  return {config_.beta1, config_.beta2, config_.eps, config_.weight_decay};
}

compute::WeightUpdate Optimizer::update_of(ParameterSet::Id id) const {
  if (kind_.update != &Optimizer::adamw || parameters_.policy().loss_scaling)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "an update within products is AdamW's, without a loss scale; expected optimizer "
                "adamw, and another precision than fp16");
  const Tensor value = parameters_.value(id);
  const std::int64_t begin = parameters_.all()[id].offset;
  const ElementRange range{begin, begin + parameters_.all()[id].elements()};
  const auto shaped = [&](const Tensor& flat) {
    if (!flat) return Tensor();
    Tensor t = value;
    t.data = flat.data, t.dtype = flat.dtype;
    return t;
  };
  return {.parameter = value,
          .m = shaped(moment_of(0, range)),
          .v = shaped(moment_of(1, range)),
          .step = step_number(),
          .lr = learning_rate(),
          .compute_copy = shaped(copy_of(range)),
          .options = adamw_options()};
}

void Optimizer::adamw_of_rest(compute::Backend& backend, const LossScaler& scaler, const ElementRange& range) const {
  for (const ElementRange& piece : muon_->rest()) {
    const ElementRange part{std::max(piece.begin, range.begin), std::min(piece.end, range.end)};
    if (part.begin < part.end) adamw(backend, scaler, part);
  }
}

void Optimizer::sgd(compute::Backend& backend, const LossScaler& scaler, const ElementRange& range) const {
  backend.run(op::Sgd{.parameter = parameters_.values(range),
                      .gradient = parameters_.gradients(range),
                      .momentum = moment_of(0, range),
                      .step = step_number(),
                      .lr = learning_rate(),
                      .options = {config_.momentum, config_.weight_decay},
                      .compute_copy = copy_of(range),
                      .loss_scale = scaler.tensors()});
}

void Optimizer::step(compute::Backend& backend, const LossScaler& scaler) const {
  begin_step(backend, scaler);
  for (std::size_t i = 0; i < ranges_.size(); ++i) step_range(backend, scaler, i);
  end_step(backend, scaler);
}

}  // namespace assay::train
