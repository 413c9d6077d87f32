// What the ranks that share a model's experts ("expert parallel") exchange within a forward and a backward. The model
// decides when (models/expert_travel.hpp); the implementation (parallel::ExpertRanks) moves the rows. Rank r of R has
// the r-th of R equal parts of the experts of each layer.
//
// A forward of a layer begins with the counts: every rank learns how many rows each has for which expert, and the host
// reads them. They hold for all that this layer sends until its next forward. Rows of a rank are sorted by expert, and
// so by the rank that they go to; where they are received they lie in the order of the ranks, and of one rank by
// expert.
//
// Calls with a ticket enqueue, and their memory must be left alone until wait() has been called with it.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace assay::train {

class ExpertExchange {
 public:
  using Ticket = std::uint64_t;  // of a call, and of all before it; 0: there is nothing to wait for

  ExpertExchange() = default;
  ExpertExchange(const ExpertExchange&) = delete;
  ExpertExchange& operator=(const ExpertExchange&) = delete;
  virtual ~ExpertExchange() = default;

  // counts: i32 [E], this rank's rows for each expert; all_counts: i32 [R, E], those of every rank.
  virtual Ticket tell_counts(compute::Backend& backend, const compute::Tensor& counts,
                             const compute::Tensor& all_counts) = 0;
  // Reads the counts, after wait(), and blocks the host for it. `experts` (i32 [C, 1]) becomes the number of each
  // received row's expert among this rank's, and -1 behind them. Throws INVALID_ARGUMENT where more than C rows would
  // come, on every rank.
  virtual void agree(compute::Backend& backend, std::size_t layer, const compute::Tensor& all_counts,
                     const compute::Tensor& experts) = 0;
  // How many of the C rows that `experts` has room for have come: what lies behind them need not be touched. C before
  // the first forward of a layer.
  virtual std::int64_t received_rows(std::size_t layer, std::int64_t capacity) const = 0;
  // rows: [n, ...], as many rows as this rank has; received: [C, ...], whose first rows are written. to_tokens takes
  // what to_experts brought back to the same places.
  virtual Ticket to_experts(compute::Backend& backend, std::size_t layer, const compute::Tensor& rows,
                            const compute::Tensor& received) = 0;
  virtual Ticket to_tokens(compute::Backend& backend, std::size_t layer, const compute::Tensor& received,
                           const compute::Tensor& rows) = 0;
  // What is enqueued on the backend from here on sees the results. `used`: what the calls that are waited for have sent
  // and received.
  virtual void wait(compute::Backend& backend, Ticket ticket, std::initializer_list<compute::Tensor> used) = 0;
};

// Replaces the ranks while a step is recorded (step_recording.hpp): reports to the recorder what is read and written,
// and for how long, and exchanges nothing.
class RecordedExpertExchange final : public ExpertExchange {
 public:
  Ticket tell_counts(compute::Backend& backend, const compute::Tensor& counts,
                     const compute::Tensor& all_counts) override {
    return moved(backend, counts, all_counts);
  }
  void agree(compute::Backend& backend, std::size_t, const compute::Tensor& all_counts,
             const compute::Tensor& experts) override {
    (void)moved(backend, all_counts, experts);
  }
  std::int64_t received_rows(std::size_t, std::int64_t capacity) const override { return capacity; }
  Ticket to_experts(compute::Backend& backend, std::size_t, const compute::Tensor& rows,
                    const compute::Tensor& received) override {
    return moved(backend, rows, received);
  }
  Ticket to_tokens(compute::Backend& backend, std::size_t, const compute::Tensor& received,
                   const compute::Tensor& rows) override {
    return moved(backend, received, rows);
  }
  void wait(compute::Backend& backend, Ticket, std::initializer_list<compute::Tensor> used) override {
    for (const compute::Tensor& t : used) backend.download(nullptr, t);
  }

 private:
  static Ticket moved(compute::Backend& backend, const compute::Tensor& from, const compute::Tensor& to) {
    backend.download(nullptr, from);
    backend.upload(to, nullptr);
    return 1;
  }
};

}  // namespace assay::train
