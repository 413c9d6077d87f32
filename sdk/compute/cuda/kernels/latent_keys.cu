// Keys of latent attention: each head's own columns beside those that all heads share, which are turned; and the
// gradients by both.
#include "kernels/latent_keys.hpp"

#include "cuda_error.hpp"
#include "kernels/tiles.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

using compute::HeadSteps;
using compute::LatentKeysShape;

constexpr int threads = 256;

template <class T>
struct Latent {
  T* k;  // or the gradient by it, as the others
  T* nope;
  T* shared;
  const float* cos;
  const float* sin;
};

// The places of a token; a thread has one place in all heads. First packs of N of a head's own columns, then M columns
// of the shared ones: a pack, or a pair where no pack fits. Neighbouring threads have neighbouring places.
struct Places {
  FastDivision of_token, positions;
  std::int64_t own;  // packs of a head's own columns
};

__device__ __forceinline__ std::int64_t at(const HeadSteps& steps, std::uint32_t batch, std::uint32_t position) {
  return batch * steps.batch + position * steps.position;
}

template <int N, class T, int M>
__device__ __forceinline__ void load(const T* from, float (&x)[M]) {
#pragma unroll
  for (int i = 0; i < M; i += N) {
    const Pack<T, N> pack = load_pack<N>(from + i);
#pragma unroll
    for (int j = 0; j < N; ++j) x[i + j] = to_float(pack.v[j]);
  }
}

template <int N, class T, int M>
__device__ __forceinline__ void store(T* to, const float (&x)[M]) {
#pragma unroll
  for (int i = 0; i < M; i += N) {
    float part[N];
#pragma unroll
    for (int j = 0; j < N; ++j) part[j] = x[i + j];
    store_pack(to + i, pack_from<T>(part));
  }
}

template <int M>
__device__ __forceinline__ void turn(float (&x)[M], const float* cos, const float* sin, float sign) {
#pragma unroll
  for (int i = 0; i < M; i += 2) {
    const float even = x[i], odd = x[i + 1], turn = sign * sin[i / 2];
    x[i] = even * cos[i / 2] - odd * turn;
    x[i + 1] = even * turn + odd * cos[i / 2];
  }
}

// forward: k of nope and shared; else nope and shared of k.
template <bool forward, class T, int N, int M>
__global__ void __launch_bounds__(threads)
    latent_keys_kernel(Latent<T> t, std::uint32_t count, Places places, LatentKeysShape s) {
  std::uint32_t token = blockIdx.x * threads + threadIdx.x;
  if (token >= count) return;
  const std::int64_t place = places.of_token.split(token);
  std::uint32_t batch = token;
  const std::uint32_t position = places.positions.split(batch);
  T* const k = t.k + at(s.of_k, batch, position);
  if (place < places.own) {
    T* const nope = t.nope + at(s.of_nope, batch, position) + place * N;
    for (std::int64_t h = 0; h < s.heads; ++h) {
      T *const key = k + h * s.of_k.head + place * N, *const own = nope + h * s.of_nope.head;
      if constexpr (forward)
        store_pack(key, load_pack<N>(own));
      else
        store_pack(own, load_pack<N>(key));
    }
    return;
  }
  const std::int64_t column = (place - places.own) * M;
  const float* const cos = t.cos + position * s.pairs + column / 2;
  const float* const sin = t.sin + position * s.pairs + column / 2;
  T* const shared = t.shared + at(s.of_shared, batch, position) + column;
  T* const first = k + s.nope + column;
  float x[M];
  if constexpr (forward) {
    load<N>(shared, x);
    turn(x, cos, sin, 1.0F);
    for (std::int64_t h = 0; h < s.heads; ++h) store<N>(first + h * s.of_k.head, x);
  } else {
    load<N>(first, x);
    for (std::int64_t h = 1; h < s.heads; ++h) {
      float more[M];
      load<N>(first + h * s.of_k.head, more);
#pragma unroll
      for (int i = 0; i < M; ++i) x[i] += more[i];
    }
    turn(x, cos, sin, -1.0F);
    store<N>(shared, x);
  }
}

template <class T>
bool packs_fit(const Latent<T>& t, const LatentKeysShape& s) {
  constexpr std::int64_t N = pack_width<T>;
  if (s.nope % N != 0 || 2 * s.pairs % N != 0 || !aligned({t.k, t.nope, t.shared})) return false;
  for (const HeadSteps& steps : {s.of_nope, s.of_shared, s.of_k})
    if (steps.batch % N != 0 || steps.position % N != 0 || steps.head % N != 0) return false;
  return true;
}

template <bool forward, class T>
void launch(cudaStream_t stream, const Latent<T>& all, const LatentKeysShape& s) {
  constexpr int N = pack_width<T>;
  const bool wide = packs_fit(all, s);
  const std::int64_t own = wide ? s.nope / N : s.nope, places = own + 2 * s.pairs / (wide ? N : 2);
  for_tiles(s.batch * s.positions, places,
            [&](std::int64_t first, std::int64_t tokens, std::int64_t, std::int64_t each) {
              if (first != 0 || each != places) misused("latent_keys: more tokens than one launch counts");
              const auto count = static_cast<std::uint32_t>(tokens * places);
              const auto kernel = wide ? latent_keys_kernel<forward, T, N, N> : latent_keys_kernel<forward, T, 1, 2>;
              kernel<<<grid_size(count, threads), threads, 0, stream>>>(
                  all, count, Places{FastDivision(places), FastDivision(s.positions), own}, s);
              check_launch("latent_keys");
            });
}

template <bool forward>
void dispatch(cudaStream_t stream, compute::DType type, const void* k, const void* nope, const void* shared,
              const float* cos, const float* sin, const LatentKeysShape& given) {
  LatentKeysShape s = given;
  if (s.batch <= 0 || s.positions <= 0) return;
  // The step of a dimension of one entry does not affect the alignment.
  for (HeadSteps* const steps : {&s.of_nope, &s.of_shared, &s.of_k}) {
    if (s.batch == 1) steps->batch = 0;
    if (s.positions == 1) steps->position = 0;
    if (s.heads == 1) steps->head = 0;
  }
  dispatch_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto address = [](const void* p) { return static_cast<T*>(const_cast<void*>(p)); };
    launch<forward>(stream, Latent<T>{address(k), address(nope), address(shared), cos, sin}, s);
  });
}

}  // namespace

void launch_latent_keys_forward(cudaStream_t stream, compute::DType type, void* k, const void* nope, const void* shared,
                                const float* cos, const float* sin, const LatentKeysShape& shape) {
  dispatch<true>(stream, type, k, nope, shared, cos, sin, shape);
}

void launch_latent_keys_backward(cudaStream_t stream, compute::DType type, void* dnope, void* dshared, const void* dk,
                                 const float* cos, const float* sin, const LatentKeysShape& shape) {
  dispatch<false>(stream, type, dk, dnope, dshared, cos, sin, shape);
}

}  // namespace assay::cuda
