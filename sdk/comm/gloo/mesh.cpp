#include "mesh.hpp"

#include <gloo/transport/tcp/device.h>
#include <pthread.h>
#include <signal.h>

#include <cstring>

namespace assay::comm::gloo_backend {
namespace {

// Distinguishes the communicators of a case: how many this rank has made before. All ranks make them in one order.
std::string communicator_name(const assay_comm& comm) {
  std::int64_t count = 0;
  const std::string key = "gloo/communicators/" + std::to_string(comm.rank);
  if (const assay_status s = comm.add(&comm, to_abi(key), 1, &count); s != ASSAY_OK) throw Error(s, "");
  return "gloo/" + std::to_string(count);
}

void exchange(const assay_comm& comm, const std::string& name, const std::vector<char>& mine, std::vector<char>& all) {
  all.resize(mine.size() * static_cast<std::size_t>(comm.rank_count));
  if (const assay_status s = comm.exchange(&comm, to_abi(name), comm.timeout_ms, mine.data(), mine.size(), all.data());
      s != ASSAY_OK)
    throw Error(s, "");
}

}  // namespace

PipeSignalBlocked::PipeSignalBlocked() {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}
PipeSignalBlocked::~PipeSignalBlocked() {
  if (was_blocked_) return;
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  // One that has come meanwhile must not be delivered when the mask is lifted.
  const timespec none{};
  while (sigtimedwait(&pipe, nullptr, &none) == SIGPIPE) continue;
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

Mesh::Mesh(const assay_comm& comm, const Members& members)
    : members_(members),
      rank_(members.rank()),
      size_(members.size()),
      timeout_(comm.timeout_ms),
      address_(comm.address) {
  try {
    connect(comm);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ASSAY_COMM_ERROR, "Gloo cannot connect " + name_of(rank_) + " at address " + address_ +
                                      " to the other ranks: " + e.what());
  }
}

void Mesh::connect(const assay_comm& comm) {
  const PipeSignalBlocked blocked;  // Gloo's thread starts with the device
  ::gloo::transport::tcp::attr attr;
  attr.hostname = address_;
  device_ = ::gloo::transport::tcp::CreateDevice(attr);

  // Every connection has its own address. In the order of contexts and ranks; a rank's own place stays empty.
  std::size_t address_bytes = 0;
  for (auto& context : contexts_) {
    context = device_->createContext(rank_, size_);
    context->setTimeout(timeout_);
    for (std::int32_t peer = 0; peer < size_; ++peer)
      if (peer != rank_) address_bytes = context->createPair(peer)->address().bytes().size();
  }
  const std::size_t ranks = static_cast<std::size_t>(size_);
  const auto place = [&](std::size_t context, std::int32_t peer) {
    return (context * ranks + static_cast<std::size_t>(peer)) * address_bytes;
  };
  std::vector<char> mine(contexts_.size() * ranks * address_bytes), all;
  for (std::size_t c = 0; c < contexts_.size(); ++c)
    for (std::int32_t peer = 0; peer < size_; ++peer)
      if (peer != rank_)
        std::memcpy(mine.data() + place(c, peer), contexts_[c]->getPair(peer)->address().bytes().data(), address_bytes);
  name_ = communicator_name(comm);
  exchange(comm, name_ + "/addresses", mine, all);

  for (std::size_t c = 0; c < contexts_.size(); ++c)
    for (std::int32_t peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const auto of_peer = static_cast<std::size_t>(members_.of_case(peer)) * mine.size();
      const char* address = all.data() + of_peer + place(c, rank_);
      contexts_[c]->getPair(peer)->connect(std::vector<char>(address, address + address_bytes));
    }
}

void Mesh::meet(const assay_comm& comm) const {
  std::vector<char> nothing;
  exchange(comm, name_ + "/ready", {}, nothing);
}

Mesh::~Mesh() {
  for (auto& context : contexts_) context.reset();  // before the device, whose thread serves them
}

std::string Mesh::description() const {
  return "TCP from " + address_ + ", 2 connections to each rank, timeout " + std::to_string(timeout_.count()) + " ms";
}

void Mesh::abort(const std::string& why) noexcept {
  const std::lock_guard lock(ending_);
  if (closed_ || !abort_reason_.empty()) return;
  abort_reason_ = why;
  for (auto& context : contexts_) try {
      // A wait that times out ends all waits of its context: Gloo has no other door to that.
      char nothing = 0;
      context->createUnboundBuffer(&nothing, 1)->waitRecv(nullptr, std::chrono::milliseconds(0));
    } catch (const std::exception&) {
      // This is the timeout asked for.
    }
}

void Mesh::close() noexcept {
  const std::lock_guard lock(ending_);
  if (closed_) return;
  closed_ = true;
  for (auto& context : contexts_)
    for (std::int32_t peer = 0; peer < size_; ++peer)
      if (peer != rank_) context->getPair(peer)->close();
}

Error Mesh::lost(std::int32_t peer, const char* gloo_text, std::chrono::steady_clock::time_point begin) {
  const std::string rank = name_of(peer);
  {
    const std::lock_guard lock(ending_);
    if (!abort_reason_.empty()) return Error(ASSAY_COMM_ERROR, abort_reason_);
  }
  if (std::chrono::steady_clock::now() - begin >= timeout_)
    return Error(ASSAY_COMM_ERROR, rank + " did not answer within " + std::to_string(timeout_.count()) + " ms");
  return Error(ASSAY_COMM_ERROR,
               "the connection to " + rank + " is lost: that rank ended, or gave up (" + gloo_text + ")");
}

}  // namespace assay::comm::gloo_backend
