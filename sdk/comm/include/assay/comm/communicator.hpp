// Collectives between the ranks of a case, behind one interface: Gloo on the CPU, NCCL on GPUs, each a library that is
// opened when a workload asks for it.
//
// Order: a collective starts when everything enqueued on the compute stream before the call is done, and runs beside
// what comes after it: on a separate thread on the CPU, on a separate stream on a GPU. Collectives of one communicator
// run one after the other, in the order of the calls, which must be the same on every rank (of send and receive: on
// the two ranks). Only wait() makes the
// compute stream (on the CPU: the caller) wait. Until then neither the sent nor the received memory may be touched.
//
// Tensors: contiguous, in the device's memory, fp32, bf16 or fp16, on the CPU fp32 and bf16 (others as each call
// states). n = 0 is allowed and still participates. In place: send and receive are the same memory; for reduce_scatter
// `receive` is the rank's part of `send`, for all_gather `send` is the rank's part of `receive`. all_to_all,
// all_to_all_v and send_receive are never in place: the two tensors share no memory.
//
// Errors: assay::Error. COMM_ERROR if a rank is gone or late or the case is ending; the text names the collective and,
// if known, the rank. After an error the communicator is dead: every call throws that error again. On a GPU an error
// can show in a later call, or in synchronize().
//
// Graphs (NCCL): collectives that are enqueued while the compute backend captures become part of the graph, and so do
// waits for them; their tickets mean nothing outside that capture. Wait for what is captured before the capture ends.
// watch() wraps the captured graph, and the communicator then looks after each replay as after a collective. NCCL
// keeps a communicator until no graph refers to it, so destroy a graph before its communicator. If captures() is false,
// a collective during a capture throws UNSUPPORTED.
//
// Threads: one thread uses a communicator. The interface is C++ and belongs to one SDK release and one C++ ABI, as that
// of assay/compute/backend.hpp does; `interface_id` is compared.
#pragma once
#include <assay/comm.h>
#include <assay/compute/backend.hpp>
#include <assay/compute/cxx_abi.hpp>
#include <assay/compute/tensor.hpp>
#include <assay/plugin.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::comm {

// The revision rises with every change of a declaration below.
inline constexpr const char* interface_id = "assay.comm.backend/1 revision 10; " ASSAY_CXX_ABI;

// average: the sum divided by the number of ranks (NCCL: of the values times 1/n, rounded unless n is a power of two).
// Sums of 16-bit types may be rounded at each hop of the library (Gloo's are added in fp32 and rounded once). max: on
// Gloo a NaN of any rank gives NaN; NCCL does not promise that.
enum class Reduction : std::int32_t { sum, average, max };

// Of two contiguous tensors.
inline bool share_memory(const compute::Tensor& a, const compute::Tensor& b) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a.data), begin_b = reinterpret_cast<std::uintptr_t>(b.data);
  return begin_a < begin_b + b.bytes() && begin_b < begin_a + a.bytes();
}

// What all_to_all_v counts: entries of the first dimension.
inline std::size_t row_bytes(const compute::Tensor& x) {
  std::size_t bytes = size_of(x.dtype);
  for (int d = 1; d < x.rank; ++d) bytes *= static_cast<std::size_t>(x.dim(d));
  return bytes;
}
// A count for each rank, none below 0, that add up to the rows of `x`.
inline bool counts_rows(const compute::Tensor& x, std::span<const std::int64_t> rows, std::int32_t ranks) {
  std::int64_t sum = 0;
  for (const std::int64_t n : rows) {
    if (n < 0 || n > x.dim(0) - sum) return false;
    sum += n;
  }
  return x.rank > 0 && rows.size() == static_cast<std::size_t>(ranks) && sum == x.dim(0);
}
inline std::vector<std::size_t> bytes_of_rows(const compute::Tensor& x, std::span<const std::int64_t> rows) {
  std::vector<std::size_t> bytes;
  for (const std::int64_t n : rows) bytes.push_back(static_cast<std::size_t>(n) * row_bytes(x));
  return bytes;
}

