// Which ranks of a case a communicator joins (Options::members): for the libraries of communicators, all by one rule.
#pragma once
#include <assay/comm/communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace assay::comm {

class Members {
 public:
  // Of all ranks of the case.
  explicit Members(const assay_comm& comm) : Members(comm, {}) {}
  // As Options::members says. INVALID_ARGUMENT for a list that holds a rank twice, or one that does not exist, or that
  // leaves this one out.
  Members(const assay_comm& comm, std::vector<std::int32_t> ranks) : ranks_(std::move(ranks)) {
    if (ranks_.empty()) {
      ranks_.resize(static_cast<std::size_t>(comm.rank_count));
      std::iota(ranks_.begin(), ranks_.end(), 0);
    }
    std::vector<std::int32_t> sorted = ranks_;
    std::sort(sorted.begin(), sorted.end());
    const auto own = std::find(ranks_.begin(), ranks_.end(), comm.rank);
    if (own == ranks_.end() || sorted.front() < 0 || sorted.back() >= comm.rank_count ||
        std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      throw Error(ASSAY_INVALID_ARGUMENT, "the members of a communicator of rank " + std::to_string(comm.rank) +
                                              " are " + text() + "; expected different ranks below " +
                                              std::to_string(comm.rank_count) + ", and this one among them");
    rank_ = static_cast<std::int32_t>(own - ranks_.begin());
    first_ = sorted.front();
  }

  std::int32_t rank() const { return rank_; }  // this one's number within the communicator
  std::int32_t size() const { return static_cast<std::int32_t>(ranks_.size()); }
  // The case's number of a rank.
  std::int32_t of_case(std::int32_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  // By that number: "rank 3". One that there is not keeps its own.
  std::string name_of(std::int32_t rank) const {
    return "rank " + std::to_string(rank >= 0 && rank < size() ? of_case(rank) : rank);
  }
  // The least of the case's numbers: no other communicator of the call has it.
  std::int32_t first() const { return first_; }

 private:
  std::string text() const {
    std::string text;
    for (const std::int32_t rank : ranks_) text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return text;
  }

  std::vector<std::int32_t> ranks_;
  std::int32_t rank_ = 0, first_ = 0;
};

}  // namespace assay::comm
