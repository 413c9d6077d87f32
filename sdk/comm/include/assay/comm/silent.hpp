// A communicator that sends and receives nothing: with it instead of a real one, a step does everything except
// communication.
#pragma once
#include <assay/comm/communicator.hpp>

namespace assay::comm {

class SilentCommunicator : public Communicator {
 public:
  SilentCommunicator(std::int32_t rank, std::int32_t size) : rank_(rank), size_(size) {}

  const char* backend() const override { return "none"; }
  std::string description() const override { return "no communication"; }
  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }
  void register_memory(void*, std::size_t) override {}
  Ticket all_reduce(const compute::Tensor&, const compute::Tensor&, Reduction) override { return 0; }
  Ticket reduce_scatter(const compute::Tensor&, const compute::Tensor&, Reduction) override { return 0; }
  Ticket reduce(const compute::Tensor&, std::int32_t, Reduction) override { return 0; }
  Ticket all_gather(const compute::Tensor&, const compute::Tensor&) override { return 0; }
  Ticket broadcast(const compute::Tensor&, std::int32_t) override { return 0; }
  Ticket all_to_all(const compute::Tensor&, const compute::Tensor&) override { return 0; }
  Ticket all_to_all_v(const compute::Tensor&, std::span<const std::int64_t>, const compute::Tensor&,
                      std::span<const std::int64_t>) override {
    return 0;
  }
  Ticket send_receive(const compute::Tensor&, std::int32_t, const compute::Tensor&, std::int32_t) override { return 0; }
  Ticket send(const compute::Tensor&, std::int32_t) override { return 0; }
  Ticket receive(const compute::Tensor&, std::int32_t) override { return 0; }
  Ticket end_series() override { return 0; }
  bool captures() const override { return true; }
  void wait(Ticket) override {}
  void synchronize() override {}
  void barrier() override {}
  Totals take_totals() override { return {}; }

 private:
  std::int32_t rank_, size_;
};

// A communicator and its silent counterpart; one of the two is in use.
class SilenceableCommunicator {
 public:
  SilenceableCommunicator() = default;
  explicit SilenceableCommunicator(std::unique_ptr<Communicator> real)
      : real_(std::move(real)), silent_(std::make_unique<SilentCommunicator>(real_->rank(), real_->size())) {}

  void silence(bool silent) { is_silent_ = silent; }
  explicit operator bool() const { return real_ != nullptr; }
  Communicator& operator*() const { return is_silent_ ? *silent_ : *real_; }
  Communicator* operator->() const { return &**this; }

 private:
  std::unique_ptr<Communicator> real_, silent_;
  bool is_silent_ = false;
};

}  // namespace assay::comm
