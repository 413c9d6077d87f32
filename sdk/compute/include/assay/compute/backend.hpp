// The operations that workloads are made of, behind one interface that each device backend implements.
//
// Notation: T floating-point tensors of one dtype unless said otherwise: fp32 or bf16, on CUDA also fp16; "rows" are
// all dimensions but the last, flattened. Statistics (rstd, mean, log-sum-exp), losses, and every accumulation are
// fp32. Tensors are contiguous unless an operation says that it honours strides.
//
// Execution: every call enqueues on the stream that the backend was made with and may return before the work is done;
// host code must not read a tensor before synchronize(). In Mode::prepare a call does all that precedes execution
// (finds kernels, creates primitives, reserves workspace) and does not touch the tensors: a workload runs its step once
// in that mode during setup, so that no step ever allocates.
//
// Lanes: between begin_side() and end_side() operations go to a second lane, which starts after everything enqueued
// before begin_side() and may run beside what follows end_side(), until join_side(). A device without lanes runs all in
// order. Whoever uses the side lane sees to it that what it reads is not overwritten before the join.
//
// Errors: assay::Error. UNSUPPORTED for a dtype or shape the backend does not serve: never another algorithm under the
// same name. Debug builds assert shapes.
//
// This interface is C++ and not frozen: a workload and a backend must come from the same SDK release, and from a
// compiler with the same C++ ABI. `interface_id` is compared when a backend is opened. (The frozen border is
// assay/abi.h.)
#pragma once
#include <assay/compute/cxx_abi.hpp>
#include <assay/compute/tensor.hpp>
#include <assay/plugin.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::compute {

// The revision rises with every change of a declaration below.
inline constexpr const char* interface_id = "assay.compute/1 revision 4 " ASSAY_CXX_ABI;

enum class Mode : std::int32_t { execute, prepare };

// Says whether matrix products of fp32 tensors (also those of attention) take their inputs as they are, or round them
// to tf32's ten bits of mantissa, as the matrix units do.
enum class ProductMath : std::int32_t { exact, tf32 };

struct MatmulOptions {
  bool transpose_a = false;  // use a as its transpose over the last two dimensions
  bool transpose_b = false;
  float alpha = 1.0F;
  bool accumulate = false;  // c += alpha a b instead of c = alpha a b
  // [n], the dtype of c: c[..., j] += bias[j] on the way. Empty: none. Not with `accumulate`; alpha 1.
  Tensor bias = {};
};

enum class Activation : std::int32_t { relu, gelu_erf, gelu_tanh, silu };

// Inverted dropout: of x, element i becomes x[i] / (1 - probability), or 0 with that probability. The mask is never
// stored: it is made anew, the same each time, from (seed, stream, *step, i) alone, wherever it is needed. With
// probability 0 nothing is dropped and the rest is not looked at.
struct Dropout {
  float probability = 0.0F;  // in [0, 1)
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // one for each place of a model
  Tensor step = {};          // i64 [1] in device memory: another mask each step, also in a captured one
};

struct AttentionShape {  // q: [B, Tq, H, D], k and v: [B, Tk, H, D], by strides (a packed QKV buffer is three views)
  float scale = 0.0F;    // usually 1/sqrt(D)
  bool causal = true;    // key j is visible to query i when j <= i + (Tk - Tq)
  // Drops elements of the softmax's result. Element i counts in [B, H, Tq, Tk], so that the mask is that of dropout()
  // on the score matrix; but cuDNN's attention (16-bit types on CUDA) makes a mask of its own from the same three
  // numbers.
  Dropout dropout = {};
};

// SumOrder and SumOptions define a sum whose rounding is the point: every partial result is rounded to `accumulator`,
// to nearest even, by the device's own arithmetic where it has that type, and no term is reordered but as `order` says.
// Where a term is of another type than the accumulator, the two are added in fp32 and the result is rounded. A sum
// starts from 0.
enum class SumOrder : std::int32_t {
  sequential,   // s += x[i], i rising
  chunked,      // sequential sums of `chunk` terms each, then the sequential sum of these
  pairwise,     // halves, the first of n / 2 terms, rounded down; down to one term
  compensated,  // Kahan's sum, in the accumulator's type throughout
  // The order of PyTorch's sum of a contiguous vector on a CPU, on one thread; see Cascade.
  cascade,
};
// The terms are rows of `rows_of_lanes` vectors of `lanes` terms; each of a row's columns has a sum of its own, at four
// levels. Level 0 adds one row after the other. When it has 2^power of them, it is added to level 1 and starts from 0,
// which does the same to level 2 after as many, and that to level 3. After the last whole row the levels of a column
// are added from 0 to 3; then what whole vectors are left are added to the row's first one; then the row's vectors,
// one after the other, are one vector. The terms that fill no vector are added from 0, one after the other, and then
// the numbers of that vector, in their order. Fewer terms than `lanes` are added with one lane.
struct Cascade {
  static constexpr std::int64_t rows_of_lanes = 4, levels = 4, most_lanes = 64;
  static constexpr std::int64_t least_power = 4;
  std::int64_t lanes, rows, power;
  constexpr Cascade(std::int64_t count, std::int64_t wanted_lanes)
      : lanes(count < wanted_lanes ? 1 : wanted_lanes), rows(count / (rows_of_lanes * lanes)), power(least_power) {
    std::int64_t bits = 0;  // the least for which 2^bits are not fewer than the rows
    while ((std::int64_t{1} << bits) < rows) ++bits;
    if (bits / levels > power) power = bits / levels;
  }
  constexpr std::int64_t columns() const { return rows_of_lanes * lanes; }
};
struct SumOptions {
  DType accumulator = DType::f32;  // f32, bf16, f16
  SumOrder order = SumOrder::sequential;
  std::int64_t chunk = 0;     // terms of a chunk (chunked only), at least 1
  bool upcast_terms = false;  // a term is first converted to the accumulator's type and stored as such, then added
  std::int64_t lanes = 8;     // terms of a vector (cascade only), 1 to Cascade::most_lanes
};

