// The communicator over Gloo: a queue of collectives, and the thread that runs them in order beside the caller.
#pragma once
#include <assay/comm/communicator.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "collectives.hpp"
#include "mesh.hpp"

namespace assay::comm::gloo_backend {

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const assay_comm& comm, const Members& members);
  // Collectives that have not ended are given up. Waits up to a second for the other ranks to be done with what this
  // one sent.
  ~GlooCommunicator() override;

  const char* backend() const override { return "gloo"; }
  std::string description() const override;
  std::int32_t rank() const override { return members_.rank(); }
  std::int32_t size() const override { return members_.size(); }
  void register_memory(void*, std::size_t) override {}  // TCP sends from any memory

  Ticket all_reduce(const compute::Tensor& send, const compute::Tensor& receive, Reduction) override;
  Ticket reduce_scatter(const compute::Tensor& send, const compute::Tensor& receive, Reduction) override;
  Ticket reduce(const compute::Tensor& x, std::int32_t root, Reduction) override;
  Ticket all_gather(const compute::Tensor& send, const compute::Tensor& receive) override;
  Ticket broadcast(const compute::Tensor& x, std::int32_t root) override;
  Ticket all_to_all(const compute::Tensor& send, const compute::Tensor& receive) override;
  Ticket all_to_all_v(const compute::Tensor& send, std::span<const std::int64_t> send_rows,
                      const compute::Tensor& receive, std::span<const std::int64_t> receive_rows) override;
  Ticket send_receive(const compute::Tensor& send, std::int32_t to, const compute::Tensor& receive,
                      std::int32_t from) override;
  Ticket send(const compute::Tensor& x, std::int32_t to) override;
  Ticket receive(const compute::Tensor& x, std::int32_t from) override;
  Ticket end_series() override;  // its collectives are timed one by one: the caller waits for them anyway
  void wait(Ticket) override;
  void synchronize() override;
  void barrier() override;
  Totals take_totals() override;

 private:
  struct Job {
    std::string name;  // for errors: "all_reduce of 1000 fp32"
    std::function<void()> run;
    std::uint64_t bytes = 0;
    bool counted = true;  // in the totals
  };

  void require_other_rank(const std::string& name, const compute::Tensor& x, std::int32_t other) const;
  Ticket enqueue(Job job);
  void serve();  // the thread
  void run_next(std::unique_lock<std::mutex>& lock);
  void wait_until_done(Ticket, std::unique_lock<std::mutex>& lock);  // throws the communicator's error
  void throw_if_failed() const;
  void say_goodbye() noexcept;

  const assay_comm& comm_;
  const Members members_;
  std::unique_ptr<Mesh> mesh_;                // none with one rank
  std::unique_ptr<Collectives> collectives_;  // of the thread

  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::deque<Job> queue_;
  Ticket last_ = 0, done_ = 0;
  std::optional<Error> failure_;
  bool ending_ = false;
  Totals totals_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace assay::comm::gloo_backend
