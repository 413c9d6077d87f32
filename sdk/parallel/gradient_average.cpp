#include "assay/parallel/gradient_average.hpp"

namespace assay::parallel {
namespace {

std::vector<train::ElementRange> pieces_of(Strategy strategy, const train::ParameterSet& set,
                                           std::size_t bucket_bytes) {
  switch (strategy) {
    case Strategy::flat: return {{0, set.arena_elements()}};
    case Strategy::overlap_bucketed: return plan_buckets(set, bucket_options(bucket_bytes));
    case Strategy::naive:
    case Strategy::overlap_individual: break;
  }
  return parameter_ranges(set);
}

}  // namespace

GradientAverage::GradientAverage(Strategy strategy, const train::ParameterSet& set, std::size_t bucket_bytes)
    : strategy_(strategy),
      set_(set),
      pieces_(set, pieces_of(strategy, set, bucket_bytes), [this](std::size_t piece) { start(piece); }) {}

void GradientAverage::start(std::size_t piece) {
  const compute::Tensor gradients = set_.gradients(pieces_.buckets()[piece]);
  last_ = communicator_->all_reduce(gradients, gradients, comm::Reduction::average);
}

void GradientAverage::finish() {
  if (overlaps()) return communicator_->wait(last_);
  for (std::size_t piece = 0; piece < pieces_.buckets().size(); ++piece) {
    start(piece);
    communicator_->wait(last_);
  }
}

}  // namespace assay::parallel
