// A row is read from memory once and stays in cache for the second and third look. Rows of fp32 keep their
// exponentials in the output between two looks; rows of bf16 would round them, and compute them again.
#include "loss.hpp"

#include "parallel.hpp"
#include "vec.hpp"

namespace assay::cpu::ASSAY_ISA {

constexpr float infinity = __builtin_inff();

// The largest scale * x[i]. NaN may get lost here: the exponentials bring it back.
template <class T>
ASSAY_INLINE float row_max(const T* x, int64_t n, float scale) {
  Vec m0 = splat(-infinity), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = max_vec(load_vec(x + i) * scale, m0);
    m1 = max_vec(load_vec(x + i + lanes) * scale, m1);
    m2 = max_vec(load_vec(x + i + 2 * lanes) * scale, m2);
    m3 = max_vec(load_vec(x + i + 3 * lanes) * scale, m3);
  }
  each(n - i,
       [&](int64_t j, auto span) { m0 = max_vec(only(load_span(x + i + j, span) * scale, span, -infinity), m0); });
  return max_lanes(max_vec(max_vec(m0, m1), max_vec(m2, m3)));
}

template <class T>
ASSAY_INLINE float sum_exponentials(const T* x, int64_t n, float scale, float shift) {
  return sum_each(
      n, [&](int64_t i, auto span) { return only(exp_vec(load_span(x + i, span) * scale - shift), span, 0.0f); });
}

// y = exp(scale * x - shift) and its sum. y may be x.
ASSAY_INLINE float store_exponentials(const float* x, float* y, int64_t n, float scale, float shift) {
  return sum_each(n, [&](int64_t i, auto span) {
    const Vec e = exp_vec(load_span(x + i, span) * scale - shift);
    store_span(y + i, e, span);
    return only(e, span, 0.0f);
  });
}

// y = factor * exp(scale * x - shift). y may be x.
template <class T>
ASSAY_INLINE void store_scaled_exponentials(const T* x, T* y, int64_t n, float scale, float shift, float factor) {
  each(n, [&](int64_t i, auto span) {
    store_span(y + i, exp_vec(load_span(x + i, span) * scale - shift) * factor, span);
  });
}

template <class T>
ASSAY_INLINE void multiply_row(T* x, int64_t n, float factor) {
  each(n, [&](int64_t i, auto span) { store_span(x + i, load_span(x + i, span) * factor, span); });
}

template <class T>
ASSAY_INLINE void fill_row(T* x, int64_t n, float value) {
  each(n, [&](int64_t i, auto span) { store_span(x + i, splat(value), span); });
}

// ---- softmax -------------------------------------------------------------------------------------------------------
// With a soft cap, and a sink unless that is -infinity; returns the log-sum-exp. y may be x.
template <class T>
static float modified_softmax(const SoftmaxArgs& a, const T* x, T* y, int64_t n, float sink) {
  const auto scores = [&](int64_t i, auto span) {
    const Vec s = load_span(x + i, span) * a.scale;
    return a.soft_cap > 0 ? a.soft_cap * tanh_vec(s / a.soft_cap) : s;
  };
  Vec most = splat(sink);
  each(n, [&](int64_t i, auto span) { most = max_vec(only(scores(i, span), span, -infinity), most); });
  const float shift = max_lanes(most);
  if (shift == -infinity) return shift;
  const float sum =
      sum_each(n, [&](int64_t i, auto span) { return only(exp_vec(scores(i, span) - shift), span, 0.0f); }) +
      exp_vec(splat(sink - shift))[0];
  each(n, [&](int64_t i, auto span) { store_span(y + i, exp_vec(scores(i, span) - shift) * (1.0f / sum), span); });
  return shift + __builtin_logf(sum);
}

template <class T>
ASSAY_INLINE float dot_rows(const T* x, const T* y, int64_t n) {
  return sum_each(n, [&](int64_t i, auto span) { return load_span(x + i, span) * load_span(y + i, span); });
}

// By whole heads: the sum of each has one owner.
template <class T>
static void softmax_sink_gradients(const SoftmaxArgs& a) {
  const int64_t batch = a.rows / (a.heads * a.queries);
  parallel_rows(a.heads, batch * a.queries * a.columns * int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      double sum = 0;
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t r = (b * a.heads + head) * a.queries; r < (b * a.heads + head + 1) * a.queries; ++r) {
          const int64_t at = r * a.columns;
          const float dot = dot_rows(static_cast<const T*>(a.x) + at, static_cast<const T*>(a.dy) + at, a.columns);
          sum -= double(exp_vec(splat(sink_of(a.sinks, head) - a.lse[r]))[0]) * double(dot);
        }
      store_sink_gradient(a.dsinks, head, sum, a.accumulate);
    }
  });
}

