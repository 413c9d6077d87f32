#include "assay/parallel/expert_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace assay::parallel {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

namespace {

std::int64_t total(const std::vector<std::int64_t>& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

// As many rows as both hold.
void copy_first_rows(Backend& backend, const Tensor& from, const Tensor& to) {
  const std::int64_t rows = std::min(from.dim(0), to.dim(0));
  backend.run(op::Copy{.to = to.slice(0, 0, rows), .from = from.slice(0, 0, rows)});
}

std::string with_two_digits(double x) {
  const auto hundredths = static_cast<std::int64_t>(std::ceil(x * 100));
  const std::string rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (rest.size() < 2 ? "0" : "") + rest;
}

}  // namespace

ExpertRanks::ExpertRanks(const ExpertRanksShape& shape) : shape_(shape), layers_(shape.layers) {
  if (shape.ranks < 1 || shape.experts % shape.ranks != 0)
    throw Error(ASSAY_INVALID_ARGUMENT, "experts " + std::to_string(shape.experts) + " is not a multiple of the " +
                                            std::to_string(shape.ranks) + " ranks that share them");
}

std::int64_t ExpertRanks::rows_between(const Layer& layer, std::int64_t from, std::int64_t to) const {
  std::int64_t rows = 0;
  for (std::int64_t e = to * own_experts(); e < (to + 1) * own_experts(); ++e) rows += count(layer, from, e);
  return rows;
}

ExpertRanks::Ticket ExpertRanks::tell_counts(Backend&, const Tensor& counts, const Tensor& all_counts) {
  return communicator_ ? communicator_->all_gather(counts, all_counts.flat()) : 0;
}

// All rows are dealt out in turn, to the ranks and of a rank to its experts: a rank receives as many as it sends,
// whether or not they divide among the experts.
void ExpertRanks::balance(Layer& layer) const {
  std::fill(layer.counts.begin(), layer.counts.end(), 0);
  for (std::int64_t row = 0; row < shape_.ranks * shape_.rows; ++row) {
    const std::int64_t from = row / shape_.rows, to = row % shape_.ranks;
    const std::int64_t expert = to * own_experts() + row / shape_.ranks % own_experts();
    ++layer.counts[static_cast<std::size_t>(from * shape_.experts + expert)];
  }
}

// All ranks have all counts, and so all of them end with this text: none waits for one that has failed.
void ExpertRanks::check(const Layer& layer, std::size_t index) const {
  // First that the counts are possible at all: no room would be enough for what an exchange has broken.
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    const auto begin = layer.counts.begin() + static_cast<std::ptrdiff_t>(rank * shape_.experts);
    const auto end = begin + static_cast<std::ptrdiff_t>(shape_.experts);
    const std::int64_t sent = std::accumulate(begin, end, std::int64_t{0});
    if (sent != shape_.rows || std::any_of(begin, end, [](std::int32_t n) { return n < 0; }))
      throw Error(ASSAY_WRONG_RESULT, "experts, layer " + std::to_string(index) + ": the counts of rank " +
                                          std::to_string(rank) + " are of " + std::to_string(sent) +
                                          " rows; its tokens have made " + std::to_string(shape_.rows));
  }
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    std::int64_t received = 0;
    for (std::int64_t other = 0; other < shape_.ranks; ++other) received += rows_between(layer, other, rank);
    if (received > shape_.capacity)
      throw Error(ASSAY_INVALID_ARGUMENT,
                  "experts, layer " + std::to_string(index) + ": rank " + std::to_string(rank) + " would receive " +
                      std::to_string(received) + " rows, and there is room for " + std::to_string(shape_.capacity) +
                      "; raise capacity_factor to " +
                      with_two_digits(static_cast<double>(received) / static_cast<double>(shape_.rows)) +
                      " or more: no row is dropped");
  }
}

