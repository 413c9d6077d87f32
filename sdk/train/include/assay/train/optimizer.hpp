// AdamW and SGD over a parameter arena, whole in one pass or only pieces of it. The step number and the learning rate
// live in device memory: a captured step reads them there.
#pragma once
#include <assay/plugin.hpp>

#include <array>
#include <assay/train/loss_scaler.hpp>
#include <assay/train/parameters.hpp>
#include <string_view>
#include <vector>

namespace assay::train {

inline constexpr std::array<const char*, 2> optimizer_names{"adamw", "sgd"};

struct OptimizerConfig {
  std::string_view name = "adamw";  // one of optimizer_names, static
  double lr = 1e-4;
  float beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F;
  float weight_decay = 0.01F;
  float momentum = 0.0F;  // for sgd only
};

class Optimizer {
 public:
  static constexpr std::size_t scalar_bytes = 512;  // the part of the state for step number and learning rate
  // Ranges and stretches begin and end at multiples of so many elements, which a device's vector kernels read at once,
  // except at the arena's end.
  static constexpr std::int64_t alignment_elements = 64;

  // The parameters must be complete, and outlive it.
  Optimizer(const OptimizerConfig& config, const ParameterSet& parameters);

  // To be called before the memory is taken. The optimizer then updates these ranges of the arena alone, and keeps
  // state for them alone, packed one after the other. Without this call it takes the whole arena as one range.
  void restrict_to(std::vector<ElementRange> ranges);
  const std::vector<ElementRange>& ranges() const { return ranges_; }
  const OptimizerConfig& config() const { return config_; }
  // The elements of moment() that belong to `piece` of the arena, which lies within one of the ranges.
  ElementRange packed(const ElementRange& piece) const;

  std::size_t moment_bytes() const;  // first and second moments, or the momentum, of the ranges' elements
  std::size_t state_bytes() const { return scalar_bytes + moment_bytes(); }
  void bind(void* state);                           // state_bytes()
  void reset(compute::Backend& backend) const;      // zero state, step 0
  compute::Tensor step_number() const;              // i64 [1]: steps taken, those that changed nothing left out
  compute::Tensor learning_rate() const;            // fp32 [1]
  compute::Tensor moment(std::size_t index) const;  // all ranges, packed; 0: the first moment, or the momentum
  // Enqueues one update of every range, or none when the scaler finds a gradient that is not finite.
  void step(compute::Backend& backend, const LossScaler& scaler) const;

  // These do the same by stretches: begin_step once, each element of the ranges once in any order, end_step once. With
  // an active scaler begin_step looks at the whole gradient arena. A stretch lies within one of the ranges.
  void begin_step(compute::Backend& backend, const LossScaler& scaler) const;
  void step_range(compute::Backend& backend, const LossScaler& scaler, std::size_t index) const {
    step_stretch(backend, scaler, ranges_[index]);
  }
  void step_stretch(compute::Backend& backend, const LossScaler& scaler, const ElementRange& stretch) const;
  void end_step(compute::Backend& backend, const LossScaler& scaler) const { scaler.update(backend); }

 private:
  compute::Tensor moment_of(std::size_t index, const ElementRange& stretch) const;  // empty when there is none

  OptimizerConfig config_;
  const ParameterSet& parameters_;
  std::vector<ElementRange> ranges_;
  std::vector<std::int64_t> packed_;  // where each range's state begins, in elements
  std::size_t moments_;
  void* state_ = nullptr;
};

}  // namespace assay::train
