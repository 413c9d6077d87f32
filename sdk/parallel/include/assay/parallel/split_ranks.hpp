// The ranks that split a model's products ("tensor parallel"). They exchange what its forward and backward need by
// collectives in place. At the end they sum the gradients of the parameters that every rank has: each rank's gradient
// covers only its rows. Ranks that share out a model's sequences exchange keys and values by the same calls.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/gradient_exchange.hpp>
#include <assay/train/parameters.hpp>
#include <assay/train/part_exchange.hpp>
#include <cstdint>

namespace assay::parallel {

class SplitRanks final : public train::PartExchange, public train::GradientExchange {
 public:
  // This rank of so many.
  SplitRanks(std::int64_t rank, std::int64_t ranks) : rank_(rank), ranks_(ranks) {}

  // Sums gradients of this range at the end of backward; none if it is empty. The set must outlive it.
  void share(const train::ParameterSet& set, const train::ElementRange& range) { set_ = &set, shared_ = range; }
  // nullptr: the step goes without communication. A rank then computes with its own part in the place of the others',
  // and its own terms in the place of a sum: as many operations, on numbers of the same size.
  void use(comm::Communicator* communicator) { communicator_ = communicator; }

  // ---- train::PartExchange
  Ticket gather(compute::Backend& backend, const compute::Tensor& parts) override;
  Ticket sum_to_parts(compute::Backend& backend, const compute::Tensor& terms) override;
  Ticket sum(compute::Backend& backend, const compute::Tensor& terms) override;
  Ticket transpose(compute::Backend& backend, const compute::Tensor& send, const compute::Tensor& receive) override;
  void wait(Ticket ticket) override;

  // ---- train::GradientExchange
  void begin_step() override {}
  train::GradientListener* listener() override { return nullptr; }
  void finish() override;

 private:
  compute::Tensor part(const compute::Tensor& whole, std::int64_t rank) const;

  std::int64_t rank_, ranks_;
  const train::ParameterSet* set_ = nullptr;
  train::ElementRange shared_{};
  comm::Communicator* communicator_ = nullptr;
};

}  // namespace assay::parallel
