// The ranks that share a model's experts ("expert parallel"), beside data parallelism of the rest: each rank has
// different tokens and E / R experts of each layer.
//
// Scaling: a step's loss is the mean over all ranks' tokens. A rank's experts get rows of all ranks, so their gradients
// already are sums over all tokens, while every other parameter's are of this rank's tokens, and collectives sum them.
// Both are right if each rank's loss counts 1 / R: no gradient is scaled afterwards.
//
// The all-to-alls should have a separate communicator: collectives of one run in the order of the calls, and sums of
// gradients would hold up the rows that backward waits for. Its totals are then the time of dispatch and combine.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/expert_exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::parallel {

struct ExpertRanksShape {
  std::int64_t rank = 0, ranks = 1;
  std::int64_t experts = 0;   // of a layer, all ranks' together
  std::int64_t rows = 0;      // N k that a rank's tokens make
  std::int64_t capacity = 0;  // that a rank can receive
  std::size_t layers = 1;     // with experts
};

// Over the layers of forwards since it was last taken.
struct ExpertLoad {
  std::uint64_t forwards = 0;  // of a layer
  // Rows of the busiest rank over the mean of the ranks, mean and largest of the forwards; 1 where they are balanced.
  double rank_imbalance = 0, largest_rank_imbalance = 0;
  // Of an expert, over all ranks' tokens: least and most of a forward, means of the forwards; and the standard
  // deviation over the mean, likewise.
  double least_rows = 0, mean_rows = 0, most_rows = 0, variation = 0;
  std::uint64_t received_rows = 0;  // by this rank, its own included
  // To other ranks, forwards and backwards.
  std::uint64_t dispatched_bytes = 0, combined_bytes = 0;
};

class ExpertRanks final : public train::ExpertExchange {
 public:
  // Throws INVALID_ARGUMENT where ranks cannot share the experts.
  explicit ExpertRanks(const ExpertRanksShape& shape);

  // nullptr: the step goes without communication. A rank then has its own rows in the place of the others', by the
  // counts of the last step that communicated.
  void use(comm::Communicator* communicator) { communicator_ = communicator; }
  // Counts are those of balanced routing, whatever is read: of a device that carries nothing out.
  void assume_balanced() { is_balanced_ = true; }
  ExpertLoad take_load();
  // By rank and expert, of the last forward of a layer; empty before it.
  const std::vector<std::int32_t>& counts(std::size_t layer) const { return layers_[layer].counts; }

  // ---- train::ExpertExchange
  Ticket tell_counts(compute::Backend& backend, const compute::Tensor& counts,
                     const compute::Tensor& all_counts) override;
  void agree(compute::Backend& backend, std::size_t layer, const compute::Tensor& all_counts,
             const compute::Tensor& experts) override;
  std::int64_t received_rows(std::size_t layer, std::int64_t capacity) const override;
  Ticket to_experts(compute::Backend& backend, std::size_t layer, const compute::Tensor& rows,
                    const compute::Tensor& received) override;
  Ticket to_tokens(compute::Backend& backend, std::size_t layer, const compute::Tensor& received,
                   const compute::Tensor& rows) override;
  void wait(compute::Backend& backend, Ticket ticket, std::initializer_list<compute::Tensor> used) override;

 private:
  struct Layer {
    std::vector<std::int32_t> counts;          // [R, E]; empty: not known yet
    std::vector<std::int64_t> sent, received;  // rows by rank
  };
  std::int64_t own_experts() const { return shape_.experts / shape_.ranks; }
  std::int64_t count(const Layer& layer, std::int64_t from, std::int64_t expert) const {
    return layer.counts[static_cast<std::size_t>(from * shape_.experts + expert)];
  }
  // Rows from one rank to another.
  std::int64_t rows_between(const Layer& layer, std::int64_t from, std::int64_t to) const;
  void balance(Layer& layer) const;
  void check(const Layer& layer, std::size_t index) const;
  void note(const Layer& layer);
  std::uint64_t bytes_to_others(const compute::Tensor& rows, const std::vector<std::int64_t>& by_rank) const;

  ExpertRanksShape shape_;
  bool is_balanced_ = false;
  std::vector<Layer> layers_;
  std::vector<std::int32_t> numbers_;  // of received rows' experts, scratch
  comm::Communicator* communicator_ = nullptr;
  ExpertLoad load_;  // sums, until it is taken
};

}  // namespace assay::parallel
