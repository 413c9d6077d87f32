#include "kernels/ordered_sum.hpp"

#include <algorithm>

#include "cuda_error.hpp"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

using compute::Cascade;
using compute::SumOrder;

constexpr int threads = 256, tree_levels = 8;
static_assert(threads == 1 << tree_levels);
static_assert(threads >= Cascade::rows_of_lanes * Cascade::most_lanes);
constexpr int most_depth = 48;  // of a thread's part of the tree of halves: enough for 2^48 terms

// ---- arithmetic, each result rounded to nearest and none fused with another ----------------------------------------
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float subtract(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ f16 add(f16 a, f16 b) { return __hadd_rn(a, b); }
__device__ __forceinline__ f16 subtract(f16 a, f16 b) { return __hsub_rn(a, b); }
__device__ __forceinline__ f16 multiply(f16 a, f16 b) { return __hmul_rn(a, b); }
__device__ __forceinline__ bf16 add(bf16 a, bf16 b) { return __hadd_rn(a, b); }
__device__ __forceinline__ bf16 subtract(bf16 a, bf16 b) { return __hsub_rn(a, b); }
__device__ __forceinline__ bf16 multiply(bf16 a, bf16 b) { return __hmul_rn(a, b); }

// A term of another type than a 16-bit accumulator's meets it in fp32, and the result is rounded to the accumulator.
template <class A, class Term>
__device__ __forceinline__ A plus(A sum, Term term) {
  if constexpr (std::is_same_v<A, Term>)
    return add(sum, term);
  else
    return from_float<A>(add(to_float(sum), term));
}
template <class A, class Term>
__device__ __forceinline__ A less(Term term, A lost) {
  if constexpr (std::is_same_v<A, Term>)
    return subtract(term, lost);
  else
    return from_float<A>(subtract(term, to_float(lost)));
}
template <class A, class Term>
__device__ __forceinline__ A rounded(Term term) {
  return from_float<A>(to_float(term));  // between 16-bit types fp32 holds both
}

// What is added, of numbers of T in an accumulator of A. A fp32 accumulator holds every T, so there is nothing to
// convert first.
template <class T, class A, bool upcast>
struct Terms {
  static constexpr bool native = std::is_same_v<T, A> || std::is_same_v<A, float> || upcast;
  const T* x;
  __device__ __forceinline__ auto operator()(std::int64_t i) const {
    if constexpr (native)
      return rounded<A>(x[i]);
    else
      return to_float(x[i]);
  }
};
template <class T, class A, bool upcast>
struct Products {
  const T *x, *y;
  __device__ __forceinline__ A operator()(std::int64_t i) const {
    if constexpr (Terms<T, A, upcast>::native)
      return multiply(rounded<A>(x[i]), rounded<A>(y[i]));
    else
      return from_float<A>(multiply(to_float(x[i]), to_float(y[i])));
  }
};

// ---- orders --------------------------------------------------------------------------------------------------------
template <class A, class Source>
__device__ A sequential(const Source& term, std::int64_t begin, std::int64_t end) {
  A sum = from_float<A>(0.0F);
#pragma unroll 8
  for (std::int64_t i = begin; i < end; ++i) sum = plus(sum, term(i));
  return sum;
}

template <class A, class Source>
__device__ A compensated(const Source& term, std::int64_t count) {
  A sum = from_float<A>(0.0F), lost = sum;
#pragma unroll 8
  for (std::int64_t i = 0; i < count; ++i) {
    const A y = less(term(i), lost);
    const A next = add(sum, y);
    lost = subtract(subtract(next, sum), y);
    sum = next;
  }
  return sum;
}

// The sum of two halves, the first one the shorter, and each of them in the same way; count is at least 1. Bit k of
// `path` says which half was taken at depth k. Where a half lies is worked out anew for each term: a stack of places
// would be local memory, which a device sets aside for every thread that it could run.
template <class A, class Source>
__device__ A pairwise(const Source& term, std::int64_t first, std::int64_t count) {
  A left[most_depth];
  std::uint64_t path = 0;
  int depth = 0;
  while (true) {
    std::int64_t begin = first, size = count;
    for (int k = 0; k < depth; ++k) {
      const std::int64_t half = size / 2;
      const bool right = path >> k & 1;
      begin += right ? half : 0;
      size = right ? size - half : half;
    }
    for (; size > 1; size /= 2) path &= ~(std::uint64_t{1} << depth++);  // to the first term of this half
    A value = rounded<A>(term(begin));
    while (depth > 0 && (path >> (depth - 1) & 1)) value = add(left[--depth], value);
    if (depth == 0) return value;
    left[depth - 1] = value;
    path |= std::uint64_t{1} << (depth - 1);
  }
}

// The upper levels of that tree over the threads of the block; each thread has a part of at least one term.
template <class A, class Source>
__device__ A pairwise_of_block(const Source& term, std::int64_t count, A* shared) {
  int levels = 0;
  while (levels < tree_levels && (std::int64_t{2} << levels) <= count) ++levels;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 1 << levels) {
    std::int64_t begin = 0, size = count;
    for (int level = levels - 1; level >= 0; --level) {
      const std::int64_t half = size / 2;
      const bool right = thread >> level & 1;
      begin += right ? half : 0;
      size = right ? size - half : half;
    }
    shared[thread] = pairwise<A>(term, begin, size);
  }
  for (int level = levels - 1; level >= 0; --level) {
    __syncthreads();
    A sum = from_float<A>(0.0F);
    if (thread < 1 << level) sum = add(shared[2 * thread], shared[2 * thread + 1]);
    __syncthreads();
    if (thread < 1 << level) shared[thread] = sum;
  }
  __syncthreads();
  return shared[0];
}

