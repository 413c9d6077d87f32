#include "communicator.hpp"

#include <assay/comm/long_wait.hpp>

#include <gloo/config.h>

#include <algorithm>
#include <cstring>

#include "reduction.hpp"

namespace assay::comm::gloo_backend {
namespace {

using Clock = std::chrono::steady_clock;
// How often a waiting caller looks whether the case is being ended.
constexpr auto poll_interval = std::chrono::milliseconds(50);
constexpr auto goodbye_limit = std::chrono::seconds(1);

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::string text_of(const char* collective, const compute::Tensor& x) {
  return std::string(collective) + " of " + std::to_string(x.elements()) + " " + name_of(x.dtype);
}

void require(bool holds, const std::string& collective, const char* rule) {
  if (!holds) throw Error(ASSAY_INVALID_ARGUMENT, "gloo: " + collective + ": " + rule);
}

// `larger` holds `factor` times as many elements as `smaller`.
void check(const std::string& name, const compute::Tensor& smaller, const compute::Tensor& larger,
           std::int64_t factor) {
  require(smaller.dtype == larger.dtype, name, "send and receive must have one dtype");
  require(smaller.contiguous() && larger.contiguous(), name, "tensors must be contiguous");
  require(larger.elements() == smaller.elements() * factor, name,
          factor == 1 ? "send and receive must have as many elements"
                      : "the larger tensor must have the ranks' number times as many elements as the smaller");
}

void require_apart(const std::string& name, const compute::Tensor& send, const compute::Tensor& receive) {
  require(!share_memory(send, receive), name, "send and receive must not share memory");
}

}  // namespace

GlooCommunicator::GlooCommunicator(const assay_comm& comm, const Members& members) : comm_(comm), members_(members) {
  const PipeSignalBlocked blocked;
  if (size() > 1) {
    mesh_ = std::make_unique<Mesh>(comm, members);
    collectives_ = std::make_unique<Collectives>(*mesh_);
    mesh_->meet(comm);
    collectives_->open();
  }
  thread_ = std::thread([this] { serve(); });
}

GlooCommunicator::~GlooCommunicator() {
  say_goodbye();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  if (mesh_) mesh_->abort("the communicator is being destroyed");
  work_.notify_one();
  thread_.join();
}

// Gloo ends all waits for a rank that has closed its connections, also where the data had come before. So nobody leaves
// before all have what they wait for.
void GlooCommunicator::say_goodbye() noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (!mesh_ || failure_ || done_ != last_) return;
    lock.unlock();
    enqueue({"goodbye", [this] { collectives_->barrier(); }, 0, false});
    lock.lock();
    const auto end = Clock::now() + goodbye_limit;
    while (!failure_ && done_ != last_ && Clock::now() < end && !comm_.aborted(&comm_))
      progress_.wait_for(lock, poll_interval);
  } catch (const std::exception&) {
    // Then the others learn it when the connections end.
  }
}

std::string GlooCommunicator::description() const {
  const std::string version = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
                              "." + std::to_string(GLOO_VERSION_PATCH);
  return version + (mesh_ ? ", " + mesh_->description() : ", one rank, no network");
}

Ticket GlooCommunicator::all_reduce(const compute::Tensor& send, const compute::Tensor& receive, Reduction reduction) {
  const std::string name = text_of("all_reduce", send);
  check(name, send, receive, 1);
  require_reducible(send.dtype, reduction);
  return enqueue({name,
                  [=, this] {
                    const auto n = static_cast<std::size_t>(send.elements());
                    if (collectives_)
                      collectives_->all_reduce(send.data, receive.data, n, send.dtype, reduction);
                    else
                      gloo_backend::reduce(receive.data, &send.data, 1, n, send.dtype, reduction);
                  },
                  send.bytes()});
}

Ticket GlooCommunicator::reduce_scatter(const compute::Tensor& send, const compute::Tensor& receive,
                                        Reduction reduction) {
  const std::string name = text_of("reduce_scatter", send);
  check(name, receive, send, size());
  require_reducible(send.dtype, reduction);
  return enqueue({name,
                  [=, this] {
                    const auto n = static_cast<std::size_t>(receive.elements());
                    if (collectives_)
                      collectives_->reduce_scatter(send.data, receive.data, n, send.dtype, reduction);
                    else
                      gloo_backend::reduce(receive.data, &send.data, 1, n, send.dtype, reduction);
                  },
                  send.bytes()});
}

