// Plans the temporary tensors of a step from the step itself: it is walked once on a backend that carries nothing out
// and notes which operation reads and writes what. Nobody has to say by hand when a tensor is first written and last
// read.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/buffer_plan.hpp>
#include <assay/train/parameters.hpp>
#include <functional>

namespace assay::train {

// Derives the lives of the plan's buffers from `step`, whose moments are its operations, and solves the plan. What the
// side lane uses is alive until it is joined.
//
// With `gradients`, the arena of that set is borrowed: a gradient's place holds activations until the operation that
// first writes it. What the step never writes is reserved throughout, and so is all of an arena that has gaps between
// its groups, which must keep their zeros.
//
// The tensors of the plan must not be bound yet; inputs of the step may lie anywhere, or nowhere. Throws
// assay::Error(INTERNAL) if the step reads a buffer or a gradient that it has not written, unless the buffer is
// declared to outlive steps, and if it goes beyond a buffer's end. A partly written buffer counts as written.
void plan_step(BufferPlan& plan, const ParameterSet* gradients, const std::function<void(compute::Backend&)>& step);
// The same of a step in two parts, between which others may run: BufferPlan::solve_around(). No gradients are borrowed.
void plan_step_in_two_parts(BufferPlan& plan, const std::function<void(compute::Backend&)>& first,
                            const std::function<void(compute::Backend&)>& second);

}  // namespace assay::train
