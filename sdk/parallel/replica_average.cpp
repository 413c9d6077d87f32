#include "assay/parallel/replica_average.hpp"

#include <algorithm>

namespace assay::parallel {
namespace {

// A stretch can be finished when its buckets are: none has gradients of the next one.
std::vector<train::ElementRange> buckets_of(const train::ParameterSet& set, std::size_t bucket_bytes,
                                            const train::ElementRange& late, const train::GradientExchange* within) {
  const std::vector<train::ElementRange> own =
      late.elements() == 0 ? std::vector<train::ElementRange>() : std::vector{late};
  std::vector<train::ElementRange> buckets = plan_shared_buckets(set, own, bucket_options(bucket_bytes));
  if (!within) return buckets;
  for (const train::ElementRange& stretch : within->stretches()) {
    const auto cut = std::find_if(buckets.begin(), buckets.end(), [&](const train::ElementRange& bucket) {
      return bucket.begin < stretch.begin && stretch.begin < bucket.end;
    });
    if (cut == buckets.end()) continue;
    const train::ElementRange behind{stretch.begin, cut->end};
    cut->end = stretch.begin;
    buckets.insert(cut + 1, behind);
  }
  return buckets;
}

}  // namespace

ReplicaAverage::ReplicaAverage(const train::ParameterSet& set, std::size_t bucket_bytes,
                               const train::ElementRange& late, train::GradientExchange* within)
    : set_(set),
      buckets_(set, buckets_of(set, bucket_bytes, late, within),
               [this](std::size_t bucket) { tickets_[bucket] = start(pieces()[bucket]); }),
      late_(late),
      within_(within),
      within_announces_(within && within->announce_to(buckets_)),
      tickets_(pieces().size()) {}

comm::Ticket ReplicaAverage::start(const train::ElementRange& range) {
  if (!communicator_) return 0;
  const compute::Tensor gradients = set_.gradients(range);
  return communicator_->all_reduce(gradients, gradients, comm::Reduction::average);
}

void ReplicaAverage::begin_step() {
  buckets_.begin_step();
  if (within_) within_->begin_step();
}

// The average comes last: what the ranks of a replica sum may differ in its last bits between replicas, whose
// communicators are others, and the average is the same on all that make it.
void ReplicaAverage::finish() {
  if (!within_announces_) buckets_.gradients_ready(set_.all().size());
  if (within_) within_->finish();
  if (late_.elements() > 0) return wait(start(late_));  // and for those before
  if (!tickets_.empty()) wait(tickets_.back());
}

void ReplicaAverage::wait(comm::Ticket ticket) const {
  if (communicator_) communicator_->wait(ticket);
}

const std::vector<train::ElementRange>& ReplicaAverage::stretches() const {
  return within_announces_ ? within_->stretches() : GradientExchange::stretches();
}

void ReplicaAverage::finish_stretch(std::size_t index) {
  within_->finish_stretch(index);
  const std::int64_t end = stretches()[index].end;
  const auto behind =
      std::find_if(pieces().begin(), pieces().end(), [&](const train::ElementRange& p) { return p.begin >= end; });
  if (behind != pieces().begin()) wait(tickets_[static_cast<std::size_t>(behind - pieces().begin()) - 1]);
}

}  // namespace assay::parallel
