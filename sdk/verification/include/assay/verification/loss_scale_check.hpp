// Does dynamic loss scaling do what it is for? A step whose gradients overflow must leave weights and moments as they
// are, and lower the scale. Whether one of the measured steps overflows is chance; here one is made to.
#pragma once
#include <assay/train/trainer.hpp>
#include <functional>
#include <string>

namespace assay::verification {

// `step` enqueues a whole step on this rank. From the start, at a loss scale at which no fp16 gradient is finite.
// Returns what was found, or throws WRONG_RESULT; "" without loss scaling. Blocks; start() begins anew.
std::string check_skipped_step(train::Trainer& trainer, const std::function<void()>& step);

}  // namespace assay::verification
