// Are the gradients of a model of your own right? Two checks that need no second implementation of its backward; an
// author calls one of them in `verify`.
#pragma once
#include <assay/train/trainer.hpp>
#include <functional>
#include <string>
#include <vector>

namespace assay::verification {

// Checks gradients with the loss that the device computes, which must change as each gradient predicts. Along the
// gradient it must change by the gradient's length, which must not be 0; it is also checked when every element of the
// parameter moves by plus or minus a little, with random signs. Needs only forward and backward; for fp32, in which a
// loss has enough digits. Finds a gradient that is wrong by more than `tolerance` of its length, and than some 4e-4, as
// far as two directions show it; check_gradients_against_float64 covers a few elements that are not the large ones.
// Starts from the trainer's starting weights and leaves them there; overwrites gradients and activations. Returns a
// text. Throws WRONG_RESULT, which names the parameter, or UNSUPPORTED if the policy is not fp32. Blocks.
std::string check_gradients_by_differences(train::Trainer& trainer, double tolerance = 0.01);

// The loss in float64 as a function of the parameters, in the order of the set: written for the host, independent of
// the device.
using Float64Loss = std::function<double(const std::vector<std::vector<double>>& parameters)>;

// Compares with differences of a loss in float64: every element of a parameter moves by plus or minus a little, with
// signs drawn by lot, so that one wrong element shows. `tolerance` is relative, to the loss and to the length of a
// gradient. 0 means 1e-4 if activations are fp32, and 5e-2 if they have 16 bits. A signed sum is off by a whole
// gradient's error (2.2 u sqrt(layers), in fp32 seven times that: path_check.cpp), and may be some of its deviations
// off. Models of unknown depth and width come here, so ten times a layer's error is allowed, and a hundred times in
// fp32, whose differences also take the curvature of the loss along. The parameters are what the device's products
// read. Starts from the trainer's starting weights; overwrites gradients and activations. Returns a text, or throws
// WRONG_RESULT. Blocks.
std::string check_gradients_against_float64(train::Trainer& trainer, const Float64Loss& loss, double tolerance = 0);

}  // namespace assay::verification
