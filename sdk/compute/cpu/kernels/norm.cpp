// Each row is read from memory once: it is short enough to stay in the first cache for the second look. Sums run over
// whole vectors (see vec.hpp), one row per thread at a time.
#include "norm.hpp"

#include "dropout_mask.hpp"
#include "norm_types.hpp"
#include "parallel.hpp"

namespace assay::cpu::ASSAY_ISA {

static int64_t row_blocks(int64_t rows) { return rows < max_norm_row_blocks ? rows : max_norm_row_blocks; }

// ---- forward -------------------------------------------------------------------------------------------------------
template <class X, class W>
static void rms_forward_typed(const NormArgs& a) {
  const W* const weight = static_cast<const W*>(a.weight);
  const float offset = a.weight_offset;
  parallel_rows(a.rows, 2 * a.columns * int64_t(sizeof(X)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const X* x = static_cast<const X*>(a.x) + r * a.columns;
      X* const y = static_cast<X*>(a.y) + r * a.columns;
      float squares;
      if (a.residual) {
        const X* const residual = static_cast<const X*>(a.residual) + r * a.columns;
        X* const sum = static_cast<X*>(a.sum) + r * a.columns;
        // Normalise what was stored: the backward will see the rounded sum.
        squares = sum_each(a.columns, [&](int64_t i, auto span) {
          store_span(sum + i, load_span(x + i, span) + load_span(residual + i, span), span);
          const Vec s = load_span(sum + i, span);
          return s * s;
        });
        x = sum;
      } else {
        squares = sum_each(a.columns, [&](int64_t i, auto span) {
          const Vec s = load_span(x + i, span);
          return s * s;
        });
      }
      const float rstd = 1.0f / __builtin_sqrtf(squares / float(a.columns) + a.eps);
      a.rstd[r] = rstd;
      each(a.columns, [&](int64_t i, auto span) {
        store_span(y + i, load_span(x + i, span) * rstd * (load_span(weight + i, span) + offset), span);
      });
    }
  });
}

// The row of a.sum: dropout(x + x_bias) + residual.
template <class X, class W>
ASSAY_INLINE const X* add_branch(const NormArgs& a, const Mask& mask, int64_t r) {
  const X* const x = static_cast<const X*>(a.x) + r * a.columns;
  const X* const residual = static_cast<const X*>(a.residual) + r * a.columns;
  const W* const bias = static_cast<const W*>(a.x_bias);
  X* const sum = static_cast<X*>(a.sum) + r * a.columns;
  const auto branch = [=](int64_t i, auto span) {
    return bias ? load_span(x + i, span) + load_span(bias + i, span) : load_span(x + i, span);
  };
  if (!mask.drops())
    each(a.columns,
         [=](int64_t i, auto span) { store_span(sum + i, branch(i, span) + load_span(residual + i, span), span); });
  else
    each_masked(mask, r * a.columns, a.columns, [=](int64_t i, auto span, auto through) {
      store_span(sum + i, through(branch(i, span)) + load_span(residual + i, span), span);
    });
  return sum;
}

template <class X, class W>
static void layer_forward_typed(const NormArgs& a) {
  const W* const weight = static_cast<const W*>(a.weight);
  const W* const bias = static_cast<const W*>(a.bias);
  const Mask mask(a.dropout);
  parallel_rows(a.rows, 2 * a.columns * int64_t(sizeof(X)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      // Normalise what was stored: the backward will see the rounded sum.
      const X* const x = a.sum ? add_branch<X, W>(a, mask, r) : static_cast<const X*>(a.x) + r * a.columns;
      X* const y = static_cast<X*>(a.y) + r * a.columns;
      const float mean =
          sum_each(a.columns, [&](int64_t i, auto span) { return load_span(x + i, span); }) / float(a.columns);
      // From the distances to the mean, not from the squares: the latter lose everything where mean >> deviation.
      const float squares = sum_each(a.columns, [&](int64_t i, auto span) {
        const Vec d = load_span(x + i, span, mean) - mean;
        return d * d;
      });
      const float rstd = 1.0f / __builtin_sqrtf(squares / float(a.columns) + a.eps);
      a.mean[r] = mean;
      a.rstd[r] = rstd;
      each(a.columns, [&](int64_t i, auto span) {
        const Vec normal = (load_span(x + i, span) - mean) * rstd;
        store_span(y + i, normal * load_span(weight + i, span) + load_span(bias + i, span), span);
      });
    }
  });
}

// ---- backward ------------------------------------------------------------------------------------------------------
template <class X>
ASSAY_INLINE void put_gradient(X* dx, Vec gradient, const X* residual, int64_t i, auto span) {
  store_span(dx + i, residual ? load_span(residual + i, span) + gradient : gradient, span);
}
ASSAY_INLINE void add_to(float* total, Vec x, auto span) { store_span(total, load_span(total, span) + x, span); }