using Ticket = std::uint64_t;  // rises with each collective of the communicator

struct Options {
  // The case's ranks that the communicator joins, in its order, this one among them; empty: all. Its ranks are then
  // numbered from 0 in that order. Every rank of the case opens it in the same call with such a list, each as long as
  // the others, and a rank is in no other list than its own (members.hpp).
  std::vector<std::int32_t> members = {};
  std::int32_t max_channels =
      0;  // NCCL: the most thread blocks that a collective may take from the GPU; 0: the library's
  // NCCL: collectives run on the compute stream itself, in its order, with nothing beside them. No stream waits for
  // another then, and exposed_ms is 0: later work comes later. For measuring collectives alone.
  bool on_compute_stream = false;
  // NCCL 2.28 and later: gatherings whose memory is all in symmetric windows are made by the GPU's copy engines, which
  // take no multiprocessors from what runs beside them. UNSUPPORTED where the library has no such thing.
  bool copy_engines = false;
};

// Totals cover the collectives since the last take_totals().
struct Totals {
  std::uint64_t collectives = 0;
  // Of them, those of graphs that hold other work as well: busy_ms and exposed_ms leave them out.
  std::uint64_t untimed = 0;
  std::uint64_t bytes = 0;  // the larger of send and receive, summed
  double busy_ms = 0;     // from the start of a collective on this rank to its end, summed; waiting for others included
  double exposed_ms = 0;  // for so long wait() held up the compute stream (on the CPU: the caller), summed
};

// How the library knows memory that collectives use.
enum class Registration : std::int32_t {
  none,      // as any other
  plain,     // registered by each rank on its own (NCCL: ncclCommRegister)
  symmetric  // a window that all ranks have registered together (NCCL 2.27 and later: ncclCommWindowRegister)
};
inline constexpr auto registrations = choices<Registration>(
    {{"none", Registration::none}, {"plain", Registration::plain}, {"symmetric", Registration::symmetric}});

// Memory that a library has made for its collectives and registered. It must outlive the communicator, with which it
// is registered.
class LibraryMemory {
 public:
  LibraryMemory() = default;
  LibraryMemory(const LibraryMemory&) = delete;
  LibraryMemory& operator=(const LibraryMemory&) = delete;
  virtual ~LibraryMemory() = default;
  virtual void* data() const = 0;
  virtual Registration registration() const = 0;
};

