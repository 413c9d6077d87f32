#include "elementwise.hpp"

#include "dropout_mask.hpp"
#include "parallel.hpp"

namespace assay::cpu::ASSAY_ISA {
namespace {

// body(i, span) over a share of [0, count) per thread. Element i of the outputs depends on element i of the inputs
// alone and is loaded before it is stored, so an output may be an input.
template <class T, class Body>
ASSAY_INLINE void over_elements(int64_t count, const Body& body) {
  parallel_ranges(count, 64, parallel_bytes / int64_t{sizeof(T)}, [&](int64_t begin, int64_t end) {
    each(
        end - begin, [&](int64_t i, auto span) __attribute__((always_inline)) { body(begin + i, span); });
  });
}

template <class T>
void add(const void* a_address, const void* b_address, void* out_address, int64_t count) {
  const T *const a = static_cast<const T*>(a_address), *const b = static_cast<const T*>(b_address);
  T* const out = static_cast<T*>(out_address);
  over_elements<T>(
      count, [=](int64_t i, auto span) { store_span(out + i, load_span(a + i, span) + load_span(b + i, span), span); });
}

template <class T>
void multiply(const void* a_address, const void* b_address, void* out_address, int64_t count) {
  const T *const a = static_cast<const T*>(a_address), *const b = static_cast<const T*>(b_address);
  T* const out = static_cast<T*>(out_address);
  over_elements<T>(
      count, [=](int64_t i, auto span) { store_span(out + i, load_span(a + i, span) * load_span(b + i, span), span); });
}

template <class T>
void scale(const void* x_address, float factor, void* out_address, int64_t count) {
  const T* const x = static_cast<const T*>(x_address);
  T* const out = static_cast<T*>(out_address);
  over_elements<T>(count, [=](int64_t i, auto span) { store_span(out + i, load_span(x + i, span) * factor, span); });
}

template <class T>
void soft_cap(const void* x_address, float cap, void* out_address, int64_t count) {
  const T* const x = static_cast<const T*>(x_address);
  T* const out = static_cast<T*>(out_address);
  over_elements<T>(
      count, [=](int64_t i, auto span) { store_span(out + i, cap * tanh_vec(load_span(x + i, span) / cap), span); });
}

// ---- activations: value(x) and slope(x) ----------------------------------------------------------------------------

ASSAY_INLINE Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp_vec(-x)); }

struct Relu {
  ASSAY_INLINE Vec value(Vec x) { return x < 0.0f ? Vec{} : x; }  // NaN stays NaN
  ASSAY_INLINE Vec slope(Vec x) { return x > 0.0f ? splat(1.0f) : Vec{}; }
};

struct ValueAndSlope {
  Vec value, slope;
};

struct Silu {
  ASSAY_INLINE Vec value(Vec x) { return x * sigmoid(x); }
  ASSAY_INLINE ValueAndSlope both(Vec x) {
    const Vec s = sigmoid(x), silu = x * s;
    return {silu, s + silu * (1.0f - s)};
  }
  ASSAY_INLINE Vec slope(Vec x) {
    const Vec s = sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
  }
};

// The normal distribution function, in relative precision on the left tail too. For z = |x| / sqrt(2), erfc(z) is
// exp(-z^2) t P(t) with t = 1 / (1 + 0.42 z); P is a fit of ours to exp(z^2) erfc(z) on [0, 6.6], within 4e-8.
// `bell` receives exp(-x^2 / 2).
ASSAY_INLINE Vec normal_cdf(Vec x, Vec* bell) {
  const Vec z = (x < 0.0f ? -x : x) * 0.707106781f;
  const Vec t = 1.0f / (1.0f + 0.42f * z);
  Vec p = 0.0757840109f * t - 0.344096566f;
  p = p * t + 0.483229801f;
  p = p * t - 0.171372106f;
  p = p * t + 0.291452994f;
  p = p * t + 0.18742681f;
  p = p * t + 0.240839502f;
  p = p * t + 0.236735552f;
  *bell = exp_vec(-0.5f * x * x);
  const Vec tail = 0.5f * *bell * t * p;
  return x < 0.0f ? tail : 1.0f - tail;
}

