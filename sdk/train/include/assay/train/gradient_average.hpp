// The average of the gradients over the ranks, by one of four strategies. The gradients are averaged where they lie.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/gradient_buckets.hpp>

namespace assay::train {

enum class Strategy { naive, flat, overlap_individual, overlap_bucketed };
inline constexpr auto strategies = choices<Strategy>({{"naive", Strategy::naive},
                                                      {"flat", Strategy::flat},
                                                      {"overlap_individual", Strategy::overlap_individual},
                                                      {"overlap_bucketed", Strategy::overlap_bucketed}});

class GradientAverage {
 public:
  // The set must outlive it.
  GradientAverage(Strategy strategy, const ParameterSet& set, std::size_t bucket_bytes);
  GradientAverage(const GradientAverage&) = delete;
  GradientAverage& operator=(const GradientAverage&) = delete;

  void use(comm::Communicator& communicator) { communicator_ = &communicator; }
  const std::vector<ElementRange>& pieces() const { return pieces_.buckets(); }  // each is averaged by one collective
  std::size_t collectives_in_step() const { return pieces_.buckets().size(); }

  // To be called around a backward: begin_step before it, with listener() handed to it (null when nothing overlaps it),
  // and finish after it. Operations that are enqueued after finish see the averages.
  void begin_step() { pieces_.begin_step(); }
  GradientListener* listener() { return overlaps() ? &pieces_ : nullptr; }
  void finish();

 private:
  bool overlaps() const { return strategy_ == Strategy::overlap_individual || strategy_ == Strategy::overlap_bucketed; }
  void start(std::size_t piece);

  Strategy strategy_;
  const ParameterSet& set_;
  ReadyBuckets pieces_;
  comm::Communicator* communicator_ = nullptr;
  comm::Ticket last_ = 0;
};

}  // namespace assay::train
