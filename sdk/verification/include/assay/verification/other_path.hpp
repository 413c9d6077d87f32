// What verifications of any model say and do alike: how its first loss is judged, and how the path is made that the
// timed one is compared with.
#pragma once
#include <assay/train/model.hpp>
#include <assay/verification/path_check.hpp>
#include <functional>
#include <string>
#include <vector>

namespace assay::verification {

// The cross-entropy of random weights, which the shape of the model's head decides.
struct StartingLoss {
  double expected, allowed;  // nats; `allowed`: how far the loss of a right model may be from it
};
// Returns a text on the result, or throws WRONG_RESULT. Weights from a file are not judged.
std::string check_starting_loss(double loss, const StartingLoss& of_random_weights, bool weights_are_random);

// "fused path against the unfused one"
std::string against_the_other_path(bool timed_is_fused);

// Makes the other path by the first attempt that is not UNSUPPORTED; the caller gets the last one's error. False if the
// device has no memory for it, even after what is kept of the timed path has moved to the host.
bool make_other_path(compute::Backend& backend, const Outcome& timed,
                     const std::vector<std::function<void()>>& attempts);
// "not checked: ..., for whose 12 MiB of activations there is no room"
std::string no_room_text(const std::string& what, const train::Model& other);

}  // namespace assay::verification
