// The average of gradients over the replicas of a model that ranks share: of each element over the ranks that have the
// same place in their replicas. Every rank of these then has the same bits.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/train/gradient_exchange.hpp>
#include <cstddef>
#include <vector>

namespace assay::parallel {

class ReplicaAverage final : public train::GradientExchange {
 public:
  // `within`: what the ranks of a replica do to their gradients, or null. It announces all that it completes, or none
  // (GradientExchange::announce_to). One that announces none completes those of `late`, a range of whole groups or
  // none, when it finishes, and nothing of the others. The set and `within` must outlive it, and it the steps of
  // `within`.
  ReplicaAverage(const train::ParameterSet& set, std::size_t bucket_bytes, const train::ElementRange& late = {},
                 train::GradientExchange* within = nullptr);

  // nullptr: the step goes without communication.
  void use(comm::Communicator* communicator) { communicator_ = communicator; }
  // All elements but those of `late`. Each piece ends where a stretch of `within` does.
  const std::vector<train::ElementRange>& pieces() const { return buckets_.buckets(); }

  // ---- train::GradientExchange
  void begin_step() override;
  train::GradientListener* listener() override { return within_announces_ ? nullptr : &buckets_; }
  // Averages what no backward has announced, too.
  void finish() override;
  const std::vector<train::ElementRange>& stretches() const override;
  void finish_stretch(std::size_t index) override;

 private:
  comm::Ticket start(const train::ElementRange& range);
  void wait(comm::Ticket ticket) const;

  const train::ParameterSet& set_;
  ReadyBuckets buckets_;
  train::ElementRange late_;
  train::GradientExchange* within_;
  bool within_announces_;  // the buckets hear of gradients from `within_`
  comm::Communicator* communicator_ = nullptr;
  std::vector<comm::Ticket> tickets_;  // by piece
};

}  // namespace assay::parallel
