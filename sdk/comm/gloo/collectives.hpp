// The collectives themselves, on one thread, in host memory.
//
// Every rank talks to every other one directly. Large all-reduces: rank r owns the r-th part of the vector, and each
// rank sends its share of a part to the owner. The owner combines the shares in the order of the ranks (so the sum is
// the same in every run, and rounded once) and sends the result to all (so it is the same on every rank, to the bit).
// Parts are cut into segments that fit the cache, so that one is combined while others travel. Small all-reduces: each
// rank sends all it has to every other one, and all combine in the same order.
//
// Nothing may be sent before the receiver has registered memory for it (transfer.hpp), and nothing may be overwritten
// before it is read:
// - `stage`: `window` segments for each peer, registered for good. A sender may write a segment's place again once it
//   knows that the receiver has combined the earlier one: by its result, or by a message `consumed`.
// - the caller's memory: registered for one collective; a message `ready` says so.
// - `small`: two places for each peer, registered for good, used in turn. Who has received a peer's k-th small message
//   knows that the peer is done with the (k - 1)-th.
//
// The first message of a connection that carries data is a large one (open()). Gloo sets a socket's send buffer to
// twice its largest message so far, which ends the kernel's own sizing of it, and leaves it so for messages up to that
// size: of these two in a row do not fit. The second then waits for the acknowledgement of the first, and the other
// side's kernel may keep that back for 40 ms, to send it with an answer, while less than a full segment (64 KiB on
// loopback) has come. No answer goes back on a connection between an all-reduce's share and its result, or from an
// all-gather to a reduce-scatter.
#pragma once
#include <assay/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mesh.hpp"
#include "transfer.hpp"

namespace assay::comm::gloo_backend {

class Collectives {
 public:
  explicit Collectives(Mesh& mesh);
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives();
  // Once, before all else, when all ranks have made theirs, on a thread whose SIGPIPE is blocked. Waits for nothing.
  void open();

  // Counts are elements, as the interface's tensors have them. Each throws assay::Error without the collective's name;
  // the mesh is closed then, and no further call is allowed.
  void all_reduce(const void* send, void* receive, std::size_t n, compute::DType, Reduction);
  void reduce_scatter(const void* send, void* receive, std::size_t n, compute::DType, Reduction);
  // Reduces `x` of all ranks into the root's, in place. The other ranks keep theirs.
  void reduce_to(void* x, std::size_t n, compute::DType, Reduction, std::int32_t root);
  void all_gather(const void* send, void* receive, std::size_t bytes);
  void broadcast(void* x, std::size_t bytes, std::int32_t root);
  void all_to_all(const void* send, void* receive, std::size_t bytes);  // of each rank's part
  // Counts are bytes by rank. Every rank sends every other rank the count it expects, and COMM_ERROR names the rank
  // whose counts differ.
  void all_to_all_v(const void* send, const std::vector<std::size_t>& send_bytes, void* receive,
                    const std::vector<std::size_t>& receive_bytes);
  // The ranks may be this one, which is a copy.
  void send_receive(const void* send, std::size_t send_bytes, std::int32_t to, void* receive, std::size_t receive_bytes,
                    std::int32_t from);
  void send(const void* data, std::size_t bytes, std::int32_t to);
  void receive(void* data, std::size_t bytes, std::int32_t from);
  void barrier();

 private:
  struct Peer;
  struct Part {
    std::size_t begin = 0, bytes = 0;
  };
  struct Sent {
    const char* data = nullptr;
    std::size_t bytes = 0;
  };

  template <class F>
  void closing_on_error(F&& run);
  Part part_of(std::size_t bytes, std::size_t parts, std::size_t index) const;
  std::size_t rank() const { return static_cast<std::size_t>(mesh_.rank()); }
  std::size_t size() const { return static_cast<std::size_t>(mesh_.size()); }
  void reduce_small(const void* send, void* receive, std::size_t n, compute::DType, Reduction);
  void reduce_large(const char* send, char* receive, std::size_t n, compute::DType, Reduction);
  void scatter_reduced(const char* send, char* receive, std::size_t n, compute::DType, Reduction);
  void gather_reduced(char* x, std::size_t n, compute::DType, Reduction, std::int32_t root);
  // Every rank has a part for each other one, and gets one of each into its place in `receive`; a part in `receive` is
  // {begin, bytes}. `agreed`, of each peer, returns when what this rank sends to it is what it expects.
  template <class SentTo, class ReceivedFrom, class Agreed>
  void trade(SentTo&& sent_to, char* receive, ReceivedFrom&& received_from, bool copies_own, Agreed&& agreed);
  static auto equal_parts(std::size_t bytes) {
    return [bytes](std::size_t r) { return Part{r * bytes, bytes}; };
  }
  void spread(char* x, std::size_t bytes, std::int32_t root);
  void send_small(const void* data, std::size_t bytes);
  // Segment `s` of what `peer` has staged and of my own share, combined into `target`.
  void combine(void* target, const char* mine, std::size_t s, std::size_t bytes, compute::DType, Reduction);
  void send_in_pieces(Outgoing& to, std::size_t begin, std::size_t bytes);
  void await_pieces(Peer& from, std::size_t bytes);
  Peer* peer_of(std::int32_t rank) const;  // nullptr: it is this one

  Mesh& mesh_;
  std::vector<std::unique_ptr<Peer>> peers_;  // in the order in which this rank serves them: the next rank first
  std::vector<const void*> sources_;          // by rank, scratch of combine()
  std::uint64_t small_turn_ = 0;
};

}  // namespace assay::comm::gloo_backend
