// One NCCL communicator with its stream, its collectives in flight, and its caretaker: the thread that checks it every
// 50 ms and ends it.
//
// The user's thread may be anywhere when a peer dies: in a synchronisation of the device library that ends only when
// NCCL's kernels do, or inside a call of NCCL, which connects at the first collective of a kind and waits for the other
// ranks meanwhile. So the caretaker alone aborts, in two steps. First it aborts the root, which is its own after the
// wire-up and which nobody is inside of: that ends the kernels and lets the user's thread return from NCCL. When that
// thread is out, it aborts the child that the thread used. If NCCL still does not let the thread go, the thread stays
// there, and the host ends the process 1.5 s after it has asked for the end of the case.
//
// Graphs: a collective that is enqueued during a capture becomes part of the graph. Nothing in the graph watches or
// times it. A replay does, by an event before and one behind the launch, so that it costs what NCCL's kernels do.
// Between begin and end of a replay, `timeout` counts for all that the graph holds. NCCL finalizes or aborts no
// communicator while such a graph exists. No graph knows the root, so it is aborted as ever, which ends the kernels of
// a replay and lets the user's thread go. The child is always aborted when the last graph is gone. Symmetric kernels of
// NCCL 2.28 ignore the abort flag: only the end of the process frees a thread that waits in one.
//
// Locks, in this order when both are held. nccl_: around every call of NCCL until NCCL is ready for the next, except
// the abort of the root. mutex_: around the ring and the state, never held where CUDA may block because its queue is
// full. The caretaker takes them every 50 ms for a moment, and no call wakes it, so that a collective finds them free.
#pragma once
#include <assay/comm.h>
#include <assay/comm/members.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "flight_ring.hpp"
#include "library.hpp"
#include "session_types.hpp"

namespace assay::comm::nccl {

class Session {
 public:
  // The session belongs to its owner and its caretaker: it lives until close(), and longer where NCCL does not return.
  // Its collectives are of `members`. Every rank of the case opens it, with the members that it belongs to.
  static std::shared_ptr<Session> open(std::unique_ptr<Library> library, const assay_comm& ranks,
                                       const Members& members, Stream compute, const UniqueId& id,
                                       std::int32_t max_channels, Timing timing = {}, bool on_compute_stream = false);
  ~Session();

  // ---- the user's thread ----
  // Behind what is on the compute stream now; `bytes` for the totals.
  Ticket launch(const Collective& collective, std::uint64_t bytes);
  void wait(Ticket ticket);
  void synchronize();
  void barrier();
  Totals take_totals();
  // Collectives between the two are one flight. end_series() gives its ticket; synchronize() in between waits for what
  // there is of it.
  void begin_series();
  Ticket end_series();
  bool register_memory(void* address, std::size_t bytes);  // false: NCCL would not
  // A symmetric window where there are any, else as register_memory(). Every rank calls it.
  Registration register_together(void* address, std::size_t bytes);
  void* allocate_shared(std::size_t bytes);
  void free_shared(void* address) noexcept { library_->free_shared(address); }  // after close(), too
  // What the last capture has taken up, once; and a replay of the graph that it made.
  CapturedCollectives take_captured() { return std::exchange(captured_, {}); }
  void replay(const CapturedCollectives& captured, compute::Graph& graph);
  // Ends it: politely when all is well, by an abort otherwise. Returns within the times of Timing.
  void close() noexcept;