struct GeluErf {
  ASSAY_INLINE Vec value(Vec x) {
    Vec bell;
    return x * normal_cdf(x, &bell);
  }
  ASSAY_INLINE Vec slope(Vec x) {
    Vec bell;
    const Vec cdf = normal_cdf(x, &bell);
    return cdf + x * 0.398942280f * bell;
  }
};

// 0.5 x (1 + tanh(u)) is x sigmoid(2 u), without the cancellation.
struct GeluTanh {
  static constexpr float twice_root = 1.59576912f;  // 2 sqrt(2 / pi)
  ASSAY_INLINE Vec value(Vec x) { return x * sigmoid(twice_root * (x + 0.044715f * x * x * x)); }
  ASSAY_INLINE Vec slope(Vec x) { return both(x).slope; }
  ASSAY_INLINE ValueAndSlope both(Vec x) {
    const Vec s = sigmoid(twice_root * (x + 0.044715f * x * x * x));
    return {x * s, s + x * s * (1.0f - s) * twice_root * (1.0f + 3.0f * 0.044715f * x * x)};
  }
};

template <class F, class T>
void activation_forward(const void* x_address, void* y_address, int64_t count) {
  const T* const x = static_cast<const T*>(x_address);
  T* const y = static_cast<T*>(y_address);
  over_elements<T>(count, [=](int64_t i, auto span) { store_span(y + i, F::value(load_span(x + i, span)), span); });
}

template <class F, class T>
void activation_backward(const void* x_address, const void* dy_address, void* dx_address, int64_t count) {
  const T *const x = static_cast<const T*>(x_address), *const dy = static_cast<const T*>(dy_address);
  T* const dx = static_cast<T*>(dx_address);
  over_elements<T>(count, [=](int64_t i, auto span) {
    store_span(dx + i, load_span(dy + i, span) * F::slope(load_span(x + i, span)), span);
  });
}

// ---- bias ----------------------------------------------------------------------------------------------------------

template <class T, class B>
void bias_add(const void* x_address, const void* bias_address, void* y_address, int64_t rows, int64_t width) {
  const T* const x = static_cast<const T*>(x_address);
  const B* const bias = static_cast<const B*>(bias_address);
  T* const y = static_cast<T*>(y_address);
  parallel_rows(rows, width * int64_t{sizeof(T)}, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const from = x + r * width;
      T* const to = y + r * width;
      each(width, [=](int64_t c, auto span) {
        store_span(to + c, load_span(from + c, span) + load_span(bias + c, span), span);
      });
    }
  });
}

template <class T, class B>
void bias_backward(const void* dy_address, void* dbias_address, bool accumulate, int64_t rows, int64_t width,
                   float* partial) {
  const T* const dy = static_cast<const T*>(dy_address);
  B* const dbias = static_cast<B*>(dbias_address);
  const int64_t blocks = bias_blocks(rows);
  const int64_t block_bytes = (rows / (blocks > 0 ? blocks : 1) + 1) * width * int64_t{sizeof(T)};
  parallel_rows(blocks, block_bytes, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* const sum = partial + block * width;
      for (int64_t c = 0; c < width; ++c) sum[c] = 0.0f;
      int64_t r = rows * block / blocks;
      const int64_t last = rows * (block + 1) / blocks;
      for (; r + 4 <= last; r += 4) {  // by fours: one pass over the sums for four rows
        const T *const p0 = dy + r * width, *const p1 = p0 + width, *const p2 = p1 + width, *const p3 = p2 + width;
        each(width, [=](int64_t c, auto span) {
          const Vec four =
              (load_span(p0 + c, span) + load_span(p1 + c, span)) + (load_span(p2 + c, span) + load_span(p3 + c, span));
          store_span(sum + c, load_span(sum + c, span) + four, span);
        });
      }
      for (; r < last; ++r) {
        const T* const from = dy + r * width;
        each(width, [=](int64_t c, auto span) {
          store_span(sum + c, load_span(sum + c, span) + load_span(from + c, span), span);
        });
      }
    }
  });
  parallel_ranges(width, 64, parallel_bytes / 4 / (blocks + 1) + 1, [=](int64_t begin, int64_t end) {
    constexpr int64_t tile = 64;
    float sum[tile];
    for (int64_t c = begin; c < end; c += tile) {
      const int64_t n = end - c < tile ? end - c : tile;
      for (int64_t j = 0; j < n; ++j) sum[j] = accumulate ? load(dbias + c + j) : 0.0f;
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t j = 0; j < n; ++j) sum[j] += partial[block * width + c + j];
      for (int64_t j = 0; j < n; ++j) store(dbias + c + j, sum[j]);
    }
  });
}