class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;  // ends quietly, also when other ranks are gone

  virtual const char* backend() const = 0;      // "gloo", "nccl"
  virtual std::string description() const = 0;  // "NCCL 2.28.9", with what limits it, for the record
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;

  // Announces that collectives will use this memory often, so that the library may register it. Not an error if it
  // cannot.
  virtual void register_memory(void* address, std::size_t bytes) = 0;
  // Takes device memory from the library and registers it: with `best` as symmetric, if library and machine have
  // windows, else as plain. Every rank calls it with the same `bytes` and `best`; the caller accounts for the memory
  // (registered_memory.hpp does). Null: this library offers no memory. OUT_OF_MEMORY if there is not enough.
  virtual std::unique_ptr<LibraryMemory> allocate_registered(std::size_t /*bytes*/, Registration /*best*/) {
    return nullptr;
  }

  // receive = reduction over the ranks' send, n elements each
  virtual Ticket all_reduce(const compute::Tensor& send, const compute::Tensor& receive, Reduction) = 0;
  // send: n * size elements; receive: n, the rank's part of the reduction
  virtual Ticket reduce_scatter(const compute::Tensor& send, const compute::Tensor& receive, Reduction) = 0;
  // x of `root` becomes the reduction over the ranks' x, in place; what the other ranks' x holds then is undefined.
  virtual Ticket reduce(const compute::Tensor& x, std::int32_t root, Reduction) = 0;
  // send: n; receive: n * size, in the order of the ranks. Any dtype.
  virtual Ticket all_gather(const compute::Tensor& send, const compute::Tensor& receive) = 0;
  // Sends x of `root` to all. Any dtype.
  virtual Ticket broadcast(const compute::Tensor& x, std::int32_t root) = 0;
  // send, receive: n * size; the r-th n elements of `send` go to rank r, where they are the rank()-th of `receive`. Any
  // dtype.
  virtual Ticket all_to_all(const compute::Tensor& send, const compute::Tensor& receive) = 0;
  // As all_to_all, with unequal parts. Of the rows (of the first dimension) of `send` rank r gets send_rows[r], those
  // of rank 0 first, and receive_rows[r] rows of `receive` come from it, likewise. One count for each rank, 0 allowed;
  // they add up to the tensors' rows, and rows of both have as many bytes. receive_rows[r] here must be
  // send_rows[rank()] on rank r: otherwise Gloo fails with COMM_ERROR, and NCCL waits until it times out. The call
  // reads the counts, and a captured one keeps them.
  virtual Ticket all_to_all_v(const compute::Tensor& send, std::span<const std::int64_t> send_rows,
                              const compute::Tensor& receive, std::span<const std::int64_t> receive_rows) = 0;
  // Sends to one rank and receives from one, this rank itself included. Every rank takes part; `from` of rank `to` is
  // this rank, and the two tensors have as many bytes. Any dtype.
  virtual Ticket send_receive(const compute::Tensor& send, std::int32_t to, const compute::Tensor& receive,
                              std::int32_t from) = 0;
  // To one other rank, and from one: that rank alone calls the opposite with as many bytes, and no third one takes
  // part. Each may wait for its opposite, and later collectives of this rank behind it: ranks that order all sends and
  // receives of a step in one sequence never wait in a circle. Any dtype.
  virtual Ticket send(const compute::Tensor& x, std::int32_t to) = 0;
  virtual Ticket receive(const compute::Tensor& x, std::int32_t from) = 0;

  // Between the two, collectives follow one another with nothing of the compute stream between them. They have one
  // ticket, and are timed and looked after as one, which leaves out what a library does for that in between.
  // synchronize() among them waits for those so far. Ends with the ticket, for wait(); at least one collective lies
  // between. Not within a capture.
  virtual void begin_series() {}
  virtual Ticket end_series() = 0;

  // Whether collectives may be captured in a graph.
  virtual bool captures() const { return false; }
  // To be called with the graph that was captured last. Where no collective of this communicator is in it, the result
  // is the graph itself.
  virtual std::unique_ptr<compute::Graph> watch(std::unique_ptr<compute::Graph> graph) { return graph; }

  // Operations enqueued on the compute stream from here on see the results of that collective and of all before it.
  virtual void wait(Ticket) = 0;
  // Blocks the caller until every collective is done and checked.
  virtual void synchronize() = 0;
  // Blocks the caller until every rank is here. No collective may be in flight.
  virtual void barrier() = 0;
  // Blocks as synchronize() does.
  virtual Totals take_totals() = 0;
};

// A backend library exports this as `assay_comm_backend_v1`.
struct BackendFactory {
  const char* interface_id;
  // Wires up the ranks: each rank of the case calls it, and it returns on none before all have. `stream` is the
  // compute stream. Throws assay::Error; COMM_ERROR names the ranks that did not come.
  Communicator* (*create)(const assay_comm& comm, const assay_device_access& device, void* stream, const Options&);
};

// Opens libassay_comm_<backend>.so of this installation. "auto": nccl on a CUDA device, else gloo. Throws
// assay::Error(UNSUPPORTED), with what is missing and the remedy, also if the backend does not serve the device. Leave
// `built_for` at the values that the caller was compiled with.
std::unique_ptr<Communicator> open_communicator(const Host& host, const Launch& launch, std::string_view backend,
                                                const Options& options = {}, const char* built_for = interface_id);

// The case's ranks; throws assay::Error(UNSUPPORTED) when the host does not offer them.
const assay_comm& ranks_of(const Host& host);

}  // namespace assay::comm
