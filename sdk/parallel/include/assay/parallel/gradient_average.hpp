// The average of the gradients over the ranks, by one of four modes, or the sum of those that all ranks have.
// The gradients are averaged where they lie.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/train/gradient_exchange.hpp>

namespace assay::parallel {

enum class AverageMode { naive, flat, overlap_individual, overlap_bucketed };
inline constexpr auto average_modes = choices<AverageMode>({{"naive", AverageMode::naive},
                                                            {"flat", AverageMode::flat},
                                                            {"overlap_individual", AverageMode::overlap_individual},
                                                            {"overlap_bucketed", AverageMode::overlap_bucketed}});

class GradientAverage final : public train::GradientExchange {
 public:
  // The set must outlive it.
  GradientAverage(AverageMode mode, const train::ParameterSet& set, std::size_t bucket_bytes,
                  std::size_t last_bucket_bytes = 0);
  // Only for what all ranks have: leaves out ranges of whole groups in ascending order (expert_ranks.hpp). In buckets,
  // each a sum: the ranks' losses already count 1 / R.
  GradientAverage(const train::ParameterSet& set, const std::vector<train::ElementRange>& own,
                  std::size_t bucket_bytes);

  void use(comm::Communicator& communicator) { communicator_ = &communicator; }
  const std::vector<train::ElementRange>& pieces() const {
    return pieces_.buckets();
  }                                              // each is averaged by one collective
  std::vector<std::size_t> sizes_bytes() const;  // of the pieces
  std::size_t collectives_in_step() const { return pieces_.buckets().size(); }

  void begin_step() override { pieces_.begin_step(); }
  train::GradientListener* listener() override { return overlaps() ? &pieces_ : nullptr; }
  void finish() override;
  // Where buckets overlap the backward: the first half of the arena, of the rest the first half, and so on until one
  // bucket is left, so that an update begins before the last ones have been averaged, in few pieces.
  const std::vector<train::ElementRange>& stretches() const override { return stretches_; }
  void finish_stretch(std::size_t index) override;

 private:
  GradientAverage(AverageMode mode, const train::ParameterSet& set, std::vector<train::ElementRange> pieces,
                  comm::Reduction reduction);
  bool overlaps() const { return mode_ == AverageMode::overlap_individual || mode_ == AverageMode::overlap_bucketed; }
  void start(std::size_t piece);

  AverageMode mode_;
  comm::Reduction reduction_;
  const train::ParameterSet& set_;
  ReadyBuckets pieces_;
  std::vector<train::ElementRange> stretches_;
  std::vector<std::size_t> last_of_stretch_;  // pieces
  std::vector<comm::Ticket> tickets_;         // by piece
  comm::Communicator* communicator_ = nullptr;
};

}  // namespace assay::parallel
