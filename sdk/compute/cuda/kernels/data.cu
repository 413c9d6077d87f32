// Fills and copies.
#include "cuda_error.hpp"
#include "kernels/data.hpp"
#include "kernels/tiles.cuh"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

using compute::CopyShape;
using compute::DType;

constexpr int threads = 256;
constexpr int words_each = 4;  // per thread

// ---- fill ----------------------------------------------------------------------------------------------------------

// `word` stands in every 16 bytes, or in every element when the address is not aligned.
template <class W>
__global__ void __launch_bounds__(threads) fill_kernel(W* __restrict__ to, W word, std::int64_t count) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (threads * words_each) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < words_each; ++k) {
    const std::int64_t i = first + k * threads;
    if (i < count) to[i] = word;
  }
}

template <class W>
void fill(cudaStream_t stream, void* to, W word, std::int64_t count) {
  if (count <= 0) return;
  fill_kernel<<<grid_size(count, threads * words_each), threads, 0, stream>>>(static_cast<W*>(to), word, count);
  check_launch("fill");
}

template <class E>
void fill_elements(cudaStream_t stream, void* to, E element, std::int64_t count) {
  constexpr std::int64_t wide = pack_bytes / sizeof(E);
  if (count < wide || !aligned({to})) return fill(stream, to, element, count);
  std::uint64_t half = 0;
  for (int i = 0; i < 8; i += static_cast<int>(sizeof(E))) half |= static_cast<std::uint64_t>(element) << (8 * i);
  const auto low = static_cast<unsigned>(half), high = static_cast<unsigned>(half >> 32);
  const std::int64_t packed = count / wide * wide;
  fill(stream, to, uint4{low, high, low, high}, count / wide);
  fill(stream, static_cast<E*>(to) + packed, element, count - packed);
}

// ---- strided walks -------------------------------------------------------------------------------------------------

// A CopyShape with the division to walk it: a thread's number gives the four coordinates, the innermost first.
struct Walk {
  FastDivision extent[3];  // of dimensions 1, 2, 3
  std::int64_t to_step[4], from_step[4];

  explicit Walk(const CopyShape& s) {
    for (int d = 1; d < 4; ++d) extent[d - 1] = FastDivision(s.extent[d]);
    std::copy(s.to_step, s.to_step + 4, to_step);
    std::copy(s.from_step, s.from_step + 4, from_step);
  }
  __device__ __forceinline__ void place(std::uint32_t i, std::int64_t* to, std::int64_t* from) const {
    const std::int64_t i3 = extent[2].split(i), i2 = extent[1].split(i), i1 = extent[0].split(i), i0 = i;
    *to = i0 * to_step[0] + i1 * to_step[1] + i2 * to_step[2] + i3 * to_step[3];
    *from = i0 * from_step[0] + i1 * from_step[1] + i2 * from_step[2] + i3 * from_step[3];
  }
};

std::int64_t elements(const CopyShape& s) { return s.extent[0] * s.extent[1] * s.extent[2] * s.extent[3]; }

// One run of adjacent elements on both sides.
bool flat(const CopyShape& s) {
  const bool one_run = s.extent[0] == 1 && s.extent[1] == 1 && s.extent[2] == 1;
  return one_run && (s.extent[3] == 1 || (s.to_step[3] == 1 && s.from_step[3] == 1));
}

// `s` in units of `wide` elements, which the caller has checked to be adjacent and aligned on both sides.
CopyShape widened(CopyShape s, std::int64_t wide) {
  if (wide == 1) return s;
  s.extent[3] /= wide;
  for (int d = 0; d < 3; ++d) s.to_step[d] /= wide, s.from_step[d] /= wide;
  return s;
}
bool can_widen(const CopyShape& s, std::int64_t wide) {
  if (s.to_step[3] != 1 || s.from_step[3] != 1 || s.extent[3] % wide != 0) return false;
  for (int d = 0; d < 3; ++d)
    if (s.extent[d] > 1 && (s.to_step[d] % wide != 0 || s.from_step[d] % wide != 0)) return false;
  return true;
}

// f(shape, first of to, first of from) over parts that a launch can count: the longest dimension is halved until then.
template <class F>
void for_parts(const CopyShape& s, std::int64_t to, std::int64_t from, const F& f) {
  if (elements(s) <= most_places) return f(s, to, from);
  const auto d = std::max_element(s.extent, s.extent + 4) - s.extent;
  CopyShape low = s, high = s;
  low.extent[d] = s.extent[d] / 2;
  high.extent[d] = s.extent[d] - low.extent[d];
  for_parts(low, to, from, f);
  for_parts(high, to + low.extent[d] * s.to_step[d], from + low.extent[d] * s.from_step[d], f);
}

template <class W>
__global__ void __launch_bounds__(threads)
    copy_kernel(W* __restrict__ to, const W* __restrict__ from, std::uint32_t count, Walk walk) {
  const std::uint32_t first = blockIdx.x * (threads * words_each) + threadIdx.x;
  W word[words_each];
  std::int64_t target[words_each];
#pragma unroll
  for (int k = 0; k < words_each; ++k) {
    const std::uint32_t i = first + k * threads;
    if (i >= count) continue;
    std::int64_t source;
    walk.place(i, &target[k], &source);
    word[k] = from[source];
  }
#pragma unroll
  for (int k = 0; k < words_each; ++k)
    if (first + k * threads < count) to[target[k]] = word[k];
}

