// The operations that workloads are made of, behind one interface that each device backend implements.
//
// Notation: T floating-point tensors of one dtype (fp32 or bf16) unless said otherwise; "rows" are all dimensions but
// the last, flattened. Statistics (rstd, mean, log-sum-exp), losses, and every accumulation are fp32. Tensors are
// contiguous unless an operation says that it honours strides.
//
// Execution: every call enqueues on the stream that the backend was made with and may return before the work is done;
// host code must not read a tensor before synchronize(). In Mode::prepare a call does all that precedes execution
// (finds kernels, creates primitives, reserves workspace) and does not touch the tensors: a workload runs its step once
// in that mode during setup, so that no step ever allocates.
//
// Errors: assay::Error. UNSUPPORTED for a dtype or shape the backend does not serve: never another algorithm under the
// same name. Debug builds assert shapes.
//
// This interface is C++ and not frozen: a workload and a backend must come from the same SDK release and compiler
// family. `interface_id` is compared when a backend is opened. (The frozen border is assay/abi.h.)
#pragma once
#include <assay/compute/tensor.hpp>
#include <assay/plugin.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace assay::compute {

inline constexpr const char* interface_id = "assay.compute/1 revision 1 C++20 gxx-abi-1016 lp64";

enum class Mode : std::int32_t { execute, prepare };

struct MatmulOptions {
  bool transpose_a = false;  // use a as its transpose over the last two dimensions
  bool transpose_b = false;
  float alpha = 1.0F;
  bool accumulate = false;  // c += alpha a b instead of c = alpha a b
};

enum class Activation : std::int32_t { relu, gelu_erf, gelu_tanh, silu };

struct AttentionShape {  // q: [B, Tq, H, D], k and v: [B, Tk, H, D], by strides (a packed QKV buffer is three views)
  float scale = 0.0F;    // usually 1/sqrt(D)
  bool causal = true;    // key j is visible to query i when j <= i + (Tk - Tq)
};

struct AdamWOptions {  // as torch.optim.AdamW; lr and step come from device memory
  float beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F, weight_decay = 0.01F;
};
struct SgdOptions {  // as torch.optim.SGD with dampening 0
  float momentum = 0.0F, weight_decay = 0.0F;
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
  virtual void set_mode(Mode) = 0;
  virtual void synchronize() = 0;
  // Bytes of workspace the operations seen so far need; the caller provides at least that much after preparing.
  virtual std::size_t workspace_bytes() const = 0;
  virtual void set_workspace(void* address, std::size_t bytes) = 0;
  virtual std::vector<PrimitiveInfo> primitives() const = 0;