// ---- SwiGLU --------------------------------------------------------------------------------------------------------

// F: Silu or GeluTanh.
template <class F, class T>
void swiglu_forward(const void* gate_address, const void* up_address, void* h_address, const SwigluShape& s) {
  const T *const gate = static_cast<const T*>(gate_address), *const up = static_cast<const T*>(up_address);
  T* const h = static_cast<T*>(h_address);
  parallel_rows(s.rows, s.width * int64_t{sizeof(T)}, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *const g = gate + r * s.gate_step, *const u = up + r * s.up_step;
      T* const to = h + r * s.h_step;
      each(s.width, [=](int64_t c, auto span) {
        store_span(to + c, F::value(load_span(g + c, span)) * load_span(u + c, span), span);
      });
    }
  });
}

template <class F, class T, bool with_h>
ASSAY_INLINE void swiglu_backward_row(const T* g, const T* u, const T* dh, T* dg, T* du, T* h, int64_t width) {
  each(width, [=](int64_t c, auto span) {
    const Vec x = load_span(g + c, span), y = load_span(u + c, span), d = load_span(dh + c, span);
    const ValueAndSlope f = F::both(x);
    if constexpr (with_h) store_span(h + c, f.value * y, span);
    store_span(dg + c, d * y * f.slope, span);
    store_span(du + c, d * f.value, span);
  });
}

template <class F, class T>
void swiglu_backward(const void* gate_address, const void* up_address, const void* dh_address, void* dgate_address,
                     void* dup_address, void* h_address, const SwigluShape& s) {
  const T *const gate = static_cast<const T*>(gate_address), *const up = static_cast<const T*>(up_address),
                 *const dh = static_cast<const T*>(dh_address);
  T *const dgate = static_cast<T*>(dgate_address), *const dup = static_cast<T*>(dup_address),
           *const h = static_cast<T*>(h_address);
  parallel_rows(s.rows, s.width * int64_t{sizeof(T)}, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *const g = gate + r * s.gate_step, *const u = up + r * s.up_step, *const d = dh + r * s.dh_step;
      T *const dg = dgate + r * s.dgate_step, *const du = dup + r * s.dup_step;
      if (h)
        swiglu_backward_row<F, T, true>(g, u, d, dg, du, h + r * s.h_step, s.width);
      else
        swiglu_backward_row<F, T, false>(g, u, d, dg, du, dg, s.width);
    }
  });
}

// ---- dropout -------------------------------------------------------------------------------------------------------

template <class T>
void dropout(const void* x_address, void* y_address, int64_t count, const DropoutArgs& args) {
  const T* const x = static_cast<const T*>(x_address);
  T* const y = static_cast<T*>(y_address);
  const Mask mask(args);
  parallel_ranges(count, philox_tile_words, 64 * philox_tile_words, [&](int64_t begin, int64_t end) {
    each_masked(mask, begin, end - begin, [=](int64_t j, auto span, auto through) {
      store_span(y + begin + j, through(load_span(x + begin + j, span)), span);
    });
  });
}

