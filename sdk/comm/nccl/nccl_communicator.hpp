// assay::comm::Communicator over a session: checks arguments, and says them in NCCL's terms.
#pragma once
#include <assay/comm/communicator.hpp>

#include <memory>
#include <string>

#include "session.hpp"

namespace assay::comm::nccl {

class NcclCommunicator final : public Communicator {
 public:
  // `description`: the library and what limits it.
  NcclCommunicator(std::shared_ptr<Session> session, std::int32_t rank, std::int32_t size, std::string description);
  ~NcclCommunicator() override { session_->close(); }

  const char* backend() const override { return "nccl"; }
  std::string description() const override;
  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }
  void register_memory(void* address, std::size_t bytes) override;
  std::unique_ptr<LibraryMemory> allocate_registered(std::size_t bytes, Registration best) override;
  Ticket all_reduce(const compute::Tensor& send, const compute::Tensor& receive, Reduction reduction) override;
  Ticket reduce_scatter(const compute::Tensor& send, const compute::Tensor& receive, Reduction reduction) override;
  Ticket reduce(const compute::Tensor& x, std::int32_t root, Reduction reduction) override;
  Ticket all_gather(const compute::Tensor& send, const compute::Tensor& receive) override;
  Ticket broadcast(const compute::Tensor& x, std::int32_t root) override;
  Ticket all_to_all(const compute::Tensor& send, const compute::Tensor& receive) override;
  Ticket all_to_all_v(const compute::Tensor& send, std::span<const std::int64_t> send_rows,
                      const compute::Tensor& receive, std::span<const std::int64_t> receive_rows) override;
  Ticket send_receive(const compute::Tensor& send, std::int32_t to, const compute::Tensor& receive,
                      std::int32_t from) override;
  Ticket send(const compute::Tensor& x, std::int32_t to) override;
  Ticket receive(const compute::Tensor& x, std::int32_t from) override;
  void begin_series() override { session_->begin_series(); }
  Ticket end_series() override { return session_->end_series(); }
  bool captures() const override { return true; }
  std::unique_ptr<compute::Graph> watch(std::unique_ptr<compute::Graph> graph) override;
  // exposed_ms is what lies between two events around the wait, so each wait costs a few microseconds also when the
  // collective is done.
  void wait(Ticket ticket) override { session_->wait(ticket); }
  void synchronize() override { session_->synchronize(); }
  void barrier() override { session_->barrier(); }
  Totals take_totals() override { return session_->take_totals(); }

 private:
  const std::shared_ptr<Session> session_;
  const std::int32_t rank_, size_;
  const std::string description_;
  int asked_to_register_ = 0, not_registered_ = 0, symmetric_ = 0;
};

}  // namespace assay::comm::nccl
