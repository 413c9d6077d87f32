#include "assay/parallel/gradient_average.hpp"

namespace assay::parallel {
namespace {

std::vector<train::ElementRange> pieces_of(AverageMode mode, const train::ParameterSet& set, std::size_t bucket_bytes,
                                           std::size_t last_bucket_bytes) {
  switch (mode) {
    case AverageMode::flat: return {{0, set.arena_elements()}};
    case AverageMode::overlap_bucketed: return plan_buckets(set, bucket_options(bucket_bytes, last_bucket_bytes));
    case AverageMode::naive:
    case AverageMode::overlap_individual: break;
  }
  return parameter_ranges(set);
}

}  // namespace

GradientAverage::GradientAverage(AverageMode mode, const train::ParameterSet& set, std::size_t bucket_bytes,
                                 std::size_t last_bucket_bytes)
    : GradientAverage(mode, set, pieces_of(mode, set, bucket_bytes, last_bucket_bytes), comm::Reduction::average) {}

GradientAverage::GradientAverage(const train::ParameterSet& set, const std::vector<train::ElementRange>& own,
                                 std::size_t bucket_bytes)
    : GradientAverage(AverageMode::overlap_bucketed, set, plan_shared_buckets(set, own, bucket_options(bucket_bytes)),
                      comm::Reduction::sum) {}

// A stretch begins where the one before it ends, and has with it what lies between its pieces and the next one's.
GradientAverage::GradientAverage(AverageMode mode, const train::ParameterSet& set,
                                 std::vector<train::ElementRange> pieces, comm::Reduction reduction)
    : mode_(mode),
      reduction_(reduction),
      set_(set),
      pieces_(set, std::move(pieces), [this](std::size_t piece) { start(piece); }),
      tickets_(this->pieces().size()) {
  if (mode != AverageMode::overlap_bucketed) return;
  const std::vector<train::ElementRange>& all = this->pieces();
  for (std::size_t begin = 0; begin < all.size();) {
    const std::int64_t middle = (all[begin].begin + set.arena_elements()) / 2;
    std::size_t end = begin + 1;
    while (end + 1 < all.size() && all[end].end <= middle) ++end;
    stretches_.push_back(
        {begin == 0 ? 0 : all[begin].begin, end == all.size() ? set.arena_elements() : all[end].begin});
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
  tickets_[piece] = communicator_->all_reduce(gradients, gradients, reduction_);
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