 private:
  Session(std::unique_ptr<Library> library, const assay_comm& ranks, Stream compute, Timing timing,
          bool on_compute_stream);
  void connect(const UniqueId& id, const Members& members, std::int32_t max_channels);
  Ticket enqueue(const Collective& collective, const char* what, std::uint64_t bytes, bool after_compute);
  Ticket add_to_series(const Collective& collective, std::uint64_t bytes);
  Ticket enqueue_captured(const Collective& collective, const char* what, std::uint64_t bytes, std::uint64_t capture);
  void wait_captured(Ticket ticket, std::uint64_t capture);
  void enter_capture(std::uint64_t capture);
  void follow_compute();
  // A flight that is not in the ring before end_call(). The caretaker knows of it, and of when it was begun.
  Flight& begin_call(const char* what, std::uint64_t bytes, bool counted);
  void watch_call(const Flight& flight);
  void forget_call();
  Ticket end_call();
  void require_usable(const char* what);
  void require_alive();
  void wait_until_happened(Event event);
  void await_series();
  // Runs `start`, which calls NCCL, and waits until `comm` is ready for the next call. `what` describes it for an
  // error.
  template <class Start, class What>
  void call(const Comm& comm, Start&& start, const What& what);
  template <class What>
  std::optional<Failure> settle(const Comm& comm, Answer answer, const What& what);
  template <class Body>
  auto on_gpu(Body&& body);  // an error of CUDA in `body` is the end of the communicator
  [[noreturn]] void fail(Failure failure);
  [[noreturn]] void throw_failure();

  // ---- the caretaker's thread ----
  void care() noexcept;
  std::optional<Failure> look();
  bool finish_politely();  // false: an abort has to
  bool finish(Comm& comm, std::chrono::steady_clock::time_point until);
  bool await_idle();
  void await_end_of_graphs() const;
  void abort_all() noexcept;

  bool aborted() const { return ranks_.aborted(&ranks_) != 0; }
  std::string describe(const Flight& flight) const;
  Failure failed(const std::string& what, const std::string& nccl_text) const;
  Failure late(const std::string& what) const;
  Failure given_up(const std::string& what) const;

  const std::unique_ptr<Library> library_;
  const assay_comm& ranks_;
  const Stream compute_;
  const bool is_on_compute_stream_;
  const Timing timing_;
  const std::chrono::milliseconds timeout_;

  std::mutex nccl_;
  Comm root_ = nullptr;   // see library.hpp; from connected_ on the caretaker's, without a lock
  Comm child_ = nullptr;  // what the collectives go through
  struct Registered {
    void* handle;
    Registration kind;
  };
  std::vector<Registered> registered_;

  std::mutex mutex_;
  std::condition_variable changed_;
  FlightRing ring_;
  std::optional<Failure> failure_;
  struct Call {
    Flight flight;
    std::chrono::steady_clock::time_point since;
  };
  std::optional<Call> call_;  // the collective that the user's thread is enqueuing, or the first one of a series
  std::atomic<std::uint64_t> calls_of_series_ = 0;  // further ones, of all series
  bool connected_ = false;
  bool closing_ = false;
  bool released_ = false;           // by an abort: nothing runs on the GPU, and nobody is inside NCCL
  bool ended_ = false;              // the communicator is no more
  std::atomic<bool> dead_ = false;  // failure_ is set

  Stream stream_ = nullptr;
  Event ready_ = nullptr;     // recorded on the compute stream, again for each collective
  void* word_ = nullptr;      // what a barrier reduces
  Ticket waited_ = 0;         // the compute stream is behind all up to this one
  Flight* series_ = nullptr;  // begun, not in the ring
  bool in_series_ = false;
  std::uint64_t capture_ = 0;         // the last one in which a collective was enqueued
  CapturedCollectives captured_;      // in it
  std::vector<Event> captured_ends_;  // of its collectives, where they have a separate stream; used again
  std::uint64_t captured_waited_ = 0;
  const std::shared_ptr<std::atomic<int>> live_graphs_ = std::make_shared<std::atomic<int>>(0);
  Ticket watched_ = 0;  // the caretaker's: this one was running at `watched_since_`
  std::chrono::steady_clock::time_point watched_since_{};
  std::uint64_t watched_calls_ = 0;  // so many there were when the caretaker looked last
  std::chrono::steady_clock::time_point series_went_on_{};
  std::thread caretaker_;
};

}  // namespace assay::comm::nccl
