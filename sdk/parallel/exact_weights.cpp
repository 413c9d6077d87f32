#include "assay/parallel/exact_weights.hpp"

#include <algorithm>

namespace assay::parallel {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;
using train::ElementRange;
using train::ParameterSet;
namespace {

constexpr std::int64_t part_alignment = 64;  // elements

}  // namespace

ExactWeights::ExactWeights(const ParameterSet& set, const std::vector<ParameterSet::Id>& ids,
                           const std::vector<std::vector<ElementRange>>& owned)
    : set_(set), pieces_(owned.size()) {
  if (!set.policy().compute_copy()) return;
  for (std::size_t rank = 0; rank < owned.size(); ++rank) {
    std::int64_t at = 0;
    for (const ParameterSet::Id id : ids)
      for (const ElementRange& range : owned[rank]) {
        const train::Parameter& p = set.all()[id];
        const ElementRange piece{std::max(range.begin, p.offset), std::min(range.end, p.offset + p.elements())};
        if (piece.begin >= piece.end) continue;
        pieces_[rank].push_back({piece, at});
        at += piece.elements();
      }
    part_elements_ = std::max(part_elements_, (at + part_alignment - 1) / part_alignment * part_alignment);
  }
}

std::size_t ExactWeights::message_bytes() const {
  return pieces_.size() * static_cast<std::size_t>(part_elements_) * size_of(set_.policy().parameter);
}

void ExactWeights::bind(void* message) { message_ = message; }

void ExactWeights::clear(Backend& backend) const {
  if (part_elements_ == 0) return;
  const Tensor all(message_, set_.policy().parameter, {static_cast<std::int64_t>(pieces_.size()) * part_elements_});
  backend.run(op::Fill{.x = all, .value = 0.0});
}

Tensor ExactWeights::packed(std::size_t rank, const Piece& piece) const {
  const Tensor all(message_, set_.policy().parameter, {static_cast<std::int64_t>(pieces_.size()) * part_elements_});
  return all.slice(0, static_cast<std::int64_t>(rank) * part_elements_ + piece.at, piece.arena.elements());
}

void ExactWeights::pack(Backend& backend, std::int32_t rank) const {
  if (part_elements_ == 0) return;
  const auto r = static_cast<std::size_t>(rank);
  for (const Piece& piece : pieces_[r]) backend.run(op::Copy{.to = packed(r, piece), .from = set_.values(piece.arena)});
}

comm::Ticket ExactWeights::gather(comm::Communicator& communicator) const {
  const auto ranks = static_cast<std::int64_t>(pieces_.size());
  const Tensor all(message_, set_.policy().parameter, {ranks * part_elements_});
  return communicator.all_gather(all.slice(0, communicator.rank() * part_elements_, part_elements_), all);
}

void ExactWeights::unpack(Backend& backend, std::int32_t rank) const {
  for (std::size_t r = 0; r < pieces_.size(); ++r)
    if (r != static_cast<std::size_t>(rank))
      for (const Piece& piece : pieces_[r])
        backend.run(op::Copy{.to = set_.values(piece.arena), .from = packed(r, piece)});
}

}  // namespace assay::parallel
