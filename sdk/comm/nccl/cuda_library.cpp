// The runtime is linked statically, as into the device library and into libnccl. Each copy sees the same streams and
// events, as these are the driver's and belong to the device's primary context.
#include "cuda_library.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <assay/plugin.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>

// Symmetric windows came with NCCL 2.27, and the library found at run time may be older than the header.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
#define ASSAY_NCCL_HAS_WINDOWS 1
#pragma weak ncclCommWindowRegister
#pragma weak ncclCommWindowDeregister
#else
#define ASSAY_NCCL_HAS_WINDOWS 0
#endif

namespace assay::comm::nccl {
namespace {

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  // The runtime keeps the error for the next call that asks; taken here, it cannot be blamed on a later launch.
  (void)cudaGetLastError();
  throw Error(status == cudaErrorMemoryAllocation ? ASSAY_OUT_OF_MEMORY : ASSAY_DEVICE_ERROR,
              fmt::format("{} for NCCL: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

Answer answer_of(ncclResult_t result) {
  if (result == ncclSuccess) return {};
  if (result == ncclInProgress) return {Answer::Kind::in_progress, {}};
  // The last warning of the process: mostly the reason, sometimes of an earlier call.
  const char* const last = ncclGetLastError(nullptr);
  std::string text = ncclGetErrorString(result);
  if (last && *last) text += fmt::format("; its last words: {}", last);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return {Answer::Kind::failed, std::move(text)};
}

ncclDataType_t type_of(compute::DType dtype) {
  switch (dtype) {
    case compute::DType::f32: return ncclFloat32;
    case compute::DType::bf16: return ncclBfloat16;
    case compute::DType::f16: return ncclFloat16;
    case compute::DType::i64: return ncclInt64;
    case compute::DType::i32: return ncclInt32;
    case compute::DType::u8:
    case compute::DType::f8_e4m3:  // these travel, and are not added up
    case compute::DType::f8_e5m2: return ncclUint8;
  }
  throw Error(ASSAY_INTERNAL, "a collective of a type that NCCL does not know");
}

ncclRedOp_t reduction_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return ncclSum;
    case Reduction::average: return ncclAvg;
    case Reduction::max: return ncclMax;
  }
  throw Error(ASSAY_INTERNAL, "a reduction that NCCL does not know");
}

cudaStream_t cuda(Stream stream) { return static_cast<cudaStream_t>(stream); }
ncclComm_t nccl(Comm comm) { return static_cast<ncclComm_t>(comm); }
// Named apart from stream's: both are untyped outside of this file.
cudaEvent_t cuda_event(Event event) { return static_cast<cudaEvent_t>(event); }

class CudaLibrary final : public Library {
 public:
  CudaLibrary(int device, bool copy_engines) : device_(device), copy_engines_(copy_engines) {
    if (copy_engines && !knows_copy_engines())
      throw Error(ASSAY_UNSUPPORTED,
                  fmt::format("NCCL {} gathers by thread blocks alone; copy engines need 2.28 or later, where assay is "
                              "built and where it runs",
                              version()));
  }

  Place place(const char* host_name) override {
    enter_thread(false);
    Place place;
    std::snprintf(place.host, sizeof place.host, "%s", host_name);
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    std::snprintf(place.boot, sizeof place.boot, "%s", boot.c_str());
    check(cudaDeviceGetPCIBusId(place.bus, sizeof place.bus, device_), "read the bus id of the GPU");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device_), "read the properties of the GPU");
    static_assert(sizeof place.uuid == sizeof properties.uuid.bytes);
    std::memcpy(place.uuid, properties.uuid.bytes, sizeof place.uuid);
    return place;
  }