template <class T>
static void softmax_forward_typed(const SoftmaxArgs& a) {
  parallel_rows(a.rows, a.columns * int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t place = r % a.queries + a.columns - a.queries;
      int64_t hidden = 0, end = a.columns;
      if (a.causal) end = place < -1 ? 0 : place + 1 < end ? place + 1 : end;
      if (a.window > 0 && place + 1 > a.window) hidden = place + 1 - a.window;
      if (a.first_keys) {
        const int64_t first = a.first_keys[r / a.rows_of_sequence * a.first_keys_stride + r % a.queries];
        hidden = first > hidden ? first : hidden;
      }
      const T* const x = static_cast<const T*>(a.x) + r * a.columns + hidden;
      T* const y = static_cast<T*>(a.out) + r * a.columns + hidden;
      const int64_t visible = end - hidden;
      if (a.lse || a.sinks || a.soft_cap > 0) {
        const float sink = a.sinks ? sink_of(a.sinks, r / a.queries % a.heads) : -infinity;
        const float lse = modified_softmax(a, x, y, visible, sink);
        if (a.lse) a.lse[r] = lse;
      } else if (visible > 0) {
        const float shift = row_max(x, visible, a.scale);
        if constexpr (sizeof(T) == sizeof(float)) {
          const float sum = store_exponentials(x, y, visible, a.scale, shift);
          multiply_row(y, visible, 1.0f / sum);
        } else {
          const float sum = sum_exponentials(x, visible, a.scale, shift);
          store_scaled_exponentials(x, y, visible, a.scale, shift, 1.0f / sum);
        }
      }
      fill_row(y - hidden, hidden, 0.0f);
      fill_row(y + visible, a.columns - end, 0.0f);
    }
  });
}

template <class T>
static void softmax_backward_typed(const SoftmaxArgs& a) {
  if (a.sinks) softmax_sink_gradients<T>(a);  // before dx, which may be dy
  parallel_rows(a.rows, a.columns * int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const y = static_cast<const T*>(a.x) + r * a.columns;
      const T* const dy = static_cast<const T*>(a.dy) + r * a.columns;
      T* const dx = static_cast<T*>(a.out) + r * a.columns;
      const float dot = dot_rows(y, dy, a.columns);
      if (a.soft_cap == 0) {
        each(a.columns, [&](int64_t i, auto span) {
          store_span(dx + i, load_span(y + i, span) * (load_span(dy + i, span) - dot) * a.scale, span);
        });
        continue;
      }
      for (int64_t i = 0; i < a.columns; ++i) {
        const float p = load(y + i);  // exp(score - lse)
        const float t = p > 0 ? (__builtin_logf(p) + a.lse[r]) / a.soft_cap : 0.0f;
        store(dx + i, p * (load(dy + i) - dot) * a.scale * (1.0f - t * t));
      }
    }
  });
}

// ---- cross-entropy -------------------------------------------------------------------------------------------------
enum class Label { counts, ignored, elsewhere, out_of_range };
struct LabelColumn {
  Label kind;
  int64_t column;  // where it counts
};
ASSAY_INLINE LabelColumn column_of(int64_t label, const CrossEntropyArgs& a) {
  if (label < 0) return {Label::ignored, 0};
  if (label >= a.classes) return {Label::out_of_range, 0};
  const int64_t column = label < a.first_class ? -1 : (label - a.first_class) / a.classes_each;
  return column >= 0 && column < a.columns ? LabelColumn{Label::counts, column} : LabelColumn{Label::elsewhere, 0};
}

// With a soft cap: what it makes of logits, and its slope there.
ASSAY_INLINE Vec capped(Vec x, float cap) { return cap * tanh_vec(x / cap); }
ASSAY_INLINE Vec slope_of_cap(Vec capped, float cap) { return 1.0f - (capped / cap) * (capped / cap); }
ASSAY_INLINE float capped(float x, float cap) { return capped(splat(x), cap)[0]; }

template <class T>
ASSAY_INLINE float sum_capped_exponentials(const T* x, int64_t n, float cap, float shift) {
  return sum_each(
      n, [&](int64_t i, auto span) { return only(exp_vec(capped(load_span(x + i, span), cap) - shift), span, 0.0f); });
}

// y = factor * exp(z - shift) * (1 - (z / cap)^2) of capped logits z. y may be x.
template <class T>
ASSAY_INLINE void store_capped_gradients(const T* x, T* y, int64_t n, float cap, float shift, float factor) {
  each(n, [&](int64_t i, auto span) {
    const Vec z = capped(load_span(x + i, span), cap);
    store_span(y + i, exp_vec(z - shift) * slope_of_cap(z, cap) * factor, span);
  });
}

