#include "assay/parallel/replica_average.hpp"

namespace assay::parallel {
namespace {

std::vector<train::ElementRange> ranges_of(const train::ElementRange& late) {
  return late.elements() == 0 ? std::vector<train::ElementRange>() : std::vector{late};
}

}  // namespace

ReplicaAverage::ReplicaAverage(const train::ParameterSet& set, std::size_t bucket_bytes,
                               const train::ElementRange& late, train::GradientExchange* within)
    : set_(set),
      buckets_(set, plan_shared_buckets(set, ranges_of(late), bucket_options(bucket_bytes)),
               [this](std::size_t bucket) { last_ = start(pieces()[bucket]); }),
      late_(late),
      within_(within) {}

comm::Ticket ReplicaAverage::start(const train::ElementRange& range) {
  if (!communicator_) return 0;
  const compute::Tensor gradients = set_.gradients(range);
  return communicator_->all_reduce(gradients, gradients, comm::Reduction::average);
}

void ReplicaAverage::begin_step() {
  last_ = 0;
  buckets_.begin_step();
  if (within_) within_->begin_step();
}

// The average comes last: what the ranks of a replica sum may differ in its last bits between replicas, whose
// communicators are others, and the average is the same on all that make it.
void ReplicaAverage::finish() {
  buckets_.gradients_ready(set_.all().size());
  if (within_) within_->finish();
  if (late_.elements() > 0) last_ = start(late_);
  wait();
}

void ReplicaAverage::wait() const {
  if (communicator_ && last_ != 0) communicator_->wait(last_);  // and for those before
}

const std::vector<train::ElementRange>& ReplicaAverage::stretches() const {
  return within_ && pieces().empty() ? within_->stretches() : GradientExchange::stretches();
}

void ReplicaAverage::finish_stretch(std::size_t index) {
  within_->finish_stretch(index);
  last_ = start(stretches()[index]);
  wait();
}

}  // namespace assay::parallel