  // ---- moving and making data --------------------------------------------------------------------------------------
  virtual void upload(const Tensor& to, const void* host_source) = 0;  // contiguous; blocks until host_source is read
  virtual void download(void* host_target, const Tensor& from) = 0;  // contiguous; blocks until host_target is written
  virtual void fill(const Tensor& x, double value) = 0;
  virtual void copy(const Tensor& to, const Tensor& from) = 0;  // honours strides; converts between fp32, bf16, fp16
  // Counter-based (Philox 4x32-10): element i depends on (seed, stream, i) alone, whatever the number of threads.
  virtual void random_normal(const Tensor& x, std::uint64_t seed, std::uint64_t stream, float mean, float std) = 0;
  virtual void random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t stream, std::int64_t low,
                               std::int64_t high) = 0;  // i64 in [low, high)

  // ---- matrix products ---------------------------------------------------------------------------------------------
  // c[..., m, n] = alpha * op(a)[..., m, k] op(b)[..., k, n] (+ c). Rank 2, 3 or 4, equal leading dimensions; honours
  // strides (last two dimensions: one of them contiguous). a and b of one dtype; c of that dtype or fp32.
  virtual void matmul(const Tensor& a, const Tensor& b, const Tensor& c, const MatmulOptions& options = {}) = 0;

  // ---- element-wise ------------------------------------------------------------------------------------------------
  virtual void add(const Tensor& a, const Tensor& b, const Tensor& out) = 0;  // out may be a or b
  virtual void multiply(const Tensor& a, const Tensor& b, const Tensor& out) = 0;
  virtual void scale(const Tensor& x, float factor, const Tensor& out) = 0;
  virtual void activation_forward(Activation, const Tensor& x, const Tensor& y) = 0;
  virtual void activation_backward(Activation, const Tensor& x, const Tensor& dy,
                                   const Tensor& dx) = 0;                           // dx may be dy
  virtual void bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) = 0;  // y[r, c] = x[r, c] + bias[c]
  // dbias[c] (+)= sum over rows of dy[r, c]; dbias fp32 or the dtype of dy.
  virtual void bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) = 0;
  // Fused h = silu(gate) * up; honours a row stride, so that gate and up may be halves of one buffer [rows, 2 d_ff].
  virtual void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) = 0;
  // dgate and dup may be gate and up. When `h` is given, silu(gate) * up is written there on the way (for the gradient
  // of the matrix that follows).
  virtual void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate,
                               const Tensor& dup, const Tensor& h) = 0;
  // y = x * mask / (1 - p), mask from (seed, stream, *step, element index); the backward is the same call on dy.
  virtual void dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed, std::uint64_t stream,
                       const Tensor& step) = 0;

  // ---- embedding and position --------------------------------------------------------------------------------------
  virtual void embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) = 0;  // ids i64 [rows]
  // dtable[ids[r], :] += dout[r, :]; the same sum in the same order for any number of threads. dtable fp32 or dtype.
  virtual void embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable) = 0;
  // cos, sin: fp32 [T, D/2] of position * theta^(-2i/D).
  virtual void rotary_table(const Tensor& cos, const Tensor& sin, double theta) = 0;
  // In place on x [B, T, H, D] (honours strides), interleaved pairs (x0,x1), (x2,x3), ...; `inverse` rotates back,
  // which is also the backward.
  virtual void rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) = 0;

  // ---- normalisation, over the last dimension C --------------------------------------------------------------------
  // y = x * rstd * weight, rstd = 1/sqrt(mean(x^2) + eps). weight fp32 or dtype of x. rstd fp32 [rows].
  virtual void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                                float eps) = 0;
  // Fused sum = x + residual; y = rms_norm(sum). sum may be x or residual.
  virtual void add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                                    const Tensor& y, const Tensor& rstd, float eps) = 0;
  // dx (+)= gradient by x; dweight (fp32 or dtype) += gradient by weight. With `accumulate_dx`, dx may hold the
  // gradient that came by the residual path. dx may be dy when not accumulating.
  virtual void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                                 const Tensor& dx, bool accumulate_dx, const Tensor& dweight) = 0;
  // y = (x - mean) * rstd * weight + bias.
  virtual void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                                  const Tensor& mean, const Tensor& rstd, float eps) = 0;
  virtual void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& dx, bool accumulate_dx, const Tensor& dweight,
                                   const Tensor& dbias) = 0;

  // ---- attention and loss ------------------------------------------------------------------------------------------
  // y[..., i, j] = softmax over j of scale * x[..., i, j], with j > i + (Tk - Tq) left out when causal (y is 0 there).
  virtual void softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) = 0;         // y may be x
  virtual void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) = 0;  // dx may be dy
  // Tiled, without the Tq x Tk matrix. out [B, Tq, H, D] by strides; lse fp32 [B, H, Tq].
  virtual void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                 const Tensor& lse, const AttentionShape& shape) = 0;
  virtual void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                  const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk,
                                  const Tensor& dv, const AttentionShape& shape) = 0;
  // losses[r] = -log softmax(logits[r, :])[labels[r]], fp32 [rows]; lse fp32 [rows]. labels i64; a label < 0 is
  // ignored: its loss and its gradient are 0. Logits fp32 or bf16.
  virtual void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                     const Tensor& lse) = 0;
  virtual void cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                                      const Tensor& dlogits) = 0;
  // Both in one pass over the logits, which become scale * (softmax - one_hot).
  virtual void cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                      float scale) = 0;

  // ---- reductions to one fp32 number; the same result for any number of threads
  // --------------------------------------
  virtual void sum(const Tensor& x, const Tensor& out, float factor) = 0;  // out[0] = factor * sum of x
  virtual void sum_of_squares(const Tensor& x, const Tensor& out) = 0;
  virtual void max_abs(const Tensor& x, const Tensor& out) = 0;  // NaN when any element is NaN
  virtual void count_nonfinite(const Tensor& x, const Tensor& out) = 0;

  // ---- optimizers, over whole arenas
  // ---------------------------------------------------------------------------------
  virtual void advance(const Tensor& step) = 0;  // i64 [1] += 1
  // parameter, m, v: fp32; gradient: fp32 or bf16; or all of them bf16 (bf16_pure, computed in fp32, rounded to
  // nearest). step i64 [1] counts from 1. `compute_copy` (bf16, may be empty) receives the rounded parameter.
  virtual void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v,
                     const Tensor& step, const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy) = 0;
  // momentum may be empty when options.momentum is 0. The first step (step == 1) sets momentum = gradient.
  virtual void sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
                   const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy) = 0;
};

// What "assay.compute/1" of a device table points to.
struct BackendFactory {
  const char* interface_id;
  // Throws assay::Error. The device must outlive the backend.
  Backend* (*create)(assay_device* device, void* stream);
};

}  // namespace assay::compute