// A thread for each column; the first `lanes` threads add them up. Cascade states the rule.
template <class A, class Source>
__device__ A cascade_of_block(const Source& term, std::int64_t count, const Cascade& c, A* shared) {
  const std::int64_t column = threadIdx.x;
  if (column < c.columns()) {
    A level[Cascade::levels];
    for (A& sum : level) sum = from_float<A>(0.0F);
    for (std::int64_t row = 0; row < c.rows;) {
      level[0] = plus(level[0], term(row * c.columns() + column));
      ++row;
      for (int k = 1; k < Cascade::levels && row % (std::int64_t{1} << (c.power * k)) == 0; ++k) {
        level[k] = add(level[k], level[k - 1]);
        level[k - 1] = from_float<A>(0.0F);
      }
    }
    for (int k = 1; k < Cascade::levels; ++k) level[0] = add(level[0], level[k]);
    shared[column] = level[0];
  }
  __syncthreads();
  const std::int64_t vectors_end = count / c.lanes * c.lanes;
  if (column < c.lanes) {
    A sum = shared[column];
    for (std::int64_t i = c.rows * c.columns() + column; i < vectors_end; i += c.lanes) sum = plus(sum, term(i));
    for (int row = 1; row < Cascade::rows_of_lanes; ++row) sum = add(sum, shared[row * c.lanes + column]);
    shared[column] = sum;
  }
  __syncthreads();
  A sum = sequential<A>(term, vectors_end, count);
  for (std::int64_t lane = 0; lane < c.lanes; ++lane) sum = add(sum, shared[lane]);
  return sum;
}

template <class A, class Source>
__global__ void __launch_bounds__(threads)
    ordered_sum_kernel(const Source term, std::int64_t count, const compute::SumOptions options, float* out,
                       float* partials) {
  __shared__ float tree[threads];  // room for any A
  A sum = from_float<A>(0.0F);
  if (options.order == SumOrder::pairwise) {
    if (count > 0) sum = pairwise_of_block<A>(term, count, reinterpret_cast<A*>(tree));
  } else if (options.order == SumOrder::chunked) {
    const std::int64_t chunks = (count - 1) / options.chunk + 1;
    for (std::int64_t c = threadIdx.x; count > 0 && c < chunks; c += threads) {
      const std::int64_t begin = c * options.chunk;
      partials[c] = to_float(sequential<A>(term, begin, begin + min(options.chunk, count - begin)));
    }
    __syncthreads();
    const auto partial = [&](std::int64_t c) { return from_float<A>(partials[c]); };
    if (threadIdx.x == 0 && count > 0) sum = sequential<A>(partial, 0, chunks);
  } else if (options.order == SumOrder::cascade) {
    sum = cascade_of_block<A>(term, count, Cascade(count, options.lanes), reinterpret_cast<A*>(tree));
  } else if (threadIdx.x == 0) {
    sum = options.order == SumOrder::compensated ? compensated<A>(term, count) : sequential<A>(term, 0, count);
  }
  if (threadIdx.x == 0) *out = to_float(sum);
}

template <class A, class Source>
void launch(const OrderedSumArgs& a, const Source& term, cudaStream_t stream) {
  ordered_sum_kernel<A><<<1, threads, 0, stream>>>(term, a.count, a.options, a.out, a.partials);
}

template <class T, class A, bool upcast>
void sum_or_dot(const OrderedSumArgs& a, cudaStream_t stream) {
  const T* const x = static_cast<const T*>(a.x);
  if (a.y)
    launch<A>(a, Products<T, A, upcast>{x, static_cast<const T*>(a.y)}, stream);
  else
    launch<A>(a, Terms<T, A, upcast>{x}, stream);
}

}  // namespace

void ordered_sum(const OrderedSumArgs& a, cudaStream_t stream) {
  dispatch_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    dispatch_float(a.options.accumulator, [&](auto total_tag) {
      using A = typename decltype(total_tag)::type;
      if (!Terms<T, A, false>::native && a.options.upcast_terms)
        sum_or_dot<T, A, !Terms<T, A, false>::native>(a, stream);
      else
        sum_or_dot<T, A, false>(a, stream);
    });
  });
  check_launch(a.y ? "ordered_dot" : "ordered_sum");
}

}  // namespace assay::cuda
