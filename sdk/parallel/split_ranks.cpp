#include "assay/parallel/split_ranks.hpp"

namespace assay::parallel {

namespace op = compute::op;

using comm::Reduction;
using compute::Backend;
using compute::Tensor;

Tensor SplitRanks::part(const Tensor& whole, std::int64_t rank) const {
  const std::int64_t n = whole.elements() / ranks_;
  return whole.flat().slice(0, rank * n, n);
}

SplitRanks::Ticket SplitRanks::gather(Backend& backend, const Tensor& parts) {
  if (communicator_) return communicator_->all_gather(part(parts, rank_), parts);
  for (std::int64_t r = 0; r < ranks_; ++r)
    if (r != rank_) backend.run(op::Copy{.to = part(parts, r), .from = part(parts, rank_)});
  return 0;
}

SplitRanks::Ticket SplitRanks::sum_to_parts(Backend&, const Tensor& terms) {
  return communicator_ ? communicator_->reduce_scatter(terms, part(terms, rank_), Reduction::sum) : 0;
}

SplitRanks::Ticket SplitRanks::sum(Backend&, const Tensor& terms) {
  return communicator_ ? communicator_->all_reduce(terms, terms, Reduction::sum) : 0;
}

SplitRanks::Ticket SplitRanks::transpose(Backend& backend, const Tensor& send, const Tensor& receive) {
  if (communicator_) return communicator_->all_to_all(send, receive);
  backend.run(op::Copy{.to = receive, .from = send});
  return 0;
}

void SplitRanks::wait(Ticket ticket) {
  if (communicator_ && ticket != 0) communicator_->wait(ticket);
}

void SplitRanks::finish() {
  if (!communicator_ || shared_.elements() == 0) return;
  const Tensor gradients = set_->gradients(shared_);
  wait(communicator_->all_reduce(gradients, gradients, Reduction::sum));
}

}  // namespace assay::parallel
