// Sums, products and activations of contiguous tensors.
#include <assay/compute/operations/elementwise.hpp>

#include "cuda_error.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/math.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

using compute::Activation;
using compute::DType;

constexpr int threads = 256;
constexpr int packs_each = 2;  // per thread and input: enough bytes under way, and small tensors still fill the device

template <class T, int inputs>
struct Sources {
  const T* from[inputs];
};

// out[i] = op(from[0][i], ...). N elements per access; the last count % N elements are done one by one.
template <class T, int N, int inputs, class Op>
__global__ void __launch_bounds__(threads) map_kernel(Sources<T, inputs> in, T* out, std::int64_t count, Op op) {
  const std::int64_t packs = count / N;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (threads * packs_each) + threadIdx.x;
  Pack<T, N> x[packs_each][inputs];
#pragma unroll
  for (int k = 0; k < packs_each; ++k) {
    const std::int64_t i = first + k * threads;
    if (i >= packs) continue;
#pragma unroll
    for (int s = 0; s < inputs; ++s) x[k][s] = load_pack<N>(in.from[s] + i * N);
  }
#pragma unroll
  for (int k = 0; k < packs_each; ++k) {
    const std::int64_t i = first + k * threads;
    if (i >= packs) continue;
    float y[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if constexpr (inputs == 1)
        y[j] = op(to_float(x[k][0].v[j]));
      else
        y[j] = op(to_float(x[k][0].v[j]), to_float(x[k][1].v[j]));
    }
    store_pack(out + i * N, pack_from<T>(y));
  }
  if constexpr (N > 1) {
    const std::int64_t i = packs * N + threadIdx.x;
    if (blockIdx.x != 0 || i >= count) return;
    if constexpr (inputs == 1)
      out[i] = from_float<T>(op(to_float(in.from[0][i])));
    else
      out[i] = from_float<T>(op(to_float(in.from[0][i]), to_float(in.from[1][i])));
  }
}

template <class T, int inputs, class Op>
void map(cudaStream_t stream, const char* operation, const Sources<T, inputs>& in, T* out, std::int64_t count, Op op) {
  if (count <= 0) return;
  constexpr int wide = pack_width<T>;
  if (aligned({in.from[0], in.from[inputs - 1], out}))
    map_kernel<T, wide, inputs>
        <<<grid_size(count / wide, threads * packs_each), threads, 0, stream>>>(in, out, count, op);
  else
    map_kernel<T, 1, inputs><<<grid_size(count, threads * packs_each), threads, 0, stream>>>(in, out, count, op);
  check_launch(operation);
}

template <class T, class Op>
void map_one(cudaStream_t stream, const char* operation, const void* x, void* y, std::int64_t count, Op op) {
  map<T, 1>(stream, operation, {{static_cast<const T*>(x)}}, static_cast<T*>(y), count, op);
}
template <class T, class Op>
void map_two(cudaStream_t stream, const char* operation, const void* a, const void* b, void* out, std::int64_t count,
             Op op) {
  map<T, 2>(stream, operation, {{static_cast<const T*>(a), static_cast<const T*>(b)}}, static_cast<T*>(out), count, op);
}

struct Add {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Multiply {
  __device__ __forceinline__ float operator()(float a, float b) const { return a * b; }
};
struct Scale {
  float factor;
  __device__ __forceinline__ float operator()(float x) const { return x * factor; }
};
struct SoftCap {
  float cap;
  __device__ __forceinline__ float operator()(float x) const { return cap * tanhf(x / cap); }
};
struct WherePositive {
  float factor;
  __device__ __forceinline__ float operator()(float y, float dy) const { return y > 0.0F ? dy * factor : 0.0F; }
};

// ---- activations: value(x) and slope(x) ----------------------------------------------------------------------------

template <class T>
struct Relu {
  static __device__ __forceinline__ float value(float x) { return x < 0.0F ? 0.0F : x; }  // NaN stays NaN
  static __device__ __forceinline__ float slope(float x) { return x > 0.0F ? 1.0F : 0.0F; }
};

template <class T>
struct Silu {
  static __device__ __forceinline__ float value(float x) { return x * sigmoid<T>(x); }
  static __device__ __forceinline__ float slope(float x) {
    const float s = sigmoid<T>(x);
    return s * (1.0F + x * (1.0F - s));
  }
};

template <class T>
struct GeluErf {
  static __device__ __forceinline__ float value(float x) {
    float bell;
    return x * normal_cdf<T>(x, &bell);
  }
  static __device__ __forceinline__ float slope(float x) {
    float bell;
    const float cdf = normal_cdf<T>(x, &bell);
    return cdf + x * 0.398942280F * bell;
  }
};

template <class F>
struct Value {
  __device__ __forceinline__ float operator()(float x) const { return F::value(x); }
};
template <class F>
struct TimesSlope {
  __device__ __forceinline__ float operator()(float x, float dy) const { return dy * F::slope(x); }
};

// f(TypeTag<Relu<T>>()) and so on.
template <class T, class F>
void dispatch_activation(Activation kind, F&& f) {
  switch (kind) {
    case Activation::relu: return f(TypeTag<Relu<T>>());
    case Activation::gelu_erf: return f(TypeTag<GeluErf<T>>());
    case Activation::gelu_tanh: return f(TypeTag<GeluTanh<T>>());
    case Activation::silu: return f(TypeTag<Silu<T>>());
  }
  misused("an activation that the kernels do not know");
}

}  // namespace

void launch_add(cudaStream_t stream, DType type, const void* a, const void* b, void* out, std::int64_t count) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_two<T>(stream, "add", a, b, out, count, Add());
  });
}

void launch_multiply(cudaStream_t stream, DType type, const void* a, const void* b, void* out, std::int64_t count) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_two<T>(stream, "multiply", a, b, out, count, Multiply());
  });
}

void launch_scale(cudaStream_t stream, DType type, const void* x, float factor, void* out, std::int64_t count) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_one<T>(stream, "scale", x, out, count, Scale{factor});
  });
}

void launch_soft_cap(cudaStream_t stream, DType type, const void* x, float cap, void* out, std::int64_t count) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_one<T>(stream, "soft_cap", x, out, count, SoftCap{cap});
  });
}

void launch_relu_dropout_backward(cudaStream_t stream, DType type, const void* y, const void* dy, void* dx,
                                  float factor, std::int64_t count) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_two<T>(stream, "relu_dropout_backward", y, dy, dx, count, WherePositive{factor});
  });
}

void launch_activation_forward(cudaStream_t stream, DType type, Activation kind, const void* x, void* y,
                               std::int64_t count) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    dispatch_activation<T>(kind, [&](auto function) {
      map_one<T>(stream, "activation_forward", x, y, count, Value<typename decltype(function)::type>());
    });
  });
}

void launch_activation_backward(cudaStream_t stream, DType type, Activation kind, const void* x, const void* dy,
                                void* dx, std::int64_t count) {
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    dispatch_activation<T>(kind, [&](auto function) {
      map_two<T>(stream, "activation_backward", x, dy, dx, count, TimesSlope<typename decltype(function)::type>());
    });
  });
}

}  // namespace assay::cuda