  void enter_thread(bool watcher) override {
    check(cudaSetDevice(device_), "open the device");
    if (!watcher) return;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "keep a thread out of graph captures");
  }

  Stream make_stream() override {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "read the priorities of streams");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "create a stream");
    return stream;
  }
  void destroy(Stream stream) noexcept override { (void)cudaStreamDestroy(cuda(stream)); }

  Event make_event(bool timed) override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming), "create an event");
    return event;
  }
  void destroy_event(Event event) noexcept override { (void)cudaEventDestroy(cuda_event(event)); }
  void record(Event event, Stream stream) override {
    check(cudaEventRecord(cuda_event(event), cuda(stream)), "record an event");
  }
  void wait_for(Stream stream, Event event) override {
    check(cudaStreamWaitEvent(cuda(stream), cuda_event(event), cudaEventWaitDefault), "order two streams");
  }
  bool happened(Event event) override { return is_ready(cudaEventQuery(cuda_event(event)), "ask for an event"); }
  bool idle(Stream stream) override { return is_ready(cudaStreamQuery(cuda(stream)), "ask for a stream"); }
  double elapsed_ms(Event begin, Event end) override {
    float elapsed = 0.0F;
    check(cudaEventElapsedTime(&elapsed, cuda_event(begin), cuda_event(end)), "read the time between two events");
    return static_cast<double>(elapsed);
  }
  std::uint64_t capturing(Stream stream) override { return capture_of(stream).first; }
  void keep_in_graph(Stream stream, std::shared_ptr<void> held) override {
    const cudaGraph_t graph = capture_of(stream).second;
    auto owner = std::make_unique<std::shared_ptr<void>>(std::move(held));
    cudaUserObject_t object = nullptr;
    check(cudaUserObjectCreate(
              &object, owner.get(), [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); }, 1,
              cudaUserObjectNoDestructorSync),
          "make an object for a graph");
    (void)owner.release();  // the graph's; of a graph that will not have it the object dies here
    const cudaError_t kept = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (kept != cudaSuccess) (void)cudaUserObjectRelease(object, 1);
    check(kept, "give a graph an object");
  }
  void* allocate_zeroed(std::size_t bytes, Stream stream) override {
    void* address = nullptr;
    check(cudaMalloc(&address, bytes), "allocate memory");
    if (const cudaError_t status = cudaMemsetAsync(address, 0, bytes, cuda(stream)); status != cudaSuccess) {
      free(address);
      check(status, "fill memory with zeros");
    }
    return address;
  }
  void free(void* address) noexcept override { (void)cudaFree(address); }

  std::string version() override {
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) return "of an unknown version";
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  Answer make_id(UniqueId& id) override {
    ncclUniqueId raw{};
    const Answer answer = answer_of(ncclGetUniqueId(&raw));
    std::memcpy(id.data(), raw.internal, id.size());
    return answer;
  }
  Answer start(Comm& root, const UniqueId& id, std::int32_t rank, std::int32_t size,
               std::int32_t max_channels) override {
    ncclUniqueId raw{};
    std::memcpy(raw.internal, id.data(), id.size());
    ncclConfig_t config = config_of(false, max_channels);
    config.splitShare = 1;
    ncclComm_t made = nullptr;
    const Answer answer = answer_of(ncclCommInitRankConfig(&made, size, raw, rank, &config));
    root = made;
    return answer;
  }
  Answer split(Comm root, std::int32_t group, std::int32_t rank, std::int32_t max_channels) override {
    ncclConfig_t config = config_of(true, max_channels);
    const ncclResult_t result = ncclCommSplit(nccl(root), /*color=*/group, rank, &child_, &config);
    // It says ncclSuccess also while it has only begun (NCCL 2.28.9); the root knows better.
    return result == ncclSuccess ? state(root) : answer_of(result);
  }
  Comm child() override { return child_; }
  Answer state(Comm comm) override {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = ncclCommGetAsyncError(nccl(comm), &state);
    return answer_of(result == ncclSuccess ? state : result);
  }
  Answer enqueue(Comm comm, const Collective& c, Stream stream) override {
    const cudaStream_t s = cuda(stream);
    const ncclComm_t n = nccl(comm);
    const ncclDataType_t type = type_of(c.dtype);
    switch (c.operation) {
      case Operation::all_reduce:
        return answer_of(ncclAllReduce(c.send, c.receive, c.count, type, reduction_of(c.reduction), n, s));
      case Operation::reduce_scatter:
        return answer_of(ncclReduceScatter(c.send, c.receive, c.count, type, reduction_of(c.reduction), n, s));
      case Operation::reduce:
        return answer_of(ncclReduce(c.send, c.receive, c.count, type, reduction_of(c.reduction), c.root, n, s));
      case Operation::all_gather: return answer_of(ncclAllGather(c.send, c.receive, c.count, type, n, s));
      case Operation::broadcast: return answer_of(ncclBroadcast(c.send, c.receive, c.count, type, c.root, n, s));
      case Operation::all_to_all:
        return grouped(c.size, [&](std::int32_t peer) {
          const std::size_t begin = static_cast<std::size_t>(peer) * c.count * compute::size_of(c.dtype);
          const ncclResult_t sent = ncclSend(static_cast<const char*>(c.send) + begin, c.count, type, peer, n, s);
          return sent != ncclSuccess ? sent
                                     : ncclRecv(static_cast<char*>(c.receive) + begin, c.count, type, peer, n, s);
        });
      case Operation::all_to_all_v: {
        // Parts of 0 are left out: both sides know that there are none.
        std::size_t send_begin = 0, receive_begin = 0;
        const std::size_t element = compute::size_of(c.dtype);
        return grouped(static_cast<std::int32_t>(c.send_counts.size()), [&](std::int32_t peer) {
          const auto r = static_cast<std::size_t>(peer);
          const char* const from = static_cast<const char*>(c.send) + send_begin * element;
          char* const to = static_cast<char*>(c.receive) + receive_begin * element;
          send_begin += c.send_counts[r], receive_begin += c.receive_counts[r];
          ncclResult_t result = ncclSuccess;
          if (c.send_counts[r] > 0) result = ncclSend(from, c.send_counts[r], type, peer, n, s);
          if (result == ncclSuccess && c.receive_counts[r] > 0)
            result = ncclRecv(to, c.receive_counts[r], type, peer, n, s);
          return result;
        });
      }
      case Operation::send_receive:
        return grouped(1, [&](std::int32_t) {
          const ncclResult_t sent = ncclSend(c.send, c.count, type, c.to, n, s);
          return sent != ncclSuccess ? sent : ncclRecv(c.receive, c.receive_count, type, c.from, n, s);
        });
      case Operation::send: return answer_of(ncclSend(c.send, c.count, type, c.to, n, s));
      case Operation::receive: return answer_of(ncclRecv(c.receive, c.count, type, c.from, n, s));
    }
    throw Error(ASSAY_INTERNAL, "a collective that NCCL does not know");
  }
  void* register_memory(Comm comm, void* address, std::size_t bytes) override {
    void* handle = nullptr;
    return ncclCommRegister(nccl(comm), address, bytes, &handle) == ncclSuccess ? handle : nullptr;
  }
  void deregister_memory(Comm comm, void* handle) override { (void)ncclCommDeregister(nccl(comm), handle); }
  void* allocate_shared(std::size_t bytes) override {
    void* address = nullptr;
    const ncclResult_t result = ncclMemAlloc(&address, bytes);
    if (result == ncclSuccess) return address;
    (void)cudaGetLastError();
    // NCCL reports missing memory like any other CUDA fault.
    std::size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "read the free memory");
    throw Error(free_bytes < bytes ? ASSAY_OUT_OF_MEMORY : ASSAY_DEVICE_ERROR,
                fmt::format("NCCL allocates no {} bytes for registered memory: {}; {} bytes are free", bytes,
                            answer_of(result).text, free_bytes));
  }
  void free_shared(void* address) noexcept override { (void)ncclMemFree(address); }
  Answer register_window(Comm comm, void* address, std::size_t bytes, void*& window) override {
    window = nullptr;
#if ASSAY_NCCL_HAS_WINDOWS
    if (!ncclCommWindowRegister) return {};  // an older library than the one that this was built with
    static_assert(sizeof(ncclWindow_t) == sizeof(void*));
    const ncclResult_t result = ncclCommWindowRegister(
        nccl(comm), address, bytes, reinterpret_cast<ncclWindow_t*>(&window), NCCL_WIN_COLL_SYMMETRIC);
    if (result == ncclInProgress) return answer_of(result);
    if (result != ncclSuccess) window = nullptr;
#else
    (void)comm, (void)address, (void)bytes;
#endif
    return {};
  }
  void deregister_window(Comm comm, void* window) override {
#if ASSAY_NCCL_HAS_WINDOWS
    if (ncclCommWindowDeregister) (void)ncclCommWindowDeregister(nccl(comm), static_cast<ncclWindow_t>(window));
#else
    (void)comm, (void)window;
#endif
  }
  Answer finalize(Comm comm) override { return answer_of(ncclCommFinalize(nccl(comm))); }
  void destroy_comm(Comm comm) noexcept override { (void)ncclCommDestroy(nccl(comm)); }
  void abort(Comm comm) noexcept override { (void)ncclCommAbort(nccl(comm)); }

 private:
  static bool is_ready(cudaError_t answer, const char* what) {
    if (answer == cudaErrorNotReady) {
      (void)cudaGetLastError();  // the runtime keeps this one, too
      return false;
    }
    check(answer, what);
    return true;
  }
  // The number of the capture, or 0, and its graph.
  static std::pair<std::uint64_t, cudaGraph_t> capture_of(Stream stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long number = 0;
    cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
    const cudaError_t asked = cudaStreamGetCaptureInfo(cuda(stream), &status, &number, &graph);
#else
    const cudaError_t asked = cudaStreamGetCaptureInfo_v2(cuda(stream), &status, &number, &graph);
#endif
    check(asked, "ask whether a stream is being captured");
    if (status == cudaStreamCaptureStatusNone) return {0, nullptr};
    return {number, graph};
  }
  // NCCL carries out the sends and receives of a group together. A group that was begun is also ended where a call in
  // it failed: the next one would become part of it.
  template <class Call>
  static Answer grouped(std::int32_t calls, Call&& call) {
    ncclResult_t result = ncclGroupStart();
    if (result != ncclSuccess) return answer_of(result);
    for (std::int32_t i = 0; i < calls && result == ncclSuccess; ++i) result = call(i);
    const ncclResult_t ended = ncclGroupEnd();
    return answer_of(result == ncclSuccess ? ended : result);
  }
  static bool knows_copy_engines() {
#ifdef NCCL_CTA_POLICY_ZERO
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess && version >= NCCL_VERSION(2, 28, 0);
#else
    return false;
#endif
  }
  ncclConfig_t config_of(bool blocking, std::int32_t max_channels) const {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    if (max_channels > 0) config.maxCTAs = max_channels;
#ifdef NCCL_CTA_POLICY_ZERO
    if (copy_engines_) config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
#endif
    return config;
  }

  const int device_;
  const bool copy_engines_;
  ncclComm_t child_ = nullptr;  // NCCL writes it from its own thread, until the root's state is done
};

}  // namespace

std::unique_ptr<Library> make_cuda_library(Stream compute, bool copy_engines) {
  int device = 0;
  check(cudaStreamGetDevice(cuda(compute), &device), "ask for the device of a stream");
  return std::make_unique<CudaLibrary>(device, copy_engines);
}

}  // namespace assay::comm::nccl
