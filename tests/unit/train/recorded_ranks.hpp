// Ranks of one process whose collectives are recorded, and carried out together when all have made their calls: right,
// or with one fault.
#pragma once
#include <assay/comm/communicator.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace assay::test {

enum class Fault {
  none,
  broadcast,        // of rank 0's data
  sum,              // that is not divided
  left_out,         // the second collective does nothing
  swapped,          // the first two, as far as the shorter one reaches, get each other's result
  on_rank_0_alone,  // the others keep their own
  last_element      // of each collective is left as it was
};

class RecordedRanks {
 public:
  explicit RecordedRanks(std::int32_t ranks) {
    for (std::int32_t rank = 0; rank < ranks; ++rank) communicators_.push_back(std::make_unique<Recorder>(rank, ranks));
  }
  comm::Communicator& rank(std::size_t rank) { return *communicators_[rank]; }
  // What a rank has called so far: where in its memory from `begin` on, and how many elements.
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> calls_of(std::size_t rank, const float* begin) const {
    std::vector<std::pair<std::ptrdiff_t, std::size_t>> calls;
    for (const Call& call : communicators_[rank]->calls) calls.emplace_back(call.data - begin, call.elements);
    return calls;
  }

  // In place, fp32, as GradientAverage calls them.
  void carry_out(Fault fault) {
    std::vector<std::vector<float>> averages;
    for (std::size_t call = 0; call < calls(); ++call) {
      std::vector<double> sums(size_of(call));
      for (const auto& c : communicators_)
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(c->calls[call].data[i]);
      const double divisor = fault == Fault::sum ? 1 : static_cast<double>(communicators_.size());
      auto& average = averages.emplace_back();
      for (const double s : sums) average.push_back(static_cast<float>(s / divisor));
      if (fault == Fault::broadcast)
        average.assign(communicators_[0]->calls[call].data, communicators_[0]->calls[call].data + sums.size());
    }
    if (fault == Fault::swapped)
      std::swap_ranges(averages[0].begin(), averages[0].begin() + static_cast<std::ptrdiff_t>(size_of(1)),
                       averages[1].begin());
    for (const auto& c : communicators_)
      for (std::size_t call = 0; call < calls(); ++call) {
        if (fault == Fault::left_out && call == 1) continue;
        if (fault == Fault::on_rank_0_alone && c != communicators_[0]) continue;
        const std::size_t n = size_of(call) - (fault == Fault::last_element ? 1 : 0);
        std::copy_n(averages[call].begin(), n, c->calls[call].data);
      }
  }

 private:
  struct Call {
    float* data;
    std::size_t elements;
  };
  class Recorder : public comm::Communicator {
   public:
    Recorder(std::int32_t rank, std::int32_t size) : rank_(rank), size_(size) {}
    std::vector<Call> calls;

    const char* backend() const override { return "recorded"; }
    std::string description() const override { return "recorded"; }
    std::int32_t rank() const override { return rank_; }
    std::int32_t size() const override { return size_; }
    void register_memory(void*, std::size_t) override {}
    comm::Ticket all_reduce(const compute::Tensor& send, const compute::Tensor&, comm::Reduction) override {
      calls.push_back({static_cast<float*>(send.data), static_cast<std::size_t>(send.elements())});
      return calls.size();
    }
    comm::Ticket reduce_scatter(const compute::Tensor&, const compute::Tensor&, comm::Reduction) override { return 0; }
    comm::Ticket all_gather(const compute::Tensor&, const compute::Tensor&) override { return 0; }
    comm::Ticket reduce(const compute::Tensor&, std::int32_t, comm::Reduction) override { return 0; }
    comm::Ticket broadcast(const compute::Tensor&, std::int32_t) override { return 0; }
    comm::Ticket all_to_all(const compute::Tensor&, const compute::Tensor&) override { return 0; }
    comm::Ticket all_to_all_v(const compute::Tensor&, std::span<const std::int64_t>, const compute::Tensor&,
                              std::span<const std::int64_t>) override {
      return 0;
    }
    comm::Ticket send_receive(const compute::Tensor&, std::int32_t, const compute::Tensor&, std::int32_t) override {
      return 0;
    }
    comm::Ticket send(const compute::Tensor&, std::int32_t) override { return 0; }
    comm::Ticket receive(const compute::Tensor&, std::int32_t) override { return 0; }
    comm::Ticket end_series() override { return calls.size(); }
    void wait(comm::Ticket) override {}
    void synchronize() override {}
    void barrier() override {}
    comm::Totals take_totals() override { return {}; }

   private:
    std::int32_t rank_, size_;
  };

  std::size_t calls() const { return communicators_[0]->calls.size(); }
  std::size_t size_of(std::size_t call) const { return communicators_[0]->calls[call].elements; }

  std::vector<std::unique_ptr<Recorder>> communicators_;
};

}  // namespace assay::test
