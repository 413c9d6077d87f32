// The CUDA backend: cuBLASLt for matrix products, cuDNN for attention of 16-bit types, kernels of our own for the rest.
// The operations are spread over backend_*.cpp by theme; each checks its arguments, then enqueues a kernel of kernels/
// on the lane in use. Nothing here waits for the device but upload, download and synchronize.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/backend.hpp>

#include <array>

#include "attention_plans.hpp"
#include "common/operation_checks.hpp"
#include "cuda_handles.hpp"

namespace assay::cuda {

// The interface and the shared checks, by their own names.
using namespace compute;

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
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override;
  void begin_side() override;
  void end_side() override;
  void join_side() override;

  // backend_data.cpp
  void upload(const Tensor& to, const void* host_source) override;
  void download(void* host_target, const Tensor& from) override;
  void fill(const Tensor& x, double value) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void random_normal(const Tensor& x, std::uint64_t seed, std::uint64_t stream, float mean, float std) override;
  void random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t stream, std::int64_t low,
                       std::int64_t high) override;
  void embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) override;
  void embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) override;
  void rotary_table(const Tensor& cos, const Tensor& sin, double theta) override;
  void rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) override;

  // backend_feed.cpp
  std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) override;

  // backend_matmul.cpp
  void matmul(const Tensor& a, const Tensor& b, const Tensor& c, const MatmulOptions& options) override;

  // backend_elementwise.cpp
  void add(const Tensor& a, const Tensor& b, const Tensor& out) override;
  void multiply(const Tensor& a, const Tensor& b, const Tensor& out) override;
  void scale(const Tensor& x, float factor, const Tensor& out) override;
  void activation_forward(Activation, const Tensor& x, const Tensor& y) override;
  void activation_backward(Activation, const Tensor& x, const Tensor& dy, const Tensor& dx) override;
  void bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) override;
  void bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) override;
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) override;
  void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate, const Tensor& dup,
                       const Tensor& h) override;
  void dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed, std::uint64_t stream,
               const Tensor& step) override;
  void bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y, const Dropout& dropout) override;
  void relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) override;

  // backend_norm.cpp
  void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd, float eps) override;
  void add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                            const Tensor& y, const Tensor& rstd, float eps) override;
  void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                         const Tensor& residual, const Tensor& dx, const Tensor& dweight, bool accumulate_dweight,
                         const Tensor& y) override;
  void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                          const Tensor& mean, const Tensor& rstd, float eps) override;
  void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                           const Tensor& rstd, const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                           const Tensor& dbias, bool accumulate_dweight) override;
  void dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                      const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                      const Tensor& norm_bias, const Tensor& y, const Tensor& mean, const Tensor& rstd,
                                      float eps) override;
  void dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight, const Tensor& mean,
                                       const Tensor& rstd, const Dropout& dropout, const Tensor& dsum, const Tensor& dx,
                                       const Tensor& dbias, const Tensor& dweight, const Tensor& dnorm_bias,
                                       bool accumulate) override;

  // backend_attention.cpp
  void softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) override;
  void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) override;
  void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                         const AttentionShape& shape) override;
  void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                          const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                          const AttentionShape& shape) override;

  // backend_training.cpp: loss, reductions, optimizers
  void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                             const Tensor& lse) override;
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                              const Tensor& loss_scale, const Tensor& dlogits) override;
  void cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses, float scale,
                              const Tensor& loss_scale) override;
  void sum(const Tensor& x, const Tensor& out, float factor) override;
  void sum_of_squares(const Tensor& x, const Tensor& out) override;
  void max_abs(const Tensor& x, const Tensor& out) override;
  void count_nonfinite(const Tensor& x, const Tensor& out) override;
  void ordered_sum(const Tensor& x, const Tensor& out, const SumOptions& options) override;
  void ordered_dot(const Tensor& x, const Tensor& y, const Tensor& out, const SumOptions& options) override;
  void advance(const Tensor& step, const LossScale& loss_scale) override;
  void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v, const Tensor& step,
             const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy,
             const LossScale& loss_scale) override;
  void sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
           const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy,
           const LossScale& loss_scale) override;
  void update_loss_scale(const LossScale& loss_scale, const Tensor& good_steps, const Tensor& skipped_steps,
                         const LossScaleOptions& options) override;

 private:
  // The two lanes have streams and scratch of their own. The workspace holds the main lane's scratch, then the side's.
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
  // Attention of 16-bit types.
  void run_cudnn(const char* operation, const AttentionKey& key, const AttentionPointers& pointers,
                 const Dropout& dropout);

  int ordinal_;
  int multiprocessors_ = 0;
  Mode mode_ = Mode::execute;
  ProductMath math_ = ProductMath::exact;
  Stream side_stream_;
  Event forked_, joined_;
  std::array<Lane, 2> lanes_;
  std::size_t lane_ = 0;         // in use: 0 main, 1 side
  bool side_in_flight_ = false;  // the main lane has not waited for the last of the side lane yet
  std::unique_ptr<MatmulPlans> matmuls_;
  std::unique_ptr<AttentionPlans> attentions_;
};

}  // namespace assay::cuda
