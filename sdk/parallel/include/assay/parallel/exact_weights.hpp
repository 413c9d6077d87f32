// Weights that a step reads as the optimizer has them, in a precision whose products read a copy: those of norms. Ranks
// that send one another the copy alone send these beside it. They are few, and lie between the matrices, wherever the
// parts of the ranks are cut: each rank packs its own, one gathering takes them around, and each unpacks the others'.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/element_range.hpp>
#include <assay/train/parameters.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::parallel {

class ExactWeights {
 public:
  // `owned[r]`: the ranges of the arena that rank r updates, ascending; together they are the arena. The set must
  // outlive it, and its copy is what all else is read from: without one there is nothing to send.
  ExactWeights(const train::ParameterSet& set, const std::vector<train::ParameterSet::Id>& ids,
               const std::vector<std::vector<train::ElementRange>>& owned);

  std::size_t message_bytes() const;            // of all ranks' parts; 0: there is nothing to send
  void bind(void* message);                     // message_bytes()
  void clear(compute::Backend& backend) const;  // once: the parts have gaps at their ends

  // Each enqueues, in this order. Nothing where there is nothing to send.
  void pack(compute::Backend& backend, std::int32_t rank) const;
  comm::Ticket gather(comm::Communicator& communicator) const;
  void unpack(compute::Backend& backend, std::int32_t rank) const;  // all but this rank's own

 private:
  struct Piece {
    train::ElementRange arena;
    std::int64_t at;  // element of the rank's part
  };
  compute::Tensor packed(std::size_t rank, const Piece& piece) const;

  const train::ParameterSet& set_;
  std::vector<std::vector<Piece>> pieces_;  // by rank
  std::int64_t part_elements_ = 0;          // of each rank, as many as of the one that has most
  void* message_ = nullptr;
};

}  // namespace assay::parallel
