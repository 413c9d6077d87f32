// What the ranks of a model with split products ("tensor parallel") exchange within a forward and a backward. The model
// decides when; the implementation (parallel::SplitRanks) moves the numbers. Every call but wait() enqueues, and its
// memory must be left alone until wait() has been called with its result.
//
// Of R ranks the r-th (from 0) has the r-th of R equal parts of a contiguous tensor.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstdint>

namespace assay::train {

class PartExchange {
 public:
  using Ticket = std::uint64_t;  // of a call, and of all before it; 0: there is nothing to wait for

  PartExchange() = default;
  PartExchange(const PartExchange&) = delete;
  PartExchange& operator=(const PartExchange&) = delete;
  virtual ~PartExchange() = default;

  // This rank's part is there; afterwards all are.
  virtual Ticket gather(compute::Backend& backend, const compute::Tensor& parts) = 0;
  // Each rank has a term of the whole; afterwards this rank's part is the sum over the ranks, and the rest is of no
  // use.
  virtual Ticket sum_to_parts(compute::Backend& backend, const compute::Tensor& terms) = 0;
  // The same, and the sum is everywhere.
  virtual Ticket sum(compute::Backend& backend, const compute::Tensor& terms) = 0;
  // The part of `send` that would be rank r's becomes, on rank r, the part of `receive` that would be this rank's. The
  // two share no memory.
  virtual Ticket transpose(compute::Backend& backend, const compute::Tensor& send, const compute::Tensor& receive) = 0;
  // What is enqueued on the backend from here on sees the result.
  virtual void wait(Ticket ticket) = 0;
};

}  // namespace assay::train
