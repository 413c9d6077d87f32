// The CUDA backend: cuBLASLt for matrix products, cuDNN for attention of 16-bit types, our own kernels for the rest.
// The operations are spread over backend_*.cpp by theme; each enqueues a kernel of kernels/ on the
// lane in use. Nothing here waits for the device but upload, download and synchronize.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/backend.hpp>

#include <array>
#include <limits>
#include <map>
#include <string>

#include "attention_plans.hpp"
#include "common/kernel_arguments.hpp"
#include "common/operation_checks.hpp"
#include "common/parallel_jobs.hpp"
#include "common/shared_algorithms.hpp"
#include "cuda_handles.hpp"

namespace assay::cuda {

// The interface and the shared checks, by their own names.
using namespace compute;

// Kernels that go over rows count columns in 32 bits.
inline void require_countable(const char* operation, const Tensor& x) {
  if (x.dim(-1) > std::numeric_limits<std::int32_t>::max())
    reject(operation, std::to_string(x.dim(-1)) + " columns given; expected fewer than 2^31");
}

struct GroupedProduct;
class CudaInspector;
class MatmulPlans;  // cuBLASLt descriptors and algorithms by shape, see matmul_plans.hpp

class CudaBackend final : public compute::Backend {
 public:
  CudaBackend(int ordinal, cudaStream_t stream);
  ~CudaBackend() override;

  // backend.cpp
  const char* kind() const override { return "cuda"; }
  void set_mode(Mode) override;
  void synchronize() override;
  std::size_t workspace_bytes() const override;
  void set_workspace(void* address, std::size_t bytes) override;
  std::vector<PrimitiveInfo> primitives() const override;
  void set_product_math(ProductMath) override;
  void leave_multiprocessors(std::int32_t count) override;
  void set_tuning(Tuning) override;
  void share_tuning(AlgorithmExchange* with) override;
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override;
  void begin_side() override;
  void end_side() override;
  void join_side() override;
  Inspector* inspector() override;

  // backend_data.cpp
  void upload(const Tensor& to, const void* host_source) override;
  void download(void* host_target, const Tensor& from) override;

  // backend_feed.cpp
  std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) override;

  // backend.cpp: checks the operation, then carries it out by the function for its kind.
  void run_any(const AnyOperation& operation) override;

 private:
  // Each enqueues a checked operation; they are spread over backend_*.cpp.
#define ASSAY_DECLARE_EXECUTE(Name) void execute(const op::Name& op);
  ASSAY_OPERATIONS(ASSAY_DECLARE_EXECUTE)
#undef ASSAY_DECLARE_EXECUTE

  // The two lanes have separate streams and scratch. The workspace holds the main lane's scratch, then the side's.
  struct Lane {
    cudaStream_t stream = nullptr;
    std::size_t scratch_bytes = 0;  // the most that an operation on it has asked for
    std::size_t given_bytes = 0;    // what set_workspace() left it
    void* scratch = nullptr;
  };
  bool preparing() const { return mode_ == Mode::prepare; }
  bool tf32() const { return math_ == ProductMath::tf32; }
  cudaStream_t stream() const { return lanes_[lane_].stream; }
  // Scratch for the operations that need it, 256-byte aligned: asks for `bytes` while preparing, hands them out while
  // executing (null for 0 bytes). One region serves all operations of a lane, since none outlives its call and a lane
  // runs in order.
  void* scratch(std::size_t bytes);
  void want_scratch(std::size_t lane, std::size_t bytes);
  // Prepares what was put off while plans of attention were built: in the order of the walk, on a quiet device. Called
  // by whoever asks what it makes known.
  void finish_preparing() const;
  // Attention of 16-bit types.
  void run_cudnn(const char* operation, const AttentionKey& key, AttentionPointers pointers,
                 const AttentionShape& shape, const Tensor& sinks, const Tensor& lse);

  // backend_grouped.cpp
  void run_grouped(const char* operation, const GroupedProduct& product);

  int ordinal_;
  int multiprocessors_ = 0, left_multiprocessors_ = 0, compute_capability_ = 0;  // of 9.0: 9
  Mode mode_ = Mode::execute;
  ProductMath math_ = ProductMath::exact;
  Stream side_stream_;
  Event forked_, joined_;
  std::array<Lane, 2> lanes_;
  std::size_t lane_ = 0;         // in use: 0 main, 1 side
  bool side_in_flight_ = false;  // the main lane has not waited for the last of the side lane yet
  SharedAlgorithms shared_;      // of products and attention, which therefore have one leader
  std::unique_ptr<MatmulPlans> matmuls_;
  std::unique_ptr<AttentionPlans> attentions_;
  std::map<std::string, std::string> grouped_products_;  // prepared, and the kernel of each
  std::unique_ptr<CudaInspector> inspector_;             // made when a verification asks for it
  mutable PostponedCalls postponed_;                     // see finish_preparing()
};

}  // namespace assay::cuda
