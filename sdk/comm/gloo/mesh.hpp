// The connections between the ranks: for each other rank one that carries this rank's data there ("out"), and one that
// carries its data here ("in"). Gloo locks a connection while it writes to it, and its loop thread, which would read
// from the same one at that time, spins on that lock; with two, each is written from one side only, but for small
// replies.
//
// Threads: wiring, the connections and close() belong to one thread at a time; abort() may come from another.
#pragma once
#include <assay/comm.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <assay/comm/members.hpp>
#include <assay/plugin.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace assay::comm::gloo_backend {

class Mesh {
 public:
  // Connects this rank with the other members: each rank of the case makes its Mesh. Throws assay::Error; the host has
  // the text when a rank did not come.
  Mesh(const assay_comm& comm, const Members& members);
  // Returns on no rank of the case before all have called it: then all have registered what others may send to unasked.
  // (Gloo forgets an empty message whose memory is not registered yet.)
  void meet(const assay_comm& comm) const;
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  ~Mesh();

  std::int32_t rank() const { return rank_; }  // among the members, as every rank here
  std::int32_t size() const { return size_; }
  std::string name_of(std::int32_t rank) const { return members_.name_of(rank); }
  std::string description() const;
  ::gloo::transport::Pair& out(std::int32_t peer) { return *context_of(rank_ < peer)->getPair(peer); }
  ::gloo::transport::Pair& in(std::int32_t peer) { return *context_of(rank_ > peer)->getPair(peer); }

  // Ends every wait on a connection, now and from here on, with an error. `why` stands in the text of that error.
  void abort(const std::string& why) noexcept;
  // Closes every connection at once, so that the other ranks learn of it. Afterwards Gloo touches no memory of ours.
  void close() noexcept;

  // The error for what Gloo threw at a wait for `peer` that began at `begin`.
  Error lost(std::int32_t peer, const char* gloo_text, std::chrono::steady_clock::time_point begin);

 private:
  std::shared_ptr<::gloo::transport::Context>& context_of(bool first) { return contexts_[first ? 0 : 1]; }
  void connect(const assay_comm& comm);

  const Members members_;
  const std::int32_t rank_, size_;
  const std::chrono::milliseconds timeout_;
  std::string address_, name_;
  std::shared_ptr<::gloo::transport::Device> device_;
  std::array<std::shared_ptr<::gloo::transport::Context>, 2> contexts_;
  std::mutex ending_;  // of abort() against close()
  bool closed_ = false;
  std::string abort_reason_;
};

// While it lives, writing to a connection that the other side has closed gives an error and not a signal, on this
// thread and on those that it starts.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked();
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;
  ~PipeSignalBlocked();

 private:
  bool was_blocked_ = false;
};

}  // namespace assay::comm::gloo_backend