template <class T>
static void cross_entropy_forward_typed(const CrossEntropyArgs& a) {
  parallel_rows(a.rows, a.columns * int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const x = static_cast<const T*>(a.logits) + r * a.columns;
      const auto [kind, column] = column_of(a.labels[r], a);
      const bool caps = a.soft_cap > 0;
      const float most = row_max(x, a.columns, 1.0f);
      const float shift = caps ? capped(most, a.soft_cap) : most;
      const float log_sum = __builtin_logf(caps ? sum_capped_exponentials(x, a.columns, a.soft_cap, shift)
                                                : sum_exponentials(x, a.columns, 1.0f, shift));
      const float at_label = caps ? capped(load(x + column), a.soft_cap) : load(x + column);
      const float lse = kind == Label::out_of_range ? __builtin_nanf("") : shift + log_sum;
      a.lse[r] = lse;
      // (shift - x) first: exact where the label's logit is near the largest, however large both are.
      a.losses[r] = kind == Label::counts ? (shift - at_label) + log_sum : kind == Label::out_of_range ? lse : 0.0f;
    }
  });
}

template <class T>
static void cross_entropy_backward_typed(const CrossEntropyArgs& a) {
  parallel_rows(a.rows, a.columns * int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const x = static_cast<const T*>(a.logits) + r * a.columns;
      T* const dx = static_cast<T*>(a.dlogits) + r * a.columns;
      const auto [kind, label] = column_of(a.labels[r], a);
      if (kind == Label::ignored || kind == Label::out_of_range) {
        fill_row(dx, a.columns, kind == Label::ignored ? 0.0f : __builtin_nanf(""));
        continue;
      }
      if (a.soft_cap > 0) {
        const Vec z = splat(capped(load(x + label), a.soft_cap));
        const float of_label = ((exp_vec(z - a.lse[r]) - 1.0f) * slope_of_cap(z, a.soft_cap))[0] * a.scale;
        store_capped_gradients(x, dx, a.columns, a.soft_cap, a.lse[r], a.scale);
        if (kind == Label::counts) store(dx + label, of_label);
        continue;
      }
      const float at_label = exp_vec(splat(load(x + label) - a.lse[r]))[0];
      store_scaled_exponentials(x, dx, a.columns, 1.0f, a.lse[r], a.scale);
      if (kind == Label::counts) store(dx + label, (at_label - 1.0f) * a.scale);
    }
  });
}

template <class T>
static void cross_entropy_in_place_typed(const CrossEntropyArgs& a) {
  parallel_rows(a.rows, a.columns * int64_t(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* const x = static_cast<T*>(a.dlogits) + r * a.columns;
      const auto [kind, label] = column_of(a.labels[r], a);
      if (kind != Label::counts) {
        a.losses[r] = kind == Label::ignored ? 0.0f : __builtin_nanf("");
        fill_row(x, a.columns, a.losses[r]);
        continue;
      }
      const float most = row_max(x, a.columns, 1.0f);
      if (a.soft_cap > 0) {
        const float cap = a.soft_cap, z = capped(load(x + label), cap), shift = capped(most, cap);
        const float sum = sum_capped_exponentials(x, a.columns, cap, shift);
        store_capped_gradients(x, x, a.columns, cap, shift, a.scale / sum);
        store(x + label, (exp_vec(splat(z - shift))[0] / sum - 1.0f) * slope_of_cap(splat(z), cap)[0] * a.scale);
        a.losses[r] = (shift - z) + __builtin_logf(sum);
        continue;
      }
      const float shift = most;
      const float below = shift - load(x + label);
      float sum;
      if constexpr (sizeof(T) == sizeof(float)) {
        sum = store_exponentials(x, x, a.columns, 1.0f, shift);
        multiply_row(x, a.columns, a.scale / sum);
      } else {
        sum = sum_exponentials(x, a.columns, 1.0f, shift);
        store_scaled_exponentials(x, x, a.columns, 1.0f, shift, a.scale / sum);
      }
      store(x + label, (exp_vec(splat(-below))[0] / sum - 1.0f) * a.scale);
      a.losses[r] = below + __builtin_logf(sum);
    }
  });
}

static void softmax_forward(const SoftmaxArgs& a) {
  a.bf16 ? softmax_forward_typed<bf16>(a) : softmax_forward_typed<float>(a);
}
static void softmax_backward(const SoftmaxArgs& a) {
  a.bf16 ? softmax_backward_typed<bf16>(a) : softmax_backward_typed<float>(a);
}
static void cross_entropy_forward(const CrossEntropyArgs& a) {
  a.bf16 ? cross_entropy_forward_typed<bf16>(a) : cross_entropy_forward_typed<float>(a);
}
static void cross_entropy_backward(const CrossEntropyArgs& a) {
  a.bf16 ? cross_entropy_backward_typed<bf16>(a) : cross_entropy_backward_typed<float>(a);
}
static void cross_entropy_in_place(const CrossEntropyArgs& a) {
  a.bf16 ? cross_entropy_in_place_typed<bf16>(a) : cross_entropy_in_place_typed<float>(a);
}

const LossKernels loss_kernels = {softmax_forward, softmax_backward, cross_entropy_forward, cross_entropy_backward,
                                  cross_entropy_in_place};

}  // namespace assay::cpu::ASSAY_ISA
