// What a verification does to parameters before it looks at a step, so that more shows in it.
#pragma once
#include <assay/train/parameters.hpp>
#include <vector>

namespace assay::verification {

// Norms start with weights of 1 and biases of 0, and some layers with biases of 0, so a kernel that ignores them would
// be right. Gives every parameter that starts from one number values of up to 1/2 around it, which are exact in every
// format. After start(); the next start() draws them again. Enqueues, and blocks for uploads.
void spread_constants(compute::Backend& backend, const train::ParameterSet& set,
                      const std::vector<train::ParameterSet::Id>& ids);
void spread_constants(compute::Backend& backend, const train::ParameterSet& set);  // all parameters

// Fills a floating-point tensor with NaN: reading it before it is written again shows.
void spoil(compute::Backend& backend, const compute::Tensor& x);
// Of every parameter's gradient: what a step then leaves there, it has made itself. Enqueues.
void spoil_gradients(compute::Backend& backend, const train::ParameterSet& set);
// The same of the copy of the weights that products read. Before a start(): the memory may hold the right copy from
// before, and a start that leaves a part of it out would not show.
void spoil_compute_copy(compute::Backend& backend, const train::ParameterSet& set);

}  // namespace assay::verification
