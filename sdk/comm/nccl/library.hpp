// CUDA and NCCL, as far as a communicator needs them. All decisions (order, deadlines, the end of a communicator) are
// written against this interface in plain C++, so that they are tested without a GPU.
//
// There are two communicators. The root is non-blocking: NCCL works on its own thread and is polled for its state, so
// that a wire-up has a deadline. Each call on such a communicator starts a thread, which costs some 100 us. So the
// collectives go through a child of the root, whose calls enqueue on the calling thread. The two share their resources,
// and with them the abort flag that NCCL's calls and kernels look at. An abort of the root therefore lets a thread that
// hangs in a call on the child return, and leaves the resources that the thread uses.
//
// Threads: one thread at a time makes calls with a Comm, as NCCL requires, except abort() of the root; any thread makes
// the others.
#pragma once
#include <assay/comm/communicator.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gpu_sharing.hpp"

namespace assay::comm::nccl {

using Stream = void*;
using Event = void*;
using Comm = void*;
using UniqueId = std::array<char, 128>;

// What NCCL says to a call. in_progress lasts until state() says something else, and no other call may be made on the
// communicator before. Calls on the root return at once. Those on the child return when they are done, unless
// NCCL_COMM_BLOCKING=0 says otherwise, and may hang when another rank does not make the same call.
struct Answer {
  enum class Kind { done, in_progress, failed };
  Kind kind = Kind::done;
  std::string text;  // NCCL's words when it failed
};

enum class Operation {
  all_reduce,
  reduce_scatter,
  reduce,
  all_gather,
  broadcast,
  all_to_all,
  all_to_all_v,
  send_receive,
  send,
  receive
};

// `count` as NCCL counts: elements of send for all_reduce and all_gather, of receive for reduce_scatter, of both for
// reduce and broadcast, of one rank's part for all_to_all, of send for send_receive, of the tensor for send and
// receive; all_to_all_v has separate counts. Pure data movement is counted in bytes, as u8.
struct Collective {
  Operation operation = Operation::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  compute::DType dtype = compute::DType::u8;
  Reduction reduction = Reduction::sum;
  std::int32_t root = 0;
  std::int32_t size = 1;          // of all_to_all: the ranks
  std::int32_t to = 0, from = 0;  // of send_receive, send and receive
  std::size_t receive_count = 0;  // of send_receive
  // Of all_to_all_v, by rank; read while the collective is being enqueued.
  std::span<const std::size_t> send_counts = {}, receive_counts = {};
};
const char* name_of(Operation operation);

class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  // ---- CUDA: what fails throws assay::Error ----
  virtual Place place(const char* host_name) = 0;  // where this rank's GPU is
  // Makes the device current on the calling thread; `watcher`: its questions are no part of anyone's graph capture.
  virtual void enter_thread(bool watcher) = 0;
  virtual Stream make_stream() = 0;  // of the highest priority, not ordered against the default stream
  virtual void destroy(Stream stream) noexcept = 0;
  virtual Event make_event(bool timed) = 0;
  virtual void destroy_event(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait_for(Stream stream, Event event) = 0;  // what follows in `stream` comes after `event`
  virtual bool happened(Event event) = 0;
  virtual bool idle(Stream stream) = 0;                   // all that was enqueued on it is done
  virtual double elapsed_ms(Event begin, Event end) = 0;  // both have happened
  virtual std::uint64_t capturing(Stream stream) = 0;  // 0, or the number of the capture that the stream takes part in
  // Keeps `held` until the graph that the stream's operations are being captured into, and all that was made from it,
  // are no more; then a thread of CUDA's lets it go.
  virtual void keep_in_graph(Stream stream, std::shared_ptr<void> held) = 0;
  virtual void* allocate_zeroed(std::size_t bytes, Stream stream) = 0;
  virtual void free(void* address) noexcept = 0;

  // ---- NCCL ----
  virtual std::string version() = 0;  // "2.28.9"
  virtual Answer make_id(UniqueId& id) = 0;
  virtual Answer start(Comm& root, const UniqueId& id, std::int32_t rank, std::int32_t size,
                       std::int32_t max_channels) = 0;  // root may be set also when it fails
  // Makes the child of all ranks that give one `group`, in the order of their `rank`; its state is the root's. Every
  // rank of the root calls it, once for a library.
  virtual Answer split(Comm root, std::int32_t group, std::int32_t rank, std::int32_t max_channels) = 0;
  virtual Comm child() = 0;  // after split() is done
  virtual Answer state(Comm comm) = 0;
  virtual Answer enqueue(Comm comm, const Collective& collective, Stream stream) = 0;
  virtual void* register_memory(Comm comm, void* address, std::size_t bytes) = 0;  // nullptr: it would not
  virtual void deregister_memory(Comm comm, void* handle) = 0;
  // Memory that other ranks' GPUs can reach, as register_window() needs it. Throws assay::Error.
  virtual void* allocate_shared(std::size_t bytes) = 0;
  virtual void free_shared(void* address) noexcept = 0;
  // All ranks call it with as many bytes; it waits for them. `window` stays null where the library or the machine has
  // no symmetric windows.
  virtual Answer register_window(Comm comm, void* address, std::size_t bytes, void*& window) = 0;
  virtual void deregister_window(Comm comm, void* window) = 0;
  virtual Answer finalize(Comm comm) = 0;
  virtual void destroy_comm(Comm comm) noexcept = 0;  // after finalize()
  // Ends what runs on the GPU, and destroys. The root's also ends what the child runs, and lets a thread inside a call
  // on it return; the child itself stays and is to be aborted after it. finalize() and abort() of a communicator do not
  // return while there is a graph into which its collectives were captured (NCCL 2.26 and later).
  virtual void abort(Comm comm) noexcept = 0;
};

}  // namespace assay::comm::nccl