Ticket GlooCommunicator::reduce(const compute::Tensor& x, std::int32_t root, Reduction reduction) {
  const std::string name = text_of("reduce", x);
  check(name, x, x, 1);
  require(root >= 0 && root < size(), name, "there is no such root");
  require_reducible(x.dtype, reduction);
  return enqueue({name,
                  [=, this] {
                    const auto n = static_cast<std::size_t>(x.elements());
                    if (collectives_)
                      collectives_->reduce_to(x.data, n, x.dtype, reduction, root);
                    else
                      gloo_backend::reduce(x.data, &x.data, 1, n, x.dtype, reduction);
                  },
                  x.bytes()});
}

Ticket GlooCommunicator::all_gather(const compute::Tensor& send, const compute::Tensor& receive) {
  const std::string name = text_of("all_gather", receive);
  check(name, send, receive, size());
  return enqueue({name,
                  [=, this] {
                    if (collectives_)
                      collectives_->all_gather(send.data, receive.data, send.bytes());
                    else if (receive.data != send.data && send.bytes() > 0)
                      std::memcpy(receive.data, send.data, send.bytes());
                  },
                  receive.bytes()});
}

Ticket GlooCommunicator::broadcast(const compute::Tensor& x, std::int32_t root) {
  const std::string name = text_of("broadcast", x);
  check(name, x, x, 1);
  require(root >= 0 && root < size(), name, "there is no such root");
  return enqueue({name,
                  [=, this] {
                    if (collectives_) collectives_->broadcast(x.data, x.bytes(), root);
                  },
                  x.bytes()});
}

Ticket GlooCommunicator::all_to_all(const compute::Tensor& send, const compute::Tensor& receive) {
  const std::string name = text_of("all_to_all", send);
  check(name, send, receive, 1);
  require(send.elements() % size() == 0, name, "each rank must have an equal part");
  require_apart(name, send, receive);
  return enqueue({name,
                  [=, this] {
                    if (collectives_)
                      collectives_->all_to_all(send.data, receive.data,
                                               send.bytes() / static_cast<std::size_t>(size()));
                    else if (send.bytes() > 0)
                      std::memcpy(receive.data, send.data, send.bytes());
                  },
                  send.bytes()});
}

Ticket GlooCommunicator::all_to_all_v(const compute::Tensor& send, std::span<const std::int64_t> send_rows,
                                      const compute::Tensor& receive, std::span<const std::int64_t> receive_rows) {
  const std::string name = text_of("all_to_all_v", send);
  require(send.dtype == receive.dtype, name, "send and receive must have one dtype");
  require(send.contiguous() && receive.contiguous(), name, "tensors must be contiguous");
  require_apart(name, send, receive);
  require(counts_rows(send, send_rows, size()) && counts_rows(receive, receive_rows, size()), name,
          "each rank must have a count, and they must add up to the tensor's rows");
  require(row_bytes(send) == row_bytes(receive), name,
          "rows of a rank that sends to itself must receive as many bytes as it sends");
  const std::vector<std::size_t> sent = bytes_of_rows(send, send_rows), received = bytes_of_rows(receive, receive_rows);
  const auto own = static_cast<std::size_t>(rank());
  require(sent[own] == received[own], name, "what this rank sends to itself it must receive from itself");
  return enqueue({name,
                  [=, this] {
                    if (collectives_)
                      collectives_->all_to_all_v(send.data, sent, receive.data, received);
                    else if (send.bytes() > 0)
                      std::memcpy(receive.data, send.data, send.bytes());
                  },
                  std::max(send.bytes(), receive.bytes())});
}

Ticket GlooCommunicator::send_receive(const compute::Tensor& send, std::int32_t to, const compute::Tensor& receive,
                                      std::int32_t from) {
  const std::string name =
      text_of("send_receive", send) + " to " + members_.name_of(to) + ", from " + members_.name_of(from);
  require(send.contiguous() && receive.contiguous(), name, "tensors must be contiguous");
  require(to >= 0 && to < size() && from >= 0 && from < size(), name, "there is no such rank");
  require((to == rank()) == (from == rank()), name, "what this rank sends to itself it must receive from itself");
  require(to != rank() || send.bytes() == receive.bytes(), name,
          "a rank that sends to itself must receive as many bytes as it sends");
  require_apart(name, send, receive);
  return enqueue({name,
                  [=, this] {
                    if (collectives_)
                      collectives_->send_receive(send.data, send.bytes(), to, receive.data, receive.bytes(), from);
                    else if (send.bytes() > 0)
                      std::memcpy(receive.data, send.data, send.bytes());
                  },
                  std::max(send.bytes(), receive.bytes())});
}

