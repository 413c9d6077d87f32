// Verifications check with these functions whether the result of a model's step is finite, and whether two ways to
// compute the same step agree.
#pragma once
#include <assay/compute/inspector.hpp>
#include <assay/train/trainer.hpp>
#include <assay/verification/block_difference.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/workload/precision.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::verification {

inline constexpr double verification_loss_scale = 1024;  // fp16: low enough for any start to be finite

// Limit of host memory for the gradients of one path, in elements, if the device has no room for them: 512 MiB. Those
// of the other path are checked where they lie.
inline constexpr std::int64_t compared_elements = std::int64_t{1} << 27;

// One way of computing a step has left this.
struct Outcome {
  double loss = 0;
  // Gradients by parameter; further tensors are those of `last_sample`.
  std::vector<std::shared_ptr<compute::KeptTensor>> kept;
};
// Keeps the gradients that are in the arena. Blocks.
Outcome outcome_of_gradients(compute::Backend& backend, const train::ParameterSet& set, double loss,
                             std::int64_t most_on_host = compared_elements);
// Leaves the device's memory that this and the inspector take to others. Returns whether anything was on the device.
// Blocks.
bool move_to_host(compute::Backend& backend, const Outcome& outcome);
// Does `work`, and repeats it if the device has no memory for it and the kept data could move to the host.
template <class Work>
auto with_room_of(compute::Backend& backend, const Outcome& kept, const Work& work) {
  try {
    return work();
  } catch (const Error& e) {
    if (e.status() != ASSAY_OUT_OF_MEMORY || !move_to_host(backend, kept)) throw;
  }
  return work();
}
// Returns how much of the gradients was kept, as share_text().
std::string share_of(const Outcome& outcome, const train::ParameterSet& set);
// What the other way has in place of a tensor of the first: as many elements, on the device.
using TensorOf = std::function<compute::Tensor(std::size_t index)>;

struct PathTolerance {
  double loss, gradient;  // relative; `gradient` of a whole tensor in the Euclidean norm
  double block;           // of 256 elements, relative to their norm or to that of as many average ones
  double factor;          // by which a whole, large tensor is too large or too small
  double few = 0;         // added for n elements, over the root of n
  // What rounding leaves where all terms of a gradient cancel, in tolerances of the largest gradient of its group.
  double cancelled = 0.1;
  // The share that sinks take of attention's probabilities, where attention has any.
  double sinks = 0;
  // So many numbers of a router's gradient have errors of their own; 0: all of its elements.
  double routed = 0;
};
// For a model with this many layers, from the roundings of its formats (path_check.cpp has the derivation). `rows`: the
// tokens whose mean loss is the loss; with few of them it is off by more.
PathTolerance path_tolerance(const workload::PrecisionPolicy& policy, std::int64_t layers, std::int64_t rows);
// The tolerance for a model with ReLUs whose sides may differ is wider. A hidden state so near 0 that rounding decides
// its side passes all of a gradient or none. If states differ by a relative e, about a share e of them is of that kind,
// and gradients differ by sqrt(e). Paths that agree on the sides (relu_sides.hpp) are held to path_tolerance.
PathTolerance relu_path_tolerance(const workload::PrecisionPolicy& policy, std::int64_t layers, std::int64_t rows);

// The loss of the last step, or throws WRONG_RESULT. Blocks.
double check_finite_loss(const train::Trainer& trainer);
// Checks the loss and the gradients of the last step. Returns a text on the result, or throws WRONG_RESULT. Overwrites
// the loss.
std::string check_finite(const train::Trainer& trainer, const train::Model& model);

// A loss scale to start() with. With loss scaling (fp16) it enqueues with `step` what leaves gradients, from the start,
// and again at a lower scale as long as one overflows: a right one is finite at some scale. Throws WRONG_RESULT that
// names the first parameter whose gradient is finite at none. Without loss scaling it does nothing. Blocks.
double find_finite_gradients(train::Trainer& trainer, const std::function<void()>& step);

// Throws WRONG_RESULT beyond the tolerance. `what`: "fused path against the unfused one". `last_sample` names the
// tensor of a difference beyond those of the parameters.
std::string compare_paths(const std::string& what, double timed_loss, double reference_loss,
                          const std::vector<BlockDifference>& differences, const PathTolerance& tolerance,
                          const train::ParameterSet& parameters, const std::string& last_sample);
// Blocks.
std::string compare_paths(const std::string& what, compute::Backend& backend, const Outcome& timed,
                          double reference_loss, const TensorOf& reference, const PathTolerance& tolerance,
                          const train::ParameterSet& parameters, const std::string& last_sample);

}  // namespace assay::verification