template <class W>
void copy_words(cudaStream_t stream, void* to_address, const void* from_address, const CopyShape& whole) {
  for_parts(whole, 0, 0, [&](const CopyShape& s, std::int64_t to, std::int64_t from) {
    const std::int64_t count = elements(s);
    copy_kernel<W><<<grid_size(count, threads * words_each), threads, 0, stream>>>(
        static_cast<W*>(to_address) + to, static_cast<const W*>(from_address) + from, static_cast<std::uint32_t>(count),
        Walk(s));
    check_launch("copy");
  });
}

// ---- conversion ----------------------------------------------------------------------------------------------------

constexpr int flat_width = 8, strided_width = 4;  // elements per access

// The steps of the walk count elements; N adjacent ones are moved at each place.
template <class To, class From, int N>
__global__ void __launch_bounds__(threads)
    convert_strided_kernel(To* __restrict__ to, const From* __restrict__ from, std::uint32_t count, Walk walk) {
  const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  std::int64_t target, source;
  walk.place(i, &target, &source);
  float x[N];
  unpack(load_pack<N, Cache::constant>(from + source * N), x);
  store_pack(to + target * N, pack_from<To>(x));
}

template <class To, class From, int N>
void convert_strided(cudaStream_t stream, To* to_address, const From* from_address, const CopyShape& shape) {
  for_parts(widened(shape, N), 0, 0, [&](const CopyShape& s, std::int64_t to, std::int64_t from) {
    const std::int64_t count = elements(s);
    convert_strided_kernel<To, From, N><<<grid_size(count, threads), threads, 0, stream>>>(
        to_address + to * N, from_address + from * N, static_cast<std::uint32_t>(count), Walk(s));
    check_launch("copy between types");
  });
}

template <class To, class From>
__global__ void __launch_bounds__(threads)
    convert_flat_kernel(To* __restrict__ to, const From* __restrict__ from, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x, packs = count / flat_width;
  if (i < packs) {
    float x[flat_width];
    unpack(load_pack<flat_width, Cache::constant>(from + i * flat_width), x);
    store_pack(to + i * flat_width, pack_from<To>(x));
  }
  const std::int64_t rest = packs * flat_width + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) to[rest] = from_float<To>(to_float(from[rest]));
}

template <class To, class From>
void convert(cudaStream_t stream, To* to, const From* from, const CopyShape& s) {
  if (flat(s) && aligned({to, from})) {
    const std::int64_t count = s.extent[3];
    convert_flat_kernel<<<grid_size(count / flat_width, threads), threads, 0, stream>>>(to, from, count);
    return check_launch("copy between types");
  }
  const bool wide = can_widen(s, strided_width) && aligned({to}, strided_width * sizeof(To)) &&
                    aligned({from}, strided_width * sizeof(From));
  const auto launch = wide ? convert_strided<To, From, strided_width> : convert_strided<To, From, 1>;
  launch(stream, to, from, s);
}

}  // namespace

void launch_fill_bytes(cudaStream_t stream, void* to, std::size_t element_bytes, std::uint64_t bits,
                       std::int64_t count) {
  if (count <= 0) return;
  switch (element_bytes) {
    case 1: return fill_elements(stream, to, static_cast<std::uint8_t>(bits), count);
    case 2: return fill_elements(stream, to, static_cast<std::uint16_t>(bits), count);
    case 4: return fill_elements(stream, to, static_cast<std::uint32_t>(bits), count);
    case 8: return fill_elements(stream, to, bits, count);
    default: misused("a fill of elements that are not 1, 2, 4 or 8 bytes wide");
  }
}

void launch_fill_float(cudaStream_t stream, DType type, void* to, float value, std::int64_t count) {
  switch (type) {
    case DType::f32: return launch_fill_bytes(stream, to, 4, __builtin_bit_cast(std::uint32_t, value), count);
    case DType::bf16:
      return launch_fill_bytes(stream, to, 2, static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x, count);
    case DType::f16: return launch_fill_bytes(stream, to, 2, static_cast<__half_raw>(__float2half_rn(value)).x, count);
    default: misused("a fill with a floating-point value for elements of another type");
  }
}

void launch_copy(cudaStream_t stream, std::size_t element_bytes, void* to, const void* from, const CopyShape& s) {
  if (elements(s) <= 0) return;
  if (flat(s)) {
    const std::size_t bytes = static_cast<std::size_t>(s.extent[3]) * element_bytes;
    return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
  }
  // The widest words that the walk is made of.
  std::size_t word = pack_bytes;
  while (word > element_bytes &&
         !(can_widen(s, static_cast<std::int64_t>(word / element_bytes)) && aligned({to, from}, word)))
    word /= 2;
  const CopyShape wide = widened(s, static_cast<std::int64_t>(word / element_bytes));
  switch (word) {
    case 1: return copy_words<std::uint8_t>(stream, to, from, wide);
    case 2: return copy_words<std::uint16_t>(stream, to, from, wide);
    case 4: return copy_words<std::uint32_t>(stream, to, from, wide);
    case 8: return copy_words<std::uint64_t>(stream, to, from, wide);
    case 16: return copy_words<uint4>(stream, to, from, wide);
    default: misused("a copy of elements that are not 1, 2, 4, 8 or 16 bytes wide");
  }
}

void launch_convert(cudaStream_t stream, DType to_type, DType from_type, void* to, const void* from,
                    const CopyShape& s) {
  if (elements(s) <= 0) return;
  dispatch_float(to_type, [&](auto to_tag) {
    dispatch_float(from_type, [&](auto from_tag) {
      using To = typename decltype(to_tag)::type;
      using From = typename decltype(from_tag)::type;
      convert(stream, static_cast<To*>(to), static_cast<const From*>(from), s);
    });
  });
}

}  // namespace assay::cuda