struct AdamWOptions {  // as torch.optim.AdamW; lr and step come from device memory
  float beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F, weight_decay = 0.01F;
};
struct SgdOptions {  // as torch.optim.SGD with dampening 0
  float momentum = 0.0F, weight_decay = 0.0F;
};

// Dynamic loss scaling, for fp16: the loss's gradient is multiplied by *scale, the optimizer divides by it, and a step
// whose gradients are not all finite changes nothing. Both fp32 [1] in device memory; empty tensors: no scaling.
struct LossScale {
  Tensor scale;
  Tensor nonfinite;  // how many gradient elements were not finite, from count_nonfinite
};
struct LossScaleOptions {  // as torch.amp.GradScaler
  float growth = 2.0F, backoff = 0.5F;
  std::int64_t growth_interval = 2000;  // steps in a row without a skip before the scale grows
};

// Carries inputs from host memory to the device beside what the compute stream does. It has `slots` host buffers of one
// size, page-locked where the device copies from them by itself, and as many twins in device memory. A slot goes
// through: filled by anyone (host_buffer; any thread), send, deliver, reclaim, and again. All calls but host_buffer by
// the backend's thread.
class Feed {
 public:
  Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  virtual ~Feed() = default;
  virtual void* host_buffer(std::size_t slot) const = 0;
  // Starts the copy to the device, on a stream of its own, after the slot's last deliver. Does not block.
  virtual void send(std::size_t slot) = 0;
  // Enqueues on the compute stream: wait for the slot's copy, then its bytes to `to` (contiguous, of at most the slot's
  // bytes). A captured step thus finds its input always in the same place.
  virtual void deliver(std::size_t slot, const Tensor& to) = 0;
  // Blocks until the host buffer of a slot that was sent has been read, and may be filled anew.
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
  virtual void set_mode(Mode) = 0;
  virtual void synchronize() = 0;
  // Bytes of workspace the operations seen so far need; the caller provides at least that much after preparing.
  virtual std::size_t workspace_bytes() const = 0;
  virtual void set_workspace(void* address, std::size_t bytes) = 0;
  virtual std::vector<PrimitiveInfo> primitives() const = 0;
  // exact unless set. UNSUPPORTED where the device has no such mode.
  virtual void set_product_math(ProductMath) = 0;
  // Records the operations that `enqueue` enqueues (in Mode::execute, after preparing it) as a graph; nothing is
  // executed, and no operation that blocks is allowed inside. Null where the device has no graphs: the caller enqueues
  // each step anew.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) = 0;
  // `device_memory`: slots times bytes_per_slot, rounded up to 256 each; must outlive the feed. Page-locked host memory
  // is the feed's own. OUT_OF_MEMORY when there is none.
  virtual std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) = 0;
  virtual void begin_side() {}
  virtual void end_side() {}
  virtual void join_side() {}

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
  // y = dropout(relu(x + bias)); y may be x. bias [C] fp32 or the dtype of x, or empty.
  virtual void bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y, const Dropout&) = 0;
  // dx = dy / (1 - probability) where y > 0, else 0: y, the forward's result, tells both masks. dx may be dy.
  virtual void relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) = 0;

  // ---- embedding and position --------------------------------------------------------------------------------------
  virtual void embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) = 0;  // ids i64 [rows]
  // dtable[ids[r], :] (+)= dout[r, :]; the same sum in the same order for any number of threads. Without `accumulate`
  // rows that no id names become 0. dtable fp32 or dtype.
  virtual void embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) = 0;
  // cos, sin: fp32 [T, D/2] of position * theta^(-2i/D).
  virtual void rotary_table(const Tensor& cos, const Tensor& sin, double theta) = 0;
  // Works in place on x [B, T, H, D] (honours strides) with interleaved pairs (x0,x1), (x2,x3), ...; `inverse` rotates
  // back, which is also the backward.
  virtual void rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) = 0;

  // ---- normalisation, over the last dimension C --------------------------------------------------------------------
  // y = x * rstd * weight, rstd = 1/sqrt(mean(x^2) + eps). weight fp32 or dtype of x. rstd fp32 [rows].
  virtual void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                                float eps) = 0;
  // Fused sum = x + residual; y = rms_norm(sum). sum may be x or residual.
  virtual void add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                                    const Tensor& y, const Tensor& rstd, float eps) = 0;
  // dx = gradient by x (+ residual, the gradient that came by the residual path; may be empty, may be dx); dweight
  // (fp32 or dtype) (+)= gradient by weight. dx may be dy. When `y` is given, the forward's result is written there
  // again, for the gradient of the matrix that follows; y must be none of the others.
  virtual void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                                 const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                                 bool accumulate_dweight, const Tensor& y) = 0;
  // y = (x - mean) * rstd * weight + bias.
  virtual void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                                  const Tensor& mean, const Tensor& rstd, float eps) = 0;
  // Works as rms_norm_backward; accumulate_dweight also holds for dbias.
  virtual void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                                   const Tensor& dbias, bool accumulate_dweight) = 0;

  // The end of a post-norm block in one pass: sum = dropout(x + bias) + residual; y = layer_norm(sum). bias [C] may be
  // empty. sum may be x or residual. mean, rstd as in layer_norm_forward.
  virtual void dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                              const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                              const Tensor& norm_bias, const Tensor& y, const Tensor& mean,
                                              const Tensor& rstd, float eps) = 0;
  // Its backward: dsum = gradient by `sum`, which is also that by `residual`; dx = gradient by x + bias, dsum through
  // the dropout's mask; dbias, dweight, dnorm_bias (fp32 or dtype) (+)= gradients by the three vectors. dsum may be dy.
  // dx and dbias may be empty; dx must be when nothing is dropped, where it is dsum.
  virtual void dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight,
                                               const Tensor& mean, const Tensor& rstd, const Dropout& dropout,
                                               const Tensor& dsum, const Tensor& dx, const Tensor& dbias,
                                               const Tensor& dweight, const Tensor& dnorm_bias, bool accumulate) = 0;

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
  // ignored: its loss and its gradient are 0. The gradient is multiplied by `scale` and, when given, by *loss_scale
  // (fp32 [1]).
  virtual void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                     const Tensor& lse) = 0;
  virtual void cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                                      const Tensor& loss_scale, const Tensor& dlogits) = 0;
  // Both in one pass over the logits, which become scale * (softmax - one_hot).
  virtual void cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses, float scale,
                                      const Tensor& loss_scale) = 0;

  // ---- reductions to one fp32 number; the same result for any number of threads ------------------------------------
  virtual void sum(const Tensor& x, const Tensor& out, float factor) = 0;  // out[0] = factor * sum of x
  virtual void sum_of_squares(const Tensor& x, const Tensor& out) = 0;
  virtual void max_abs(const Tensor& x, const Tensor& out) = 0;  // NaN when any element is NaN
  virtual void count_nonfinite(const Tensor& x, const Tensor& out) = 0;

  // ---- sums for the study of rounding, not for speed: fp32, bf16 or fp16 on every device ---------------------------
  // out[0] = sum of x (rank 1), in the way that `options` says. out fp32 [1], which holds each accumulator exactly.
  virtual void ordered_sum(const Tensor& x, const Tensor& out, const SumOptions& options) = 0;
  // out[0] = sum of x[i] y[i]; each product is rounded to the accumulator's type before it is added.
  virtual void ordered_dot(const Tensor& x, const Tensor& y, const Tensor& out, const SumOptions& options) = 0;

  // ---- optimizers, over whole arenas -------------------------------------------------------------------------------
  // i64 [1] += 1, but not when loss_scale.nonfinite is given and holds more than 0.
  virtual void advance(const Tensor& step, const LossScale& loss_scale) = 0;
  // parameter, m, v: fp32; gradient: fp32 or 16 bits wide; or all of them bf16 (bf16_pure, computed in fp32, rounded to
  // nearest). step i64 [1] counts from 1. `compute_copy` (bf16 or fp16, may be empty) receives the rounded parameter.
  virtual void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v,
                     const Tensor& step, const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy,
                     const LossScale& loss_scale) = 0;
  // momentum may be empty when options.momentum is 0. The first step (step == 1) sets momentum = gradient.
  virtual void sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
                   const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy,
                   const LossScale& loss_scale) = 0;
  // To be called after the optimizer. nonfinite > 0 shrinks the scale, counts a skipped step and sets good_steps to 0;
  // otherwise good_steps counts up, and at the interval the scale grows and it starts anew. good_steps, skipped_steps:
  // i64 [1].
  virtual void update_loss_scale(const LossScale& loss_scale, const Tensor& good_steps, const Tensor& skipped_steps,
                                 const LossScaleOptions& options) = 0;
};

// The extension "assay.compute/1" of a device table points to this.
struct BackendFactory {
  const char* interface_id;
  // Throws assay::Error. The device must outlive the backend.
  Backend* (*create)(assay_device* device, void* stream);
};

}  // namespace assay::compute