void GlooCommunicator::require_other_rank(const std::string& name, const compute::Tensor& x, std::int32_t other) const {
  require(x.contiguous(), name, "tensors must be contiguous");
  require(other >= 0 && other < size(), name, "there is no such rank");
  require(other != rank(), name, "a rank sends nothing to itself");
}

Ticket GlooCommunicator::send(const compute::Tensor& x, std::int32_t to) {
  const std::string name = text_of("send", x) + " to " + members_.name_of(to);
  require_other_rank(name, x, to);
  return enqueue({name, [=, this] { collectives_->send(x.data, x.bytes(), to); }, x.bytes()});
}

Ticket GlooCommunicator::receive(const compute::Tensor& x, std::int32_t from) {
  const std::string name = text_of("receive", x) + " from " + members_.name_of(from);
  require_other_rank(name, x, from);
  return enqueue({name, [=, this] { collectives_->receive(x.data, x.bytes(), from); }, x.bytes()});
}

void GlooCommunicator::throw_if_failed() const {
  if (failure_) throw Error(*failure_);
}

Ticket GlooCommunicator::enqueue(Job job) {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  queue_.push_back(std::move(job));
  work_.notify_one();
  return ++last_;
}

void GlooCommunicator::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return ending_ || (!queue_.empty() && !failure_); });
    if (ending_) return;
    run_next(lock);
    progress_.notify_all();
  }
}

void GlooCommunicator::run_next(std::unique_lock<std::mutex>& lock) {
  const Job job = std::move(queue_.front());
  queue_.pop_front();
  lock.unlock();
  const auto begin = Clock::now();
  std::optional<Error> failure;
  try {
    job.run();
  } catch (const Error& e) {
    failure.emplace(e.status(), "gloo: " + job.name + ": " + e.what());
  } catch (const std::exception& e) {
    failure.emplace(ASSAY_INTERNAL, "gloo: " + job.name + ": " + e.what());
  }
  const double busy_ms = milliseconds_since(begin);
  lock.lock();
  failure_ = std::move(failure);
  if (failure_) return;
  ++done_;
  if (!job.counted) return;
  ++totals_.collectives;
  totals_.bytes += job.bytes;
  totals_.busy_ms += busy_ms;
}

void GlooCommunicator::wait_until_done(Ticket ticket, std::unique_lock<std::mutex>& lock) {
  const auto ended = [&] { return failure_ || done_ >= ticket; };
  if (progress_.wait_for(lock, poll_interval, ended)) return throw_if_failed();
  const LongWait waiting(comm_);
  while (!progress_.wait_for(lock, poll_interval, ended)) {
    lock.unlock();
    if (comm_.aborted(&comm_) && mesh_) mesh_->abort("the case is being ended because another rank failed");
    lock.lock();
  }
  throw_if_failed();
}

void GlooCommunicator::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  throw_if_failed();
  require(ticket <= last_, "wait", "no collective has that ticket yet");
  if (done_ >= ticket) return;
  const auto begin = Clock::now();
  wait_until_done(ticket, lock);
  totals_.exposed_ms += milliseconds_since(begin);
}

Ticket GlooCommunicator::end_series() {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  return last_;
}

void GlooCommunicator::synchronize() {
  std::unique_lock lock(mutex_);
  wait_until_done(last_, lock);
}

void GlooCommunicator::barrier() {
  const Ticket ticket = enqueue({"barrier",
                                 [this] {
                                   if (collectives_) collectives_->barrier();
                                 },
                                 0, false});
  std::unique_lock lock(mutex_);
  wait_until_done(ticket, lock);
}

Totals GlooCommunicator::take_totals() {
  std::unique_lock lock(mutex_);
  wait_until_done(last_, lock);
  return std::exchange(totals_, Totals{});
}

}  // namespace assay::comm::gloo_backend
