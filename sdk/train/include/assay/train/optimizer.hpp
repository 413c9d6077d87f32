// AdamW and SGD over a parameter arena, whole in one pass or only pieces of it; Muon over its matrices (muon.hpp), and
// AdamW over the rest. The step number and the learning rate live in device memory: a captured step reads them there.
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/plugin.hpp>

#include <array>
#include <assay/train/loss_scaler.hpp>
#include <assay/train/muon.hpp>
#include <assay/train/parameters.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace assay::train {

inline constexpr std::array<const char*, 3> optimizer_names{"adamw", "sgd", "muon"};

struct OptimizerConfig {
  std::string_view name = "adamw";  // one of optimizer_names, static
  double lr = 1e-4;
  float beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F;
  float weight_decay = 0.01F;
  float momentum = 0.0F;  // for sgd only
  MuonConfig muon;        // for matrices, only with muon, which updates the rest by the fields above
};

class Optimizer {
 public:
  static constexpr std::size_t scalar_bytes = 512;  // the part of the state for step number and learning rate
  // Ranges and stretches begin and end at multiples of this many elements, which a device's vector kernels read at
  // once, except at the arena's end.
  static constexpr std::int64_t alignment_elements = 64;

  // The parameters must be complete, and outlive it.
  Optimizer(const OptimizerConfig& config, const ParameterSet& parameters);

  // Call it before the memory is taken. The optimizer then updates only these ranges of the arena, and keeps state for
  // them, packed one after the other. Without this call it takes the whole arena as one range.
  void restrict_to(std::vector<ElementRange> ranges);
  const std::vector<ElementRange>& ranges() const { return ranges_; }
  const OptimizerConfig& config() const { return config_; }
  // The elements of moment(index) that belong to `piece` of the arena, which lies within one of the ranges, and, of
  // Muon's second moment, in one piece of the rest.
  ElementRange packed(const ElementRange& piece, std::size_t index = 0) const;
  const Muon* muon() const { return muon_ ? &*muon_ : nullptr; }  // null for other optimizers

  // First and second moments, or the momentum, of the ranges' elements; of Muon's matrices there are no second ones.
  std::size_t moment_bytes() const;
  std::size_t state_bytes() const { return scalar_bytes + moment_bytes(); }
  void bind(void* state);  // state_bytes()
  // Memory that a step needs and that holds nothing between steps.
  std::size_t scratch_bytes() const { return muon_ ? muon_->scratch_bytes() : 0; }
  void bind_scratch(void* scratch);
  void reset(compute::Backend& backend) const;   // zero state, step 0
  compute::Tensor step_number() const;           // i64 [1]: steps taken, those that changed nothing left out
  compute::Tensor learning_rate() const;         // fp32 [1]
  compute::Tensor matrix_learning_rate() const;  // fp32 [1], of Muon's matrices; empty for other optimizers
  // All ranges, packed; 0: the first moment, or the momentum; 1: the second one, with Muon only of the rest.
  compute::Tensor moment(std::size_t index) const;
  // Enqueues one update of every range, or none when the scaler finds a gradient that is not finite.
  void step(compute::Backend& backend, const LossScaler& scaler) const;

  // These do the same by stretches: begin_step once, each element of the ranges once in any order, end_step once. With
  // an active scaler begin_step looks at the whole gradient arena. A stretch lies within one of the ranges.
  void begin_step(compute::Backend& backend, const LossScaler& scaler) const;
  void step_range(compute::Backend& backend, const LossScaler& scaler, std::size_t index) const {
    step_stretch(backend, scaler, ranges_[index]);
  }
  void step_stretch(compute::Backend& backend, const LossScaler& scaler, const ElementRange& stretch) const;
  // In the place of a stretch that is one parameter: its update, for an operation that carries it out, between
  // begin_step and end_step. Of AdamW without an active scaler; INVALID_ARGUMENT otherwise.
  compute::WeightUpdate update_of(ParameterSet::Id id) const;
  // Muon's matrices are updated here, wherever stretches cut them.
  void end_step(compute::Backend& backend, const LossScaler& scaler) const;
  // In the place of end_step, of Muon: step_matrices once for each shape that its matrices have, in any order, and then
  // end_step_of_shapes. A shape that none has is allowed.
  void step_matrices(compute::Backend& backend, const LossScaler& scaler, const MatrixShape& shape) const;
  void end_step_of_shapes(compute::Backend& backend, const LossScaler& scaler) const { scaler.update(backend); }

 private:
  struct Kind;  // what differs between the optimizers: a row for each
  static const Kind& kind_of(std::string_view name);
  compute::AdamWOptions adamw_options() const;
  void adamw(compute::Backend& backend, const LossScaler& scaler, const ElementRange& stretch) const;
  void sgd(compute::Backend& backend, const LossScaler& scaler, const ElementRange& stretch) const;
  void adamw_of_rest(compute::Backend& backend, const LossScaler& scaler, const ElementRange& stretch) const;
  Muon::State muon_state() const;
  std::int64_t moment_elements(std::size_t index) const;
  compute::Tensor copy_of(const ElementRange& stretch) const;                       // empty when there is none
  compute::Tensor moment_of(std::size_t index, const ElementRange& stretch) const;  // empty when there is none

  OptimizerConfig config_;
  const Kind& kind_;
  const ParameterSet& parameters_;
  std::vector<ElementRange> ranges_;
  std::vector<std::int64_t> packed_;  // where each range's state begins, in elements
  std::size_t moments_;
  std::optional<Muon> muon_;
  std::vector<std::int64_t> packed_rest_;  // where the second moment of each piece of the rest begins, in elements
  void* state_ = nullptr;
};

}  // namespace assay::train