// With n = x rstd and g = dy weight: dx = rstd (g - n mean(g n)), dweight = sum of dy n.
template <class X, class W>
static void rms_backward_typed(const NormArgs& a) {
  const W* const weight = static_cast<const W*>(a.weight);
  const float offset = a.weight_offset;
  const int64_t blocks = row_blocks(a.rows);
  const int64_t block_bytes = 3 * a.columns * int64_t(sizeof(X)) * (a.rows / (blocks ? blocks : 1) + 1);
  parallel_rows(blocks, block_bytes, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* const dweight = a.weight_partials + block * a.columns;
      for (int64_t i = 0; i < a.columns; ++i) dweight[i] = 0.0f;
      for (int64_t r = a.rows * block / blocks; r < a.rows * (block + 1) / blocks; ++r) {
        const X* const x = static_cast<const X*>(a.x) + r * a.columns;
        const X* const dy = static_cast<const X*>(a.dy) + r * a.columns;
        X* const dx = static_cast<X*>(a.dx) + r * a.columns;
        const X* const residual = a.residual ? static_cast<const X*>(a.residual) + r * a.columns : nullptr;
        const float rstd = a.rstd[r];
        const float dot = sum_each(a.columns, [&](int64_t i, auto span) {
          return load_span(dy + i, span) * (load_span(weight + i, span) + offset) * load_span(x + i, span);
        });
        const float pull = dot * rstd * rstd / float(a.columns);
        each(a.columns, [&](int64_t i, auto span) {
          const Vec x_here = load_span(x + i, span), dy_here = load_span(dy + i, span);
          add_to(dweight + i, dy_here * x_here * rstd, span);
          put_gradient(dx, (dy_here * (load_span(weight + i, span) + offset) - x_here * pull) * rstd, residual, i,
                       span);
          if (a.y)
            store_span(static_cast<X*>(a.y) + r * a.columns + i, x_here * rstd * (load_span(weight + i, span) + offset),
                       span);
        });
      }
    }
  });
}

// With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)).
template <class X, class W>
static void layer_backward_typed(const NormArgs& a) {
  const W* const weight = static_cast<const W*>(a.weight);
  const int64_t blocks = row_blocks(a.rows);
  const Mask mask(a.dropout);
  const bool masked = mask.drops() && (a.x_gradient || a.x_bias_partials);
  const int64_t block_bytes = 3 * a.columns * int64_t(sizeof(X)) * (a.rows / (blocks ? blocks : 1) + 1);
  parallel_rows(blocks, block_bytes, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* const dweight = a.weight_partials + block * a.columns;
      float* const dbias = a.bias_partials + block * a.columns;
      float* const x_bias_sums = a.x_bias_partials ? a.x_bias_partials + block * a.columns : nullptr;
      for (int64_t i = 0; i < a.columns; ++i) dweight[i] = 0.0f, dbias[i] = 0.0f;
      for (int64_t i = 0; x_bias_sums && i < a.columns; ++i) x_bias_sums[i] = 0.0f;
      for (int64_t r = a.rows * block / blocks; r < a.rows * (block + 1) / blocks; ++r) {
        const X* const x = static_cast<const X*>(a.x) + r * a.columns;
        const X* const dy = static_cast<const X*>(a.dy) + r * a.columns;
        X* const dx = static_cast<X*>(a.dx) + r * a.columns;
        X* const x_gradient = a.x_gradient ? static_cast<X*>(a.x_gradient) + r * a.columns : nullptr;
        const X* const residual = a.residual ? static_cast<const X*>(a.residual) + r * a.columns : nullptr;
        const float rstd = a.rstd[r], mean = a.mean[r];
        const float g_sum = sum_each(
            a.columns, [&](int64_t i, auto span) { return load_span(dy + i, span) * load_span(weight + i, span); });
        const float dot = sum_each(a.columns, [&](int64_t i, auto span) {
          return load_span(dy + i, span) * load_span(weight + i, span) * (load_span(x + i, span) - mean);
        });
        const float shift = g_sum / float(a.columns), pull = dot * rstd / float(a.columns);
        const auto column = [&](int64_t i, auto span, auto through) {
          const Vec normal = (load_span(x + i, span) - mean) * rstd, dy_here = load_span(dy + i, span);
          const Vec gradient = (dy_here * load_span(weight + i, span) - shift - normal * pull) * rstd;
          add_to(dweight + i, dy_here * normal, span);
          add_to(dbias + i, dy_here, span);
          put_gradient(dx, gradient, residual, i, span);
          if (x_gradient) store_span(x_gradient + i, through(gradient), span);
          if (x_bias_sums) add_to(x_bias_sums + i, through(gradient), span);
        };
        if (masked)
          each_masked(mask, r * a.columns, a.columns, column);
        else
          each(a.columns, [&](int64_t i, auto span) { column(i, span, [](Vec gradient) { return gradient; }); });
      }
    }
  });
}

template <class Total>
static void add_partials(const float* partials, int64_t blocks, int64_t columns, Total* total) {
  parallel_ranges(columns, lanes, parallel_bytes / (4 * blocks + 1), [&](int64_t begin, int64_t end) {
    each(end - begin, [&](int64_t j, auto span) {
      const int64_t i = begin + j;
      Vec sum{};
      for (int64_t block = 0; block < blocks; ++block) sum += load_span(partials + block * columns + i, span);
      store_span(total + i, load_span(total + i, span) + sum, span);
    });
  });
}

static void rms_forward(const NormArgs& a) {
  with_types(a.types, [&](auto x, auto w) { rms_forward_typed<decltype(x), decltype(w)>(a); });
}
static void rms_backward(const NormArgs& a) {
  with_types(a.types, [&](auto x, auto w) { rms_backward_typed<decltype(x), decltype(w)>(a); });
}
static void layer_forward(const NormArgs& a) {
  with_types(a.types, [&](auto x, auto w) { layer_forward_typed<decltype(x), decltype(w)>(a); });
}
static void layer_backward(const NormArgs& a) {
  with_types(a.types, [&](auto x, auto w) { layer_backward_typed<decltype(x), decltype(w)>(a); });
}

const NormKernels norm_kernels = {rms_forward,    rms_backward,        layer_forward,
                                  layer_backward, add_partials<float>, add_partials<bf16>};

}  // namespace assay::cpu::ASSAY_ISA
