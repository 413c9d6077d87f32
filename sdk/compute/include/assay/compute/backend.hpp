// Executes operations on a device: the interface that each device backend implements. The operations themselves, with
// shapes and formulas, are the structs of operations.hpp.
//
// Execution: every call enqueues on the backend's stream and may return before the work is done; host code must not
// read a tensor before synchronize(). In Mode::prepare a call does everything that precedes execution (finds kernels,
// creates primitives, reserves workspace) and does not touch the tensors. A workload runs its step once in that mode
// during setup, so that no step ever allocates.
//
// Lanes: between begin_side() and end_side() operations go to a second lane, which starts after everything enqueued
// before begin_side() and may run beside what follows end_side(), until join_side(). On CUDA it has the lowest
// priority, so it gets what the main lane leaves free. A device without lanes runs everything in order. The caller
// ensures that nothing overwrites what the side lane reads before the join.
//
// Errors: assay::Error. UNSUPPORTED for a dtype or shape that the backend does not serve: never another algorithm under
// the same name. INVALID_ARGUMENT for shapes that do not match, a missing tensor, or two that share memory.
//
// Threads: one thread makes all calls of a backend and of what it has made, Feed::host_buffer aside.
//
// This interface is C++ and not frozen: a workload and a backend must come from the same SDK release, and from a
// compiler with the same C++ ABI. `interface_id`, made of the compiler's macros, is compared when a backend is opened.
// (The frozen border is assay/abi.h.)
#pragma once
#include <assay/compute/algorithm_exchange.hpp>
#include <assay/compute/cxx_abi.hpp>
#include <assay/compute/inspector.hpp>
#include <assay/compute/operations.hpp>
#include <assay/compute/tensor.hpp>
#include <assay/plugin.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::compute {

// The revision rises with every change of a declaration below, of an operation's struct, and of the list of operations.
inline constexpr const char* interface_id = "assay.compute/1 revision 12; " ASSAY_CXX_ABI;

enum class Mode : std::int32_t { execute, prepare };

// Where a device has several algorithms for an operation: how one that is prepared gets its own.
enum class Tuning : std::int32_t {
  measured,     // the fastest by timing, or the kept choice of an earlier timing
  first_choice  // the kept choice, or else the library's first one that works: nothing is timed
};

// Copies inputs from host memory to the device beside the compute stream. It has `slots` host buffers of one size,
// page-locked if the device copies from them directly, and as many twins in device memory. A slot goes through: filled
// by anyone (host_buffer; any thread), send, deliver, reclaim, and again. The backend's thread makes all calls but
// host_buffer.
class Feed {
 public:
  Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  virtual ~Feed() = default;
  virtual void* host_buffer(std::size_t slot) const = 0;
  // Starts the copy to the device, on a separate stream, after the slot's last deliver. Does not block.
  virtual void send(std::size_t slot) = 0;
  // Enqueues on the compute stream: wait for the slot's copy, then its bytes to `to` (contiguous, at most a slot's): a
  // captured step finds its input always in one place. INVALID_ARGUMENT: the slot was not sent since its last deliver.
  virtual void deliver(std::size_t slot, const Tensor& to) = 0;
  // Blocks until the host buffer of a sent slot has been read, and may be filled again.
  virtual void reclaim(std::size_t slot) = 0;
};

// A recorded sequence of operations, replayed with one call. Made by Backend::capture.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  virtual ~Graph() = default;
  virtual void launch() = 0;  // enqueues one replay on the backend's stream
  virtual std::size_t node_count() const = 0;
};

// One compiled kernel or primitive in use, for reports and for the test that none is a slow reference implementation.
struct PrimitiveInfo {
  std::string operation;       // "matmul f32 512x768x2304"
  std::string implementation;  // "brg:avx512_core"
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const char* kind() const = 0;  // "cpu", "cuda"
  // A mode begins on the main lane. What takes long to prepare may go on beside the walk until the mode is execute, or
  // until workspace_bytes(), set_workspace() or primitives() is asked: they throw what such an operation is refused
  // for, the first of the walk. The new mode holds even so.
  virtual void set_mode(Mode) = 0;
  virtual void synchronize() = 0;
  // Bytes of workspace the operations seen so far need; the caller provides at least that much after preparing.
  virtual std::size_t workspace_bytes() const = 0;
  virtual void set_workspace(void* address, std::size_t bytes) = 0;
  virtual std::vector<PrimitiveInfo> primitives() const = 0;
  // exact unless set. UNSUPPORTED where the device has no such mode.
  virtual void set_product_math(ProductMath) = 0;
  // Of a device with multiprocessors: matrix products from here on are made for all but `count` of them, so that what
  // runs beside them (a collective) finds room. 0, unless set: for all. Products are prepared for each count.
  virtual void leave_multiprocessors(std::int32_t /*count*/) {}
  // For operations prepared from here on; the default is measured. first_choice is for work that nobody measures: it
  // takes no device time, no other process keeps it, and the device does not list it among its algorithms
  // (assay/algorithms.h). Prepared operations stay as they are; only what was prepared with first_choice is prepared
  // again under measured. A device that times nothing ignores it.
  virtual void set_tuning(Tuning) {}
  // Shares choices found by timing from here on with other ranks, until the required call with null. Among ranks with
  // equal devices one leads, and the others run its choices (workload/shared_tuning.hpp has the exchange). Preparing
  // may then wait for the leader, so a rank must not wait for another one meanwhile. `with` must live until then.
  // Throws, and lets preparing throw, COMM_ERROR. A device that times nothing ignores it.
  virtual void share_tuning(AlgorithmExchange* /*with*/) {}
  // Records the operations that `enqueue` enqueues (in Mode::execute, after preparing it) as a graph; nothing is
  // executed, and no blocking operation is allowed inside. Null if the device has no graphs: the caller then enqueues
  // each step.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) = 0;
  // `device_memory`: slots times bytes_per_slot, rounded up to 256 each; must outlive the feed. The feed owns the
  // page-locked host memory. OUT_OF_MEMORY if there is none.
  virtual std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) = 0;
  virtual void begin_side() {}
  virtual void end_side() {}
  virtual void join_side() {}
  // For verifications; lives as long as the backend. Null if the device has none (inspector_of() makes one).
  virtual Inspector* inspector() { return nullptr; }

  // ---- moving and making data --------------------------------------------------------------------------------------
  virtual void upload(const Tensor& to, const void* host_source) = 0;  // contiguous; blocks until host_source is read
  virtual void download(void* host_target, const Tensor& from) = 0;  // contiguous; blocks until host_target is written
  // Enqueues an operation: `backend.run(op::Fill{.x = x, .value = 0})`. Its fields are checked first, on every device
  // by the same rules (common/operation_checks).
  template <class Op>
  void run(const Op& operation) {
    run_any(AnyOperation(std::in_place_type<const Op*>, &operation));
  }
  virtual void run_any(const AnyOperation& operation) = 0;
};

// The extension "assay.compute/1" of a device table points to this.
struct BackendFactory {
  const char* interface_id;
  // Throws assay::Error. The device must outlive the backend.
  Backend* (*create)(assay_device* device, void* stream);
};

}  // namespace assay::compute
