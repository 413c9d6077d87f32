// What the ranks of a pipeline ("pipeline parallel") send one another within a step: activations forward, their
// gradients backward. The schedule (pipeline_schedule.hpp) decides when; the implementation (parallel::StageRanks)
// moves the numbers. Every call but wait() enqueues, and its memory must be left alone until wait() has been called
// with its result.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstdint>

namespace assay::train {

class StageExchange {
 public:
  using Ticket = std::uint64_t;  // of a call, and of all before it; 0: there is nothing to wait for

  StageExchange() = default;
  StageExchange(const StageExchange&) = delete;
  StageExchange& operator=(const StageExchange&) = delete;
  virtual ~StageExchange() = default;

  virtual Ticket send(const compute::Tensor& x, std::int64_t to) = 0;
  virtual Ticket receive(const compute::Tensor& x, std::int64_t from) = 0;
  // What is enqueued on the backend from here on sees the result.
  virtual void wait(Ticket ticket) = 0;
};

}  // namespace assay::train
