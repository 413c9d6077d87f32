#include "assay/parallel/gradient_average.hpp"

namespace assay::parallel {
namespace {

std::vector<train::ElementRange> pieces_of(Strategy strategy, const train::ParameterSet& set, std::size_t bucket_bytes,
                                           std::size_t last_bucket_bytes) {
  switch (strategy) {
    case Strategy::flat: return {{0, set.arena_elements()}};
    case Strategy::overlap_bucketed: return plan_buckets(set, bucket_options(bucket_bytes, last_bucket_bytes));
    case Strategy::naive:
    case Strategy::overlap_individual: break;
  }
  return parameter_ranges(set);
}

}  // namespace

GradientAverage::GradientAverage(Strategy strategy, const train::ParameterSet& set, std::size_t bucket_bytes,
                                 std::size_t last_bucket_bytes)
    : strategy_(strategy),
      set_(set),
      pieces_(set, pieces_of(strategy, set, bucket_bytes, last_bucket_bytes),
              [this](std::size_t piece) { start(piece); }),
      tickets_(pieces().size()) {
  if (strategy != Strategy::overlap_bucketed) return;
  for (std::size_t begin = 0; begin < pieces().size();) {
    const std::int64_t middle = (pieces()[begin].begin + set.arena_elements()) / 2;
    std::size_t end = begin + 1;
    while (end + 1 < pieces().size() && pieces()[end].end <= middle) ++end;
    stretches_.push_back({pieces()[begin].begin, pieces()[end - 1].end});
    last_of_stretch_.push_back(end - 1);
    begin = end;
  }
}

std::vector<std::size_t> GradientAverage::sizes_bytes() const {
  std::vector<std::size_t> sizes;
  for (const train::ElementRange& piece : pieces()) sizes.push_back(set_.gradients(piece).bytes());
  return sizes;
}

void GradientAverage::start(std::size_t piece) {
  const compute::Tensor gradients = set_.gradients(pieces_.buckets()[piece]);
  tickets_[piece] = communicator_->all_reduce(gradients, gradients, comm::Reduction::average);
}

void GradientAverage::finish() {
  if (overlaps()) return communicator_->wait(tickets_.back());  // and with it for those before
  for (std::size_t piece = 0; piece < pieces_.buckets().size(); ++piece) {
    start(piece);
    communicator_->wait(tickets_[piece]);
  }
}

void GradientAverage::finish_stretch(std::size_t index) { communicator_->wait(tickets_[last_of_stretch_[index]]); }

}  // namespace assay::parallel