void ExpertRanks::agree(Backend& backend, std::size_t index, const Tensor& all_counts, const Tensor& experts) {
  Layer& layer = layers_[index];
  if (communicator_) {
    layer.counts.resize(static_cast<std::size_t>(shape_.ranks * shape_.experts));
    backend.download(layer.counts.data(), all_counts);
    if (is_balanced_) balance(layer);
    check(layer, index);
    layer.sent.clear(), layer.received.clear();
    for (std::int64_t other = 0; other < shape_.ranks; ++other) {
      layer.sent.push_back(rows_between(layer, shape_.rank, other));
      layer.received.push_back(rows_between(layer, other, shape_.rank));
    }
    note(layer);
  }
  if (layer.counts.empty()) return;  // the step is being prepared
  numbers_.clear();
  for (std::int64_t from = 0; from < shape_.ranks; ++from)
    for (std::int64_t e = 0; e < own_experts(); ++e)
      numbers_.insert(numbers_.end(), static_cast<std::size_t>(count(layer, from, shape_.rank * own_experts() + e)),
                      static_cast<std::int32_t>(e));
  numbers_.resize(static_cast<std::size_t>(shape_.capacity), -1);
  backend.upload(experts, numbers_.data());
}

std::int64_t ExpertRanks::received_rows(std::size_t index, std::int64_t capacity) const {
  return layers_[index].counts.empty() ? capacity : total(layers_[index].received);
}

ExpertRanks::Ticket ExpertRanks::to_experts(Backend& backend, std::size_t index, const Tensor& rows,
                                            const Tensor& received) {
  if (!communicator_) return copy_first_rows(backend, rows, received), 0;
  const Layer& layer = layers_[index];
  load_.dispatched_bytes += bytes_to_others(rows, layer.sent);
  return communicator_->all_to_all_v(rows, layer.sent, received.slice(0, 0, total(layer.received)), layer.received);
}

ExpertRanks::Ticket ExpertRanks::to_tokens(Backend& backend, std::size_t index, const Tensor& received,
                                           const Tensor& rows) {
  if (!communicator_) return copy_first_rows(backend, received, rows), 0;
  const Layer& layer = layers_[index];
  load_.combined_bytes += bytes_to_others(rows, layer.received);
  return communicator_->all_to_all_v(received.slice(0, 0, total(layer.received)), layer.received, rows, layer.sent);
}

void ExpertRanks::wait(Backend&, Ticket ticket, std::initializer_list<Tensor>) {
  if (communicator_ && ticket != 0) communicator_->wait(ticket);
}

std::uint64_t ExpertRanks::bytes_to_others(const Tensor& rows, const std::vector<std::int64_t>& by_rank) const {
  const std::int64_t others = total(by_rank) - by_rank[static_cast<std::size_t>(shape_.rank)];
  return static_cast<std::uint64_t>(others) * comm::row_bytes(rows);
}

void ExpertRanks::note(const Layer& layer) {
  std::int64_t busiest = 0, least = shape_.rows * shape_.ranks, most = 0;
  const double mean = static_cast<double>(shape_.rows * shape_.ranks) / static_cast<double>(shape_.experts);
  double squares = 0;
  for (std::int64_t owner = 0; owner < shape_.ranks; ++owner) {
    std::int64_t of_owner = 0;
    for (std::int64_t e = owner * own_experts(); e < (owner + 1) * own_experts(); ++e) {
      std::int64_t of_expert = 0;
      for (std::int64_t from = 0; from < shape_.ranks; ++from) of_expert += count(layer, from, e);
      least = std::min(least, of_expert), most = std::max(most, of_expert);
      squares += (static_cast<double>(of_expert) - mean) * (static_cast<double>(of_expert) - mean);
      of_owner += of_expert;
    }
    busiest = std::max(busiest, of_owner);
  }
  const double imbalance = static_cast<double>(busiest) / static_cast<double>(shape_.rows);
  ++load_.forwards;
  load_.rank_imbalance += imbalance;
  load_.largest_rank_imbalance = std::max(load_.largest_rank_imbalance, imbalance);
  load_.least_rows += static_cast<double>(least);
  load_.mean_rows += mean;
  load_.most_rows += static_cast<double>(most);
  load_.variation += std::sqrt(squares / static_cast<double>(shape_.experts)) / mean;
  load_.received_rows += static_cast<std::uint64_t>(total(layer.received));
}

ExpertLoad ExpertRanks::take_load() {
  ExpertLoad load = std::exchange(load_, ExpertLoad{});
  if (load.forwards == 0) return load;
  const auto forwards = static_cast<double>(load.forwards);
  for (double* mean : {&load.rank_imbalance, &load.least_rows, &load.mean_rows, &load.most_rows, &load.variation})
    *mean /= forwards;
  return load;
}

}  // namespace assay::parallel