template <class T, class B>
void bias_relu_dropout(const void* x_address, const void* bias_address, void* y_address, int64_t rows, int64_t width,
                       const DropoutArgs& args) {
  const T* const x = static_cast<const T*>(x_address);
  const B* const bias = static_cast<const B*>(bias_address);
  T* const y = static_cast<T*>(y_address);
  const auto over_rows = [&](auto row) {
    parallel_rows(rows, width * int64_t{sizeof(T)}, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row(r, x + r * width, y + r * width);
    });
  };
  const auto activated = [=](const T* from, int64_t c, auto span) {
    const Vec shifted = bias ? load_span(from + c, span) + load_span(bias + c, span) : load_span(from + c, span);
    return Relu::value(shifted);
  };
  const Mask mask(args);
  if (!mask.drops()) {
    over_rows([=](int64_t, const T* from, T* to) {
      each(width, [=](int64_t c, auto span) { store_span(to + c, activated(from, c, span), span); });
    });
    return;
  }
  over_rows([=](int64_t r, const T* from, T* to) {
    each_masked(mask, r * width, width, [=](int64_t c, auto span, auto through) {
      store_span(to + c, through(activated(from, c, span)), span);
    });
  });
}

template <class T>
void relu_dropout_backward(const void* y_address, const void* dy_address, void* dx_address, float factor,
                           int64_t count) {
  const T *const y = static_cast<const T*>(y_address), *const dy = static_cast<const T*>(dy_address);
  T* const dx = static_cast<T*>(dx_address);
  over_elements<T>(count, [=](int64_t i, auto span) {
    const Vec scaled = load_span(dy + i, span) * factor;
    store_span(dx + i, load_span(y + i, span) > 0.0f ? scaled : Vec{}, span);
  });
}

}  // namespace

extern const ElementwiseKernels elementwise_kernels = {
    {add<float>, add<bf16>},
    {multiply<float>, multiply<bf16>},
    {scale<float>, scale<bf16>},
    {soft_cap<float>, soft_cap<bf16>},
    {{activation_forward<Relu, float>, activation_forward<Relu, bf16>},
     {activation_forward<GeluErf, float>, activation_forward<GeluErf, bf16>},
     {activation_forward<GeluTanh, float>, activation_forward<GeluTanh, bf16>},
     {activation_forward<Silu, float>, activation_forward<Silu, bf16>}},
    {{activation_backward<Relu, float>, activation_backward<Relu, bf16>},
     {activation_backward<GeluErf, float>, activation_backward<GeluErf, bf16>},
     {activation_backward<GeluTanh, float>, activation_backward<GeluTanh, bf16>},
     {activation_backward<Silu, float>, activation_backward<Silu, bf16>}},
    {{bias_add<float, float>, bias_add<float, bf16>}, {bias_add<bf16, float>, bias_add<bf16, bf16>}},
    {{bias_backward<float, float>, bias_backward<float, bf16>},
     {bias_backward<bf16, float>, bias_backward<bf16, bf16>}},
    {{swiglu_forward<Silu, float>, swiglu_forward<Silu, bf16>},
     {swiglu_forward<GeluTanh, float>, swiglu_forward<GeluTanh, bf16>}},
    {{swiglu_backward<Silu, float>, swiglu_backward<Silu, bf16>},
     {swiglu_backward<GeluTanh, float>, swiglu_backward<GeluTanh, bf16>}},
    {dropout<float>, dropout<bf16>},
    {{bias_relu_dropout<float, float>, bias_relu_dropout<float, bf16>},
     {bias_relu_dropout<bf16, float>, bias_relu_dropout<bf16, bf16>}},
    {relu_dropout_backward<float>, relu_dropout_backward<bf16>},
};

}  // namespace assay::cpu::ASSAY_ISA
