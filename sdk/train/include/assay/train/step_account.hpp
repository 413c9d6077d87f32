// The account of a training's steps (assay.account/1), which the steps themselves keep on the device. A step begins by
// making its loss and some places of its gradients unreadable. It ends by counting itself and leaving its marks: the
// loss, and sums over these places of gradients and weights. A step that does only a part of its work leaves other
// marks than one that does it all, or none.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/backend.hpp>
#include <assay/train/element_range.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <vector>

namespace assay::train {

class StepAccount {
 public:
  // Half of them the first ones, so that the window's are among them: samples of many short steps are tried before it.
  static constexpr std::int64_t kept_steps = 8192;
  // Two for each thread of a block of a GPU; up to the second number for more parameters.
  static constexpr std::int64_t usual_places = 512, most_places = 4096;
  static constexpr std::uint64_t marks_per_step = 3;

  // What a step must write, and what it changes. The tensors are the same in every step.
  struct Subjects {
    compute::Tensor loss;     // fp32 [1]; empty: the step has none
    compute::Tensor results;  // flat: gradients, or the result of a forward alone; may be empty
    compute::Tensor state;    // flat, of as many elements: weights; empty: none
    // Flat: what a step writes anew and does not read before. Empty: the results.
    compute::Tensor spoiled = {};
  };

  // Evenly spread places of the elements that a step writes: the ends of each range, as long as there are no more than
  // `most_places` of them, and others by the ranges' sizes.
  static std::vector<std::int64_t> spread(const std::vector<ElementRange>& ranges);

  // Takes memory of the host's and begins at 0 steps. `places` are elements of results, `spoiled_places` of what is
  // spoiled, where that is another tensor. Blocks.
  void take_memory(const Host& host, compute::Backend& backend, const std::vector<std::int64_t>& places,
                   const std::vector<std::int64_t>& spoiled_places = {});
  bool is_kept() const { return memory_.data() != nullptr; }
  // These enqueue.
  void reset(compute::Backend& backend) const;
  void begin_step(compute::Backend& backend, const Subjects& subjects) const;
  void end_step(compute::Backend& backend, const Subjects& subjects) const;

  // What the steps since the last reset have left. Waits for the device. WRONG_RESULT where a step that is still kept
  // has left a loss that is not finite, or, unless gradients `may_overflow`, results that are not. `tolerance`:
  // assay::Account's.
  Account read(compute::Backend& backend, double tolerance, bool may_overflow = false) const;
  // Where 16-bit steps do not repeat to the bit: marks of a step may differ by what the steps before it add, of a model
  // that `picks_by_comparison` (model.hpp) by more.
  static void allow_for_earlier_steps(Account& account, bool picks_by_comparison);

 private:
  compute::Tensor count() const, marks() const, places() const, spoiled_places() const;

  DeviceMemory memory_;
  std::int64_t place_count_ = 0, spoiled_place_count_ = 0;
};

}  // namespace assay::train
