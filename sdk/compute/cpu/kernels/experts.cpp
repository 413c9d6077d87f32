#include "experts.hpp"

#include "parallel.hpp"
#include "vec.hpp"

namespace assay::cpu::ASSAY_ISA {
namespace {

ASSAY_INLINE Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp_vec(-x)); }

// ---- routing -------------------------------------------------------------------------------------------------------

// What orders experts as 64-bit numbers: by score, and among equals the lower number first. NaN comes last, and 0 has
// one sign.
ASSAY_INLINE int64_t rank_of(float score, int64_t expert) {
  const uint32_t bits = float_to_bits(score + 0.0f);
  const int32_t ordered = int32_t(bits) < 0 ? int32_t(bits ^ 0x7fffffffu) : int32_t(bits);
  const int32_t high = score == score ? ordered : INT32_MIN;
  return int64_t(uint64_t(int64_t(high)) << 32 | uint64_t(0xffffffffu - uint32_t(expert)));
}
ASSAY_INLINE int32_t expert_of(int64_t rank) { return int32_t(0xffffffffu - uint32_t(rank)); }

// The first k by rank_of: each time the first of those behind the one before.
ASSAY_INLINE void choose(const float* scores, const float* bias, int64_t count, int64_t k, int32_t* experts) {
  int64_t last = INT64_MAX;
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = INT64_MIN;
    for (int64_t e = 0; e < count; ++e) {
      const int64_t rank = rank_of(bias ? scores[e] + bias[e] : scores[e], e);
      best = rank < last && rank > best ? rank : best;
    }
    experts[j] = expert_of(best);
    last = best;
  }
}

template <class T>
void route_forward(const RouteArgs& a) {
  parallel_rows(a.tokens, a.count * (a.k + 2) * 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const T* const logits = static_cast<const T*>(a.logits) + t * a.count;
      float* const scores = a.scores + t * a.count;
      int32_t* const experts = a.experts + t * a.k;
      float* const weights = a.weights + t * a.k;
      Vec largest = splat(-__builtin_inff());
      each(a.count,
           [&](int64_t e, auto span) { largest = max_vec(load_span(logits + e, span, -__builtin_inff()), largest); });
      const float shift = max_lanes(largest);
      const float sum = sum_each(a.count, [&](int64_t e, auto span) {
        const Vec exponential = exp_vec(load_span(logits + e, span) - shift);
        if (!a.sigmoid) store_span(scores + e, exponential, span);
        return only(exponential, span, 0.0f);
      });
      a.lse[t] = sum == sum ? shift + log_f32(sum) : sum;
      if (a.sigmoid)
        each(a.count,
             [&](int64_t e, auto span) { store_span(scores + e, sigmoid(load_span(logits + e, span)), span); });
      else
        each(a.count, [&](int64_t e, auto span) { store_span(scores + e, load_span(scores + e, span) / sum, span); });
      if (a.given)
        for (int64_t j = 0; j < a.k; ++j) experts[j] = a.given[t * a.k + j];
      else
        choose(scores, a.bias, a.count, a.k, experts);
      float chosen = 0.0f;
      for (int64_t j = 0; j < a.k; ++j) chosen += scores[experts[j]];
      const float factor = a.normalized ? a.factor / chosen : a.factor;
      for (int64_t j = 0; j < a.k; ++j) weights[j] = scores[experts[j]] * factor;
    }
  });
}

// Of the experts that were not chosen the losses' share is all there is; those that were are written once more.
template <class T>
void route_backward(const RouteArgs& a) {
  parallel_rows(a.tokens, a.count * 12, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* const scores = a.scores + t * a.count;
      const int32_t* const experts = a.experts + t * a.k;
      const float* const dweights = a.weights + t * a.k;
      T* const dlogits = static_cast<T*>(a.dlogits) + t * a.count;
      float chosen = 0.0f, weighted = 0.0f;
      for (int64_t j = 0; j < a.k; ++j) {
        chosen += scores[experts[j]];
        weighted += scores[experts[j]] * dweights[j];
      }
      const float factor = a.normalized ? a.factor / chosen : a.factor;
      const float mean = a.normalized ? weighted / chosen : 0.0f;
      const auto of_choice = [&](int64_t j) { return factor * (dweights[j] - mean); };
      const auto of_balance = [&](int64_t e) { return a.balance * float(a.counts[e]); };
      if (a.sigmoid) {
        const auto gradient = [&](int64_t e, float by_score) { return by_score * scores[e] * (1.0f - scores[e]); };
        for (int64_t e = 0; e < a.count; ++e) store(dlogits + e, gradient(e, of_balance(e)));
        for (int64_t j = 0; j < a.k; ++j)
          store(dlogits + experts[j], gradient(experts[j], of_choice(j) + of_balance(experts[j])));
        continue;
      }
      float inner = 0.0f;
      if (a.balance != 0.0f)
        for (int64_t e = 0; e < a.count; ++e) inner += of_balance(e) * scores[e];
      for (int64_t j = 0; j < a.k; ++j) inner += of_choice(j) * scores[experts[j]];
      const float of_z = a.z * a.lse[t];
      const auto gradient = [&](int64_t e, float by_score) { return scores[e] * (by_score - inner + of_z); };
      for (int64_t e = 0; e < a.count; ++e) store(dlogits + e, gradient(e, of_balance(e)));
      for (int64_t j = 0; j < a.k; ++j)
        store(dlogits + experts[j], gradient(experts[j], of_choice(j) + of_balance(experts[j])));
    }
  });
}

void routing_losses(const RoutingLossArgs& a) {
  const int64_t blocks = routing_blocks(a.tokens), sums = a.count + 1;
  parallel_rows(blocks, routing_block_tokens * a.count * 4, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      double* const sum = a.partials + block * sums;
      for (int64_t i = 0; i < sums; ++i) sum[i] = 0.0;
      const int64_t first = block * routing_block_tokens;
      const int64_t last = first + routing_block_tokens < a.tokens ? first + routing_block_tokens : a.tokens;
      for (int64_t t = first; t < last; ++t) {
        const float* const scores = a.scores + t * a.count;
        for (int64_t e = 0; e < a.count; ++e) sum[e] += double(scores[e]);
        sum[a.count] += double(a.lse[t]) * double(a.lse[t]);
      }
    }
  });
  double choices = 0.0, balance = 0.0, squares = 0.0;
  for (int64_t e = 0; e < a.count; ++e) choices += double(a.counts[e]);
  for (int64_t e = 0; e < a.count; ++e) {
    double scores = 0.0;
    for (int64_t block = 0; block < blocks; ++block) scores += a.partials[block * sums + e];
    balance += double(a.counts[e]) * scores;
  }
  for (int64_t block = 0; block < blocks; ++block) squares += a.partials[block * sums + a.count];
  a.losses[0] = float(double(a.count) * balance / (choices * double(a.tokens)));
  a.losses[1] = float(squares / double(a.tokens));
}

// ---- rows ----------------------------------------------------------------------------------------------------------

void gather_rows(void* to, const void* from, const int32_t* sources, int64_t rows, int64_t bytes, int64_t copies) {
  char* const out = static_cast<char*>(to);
  const char* const in = static_cast<const char*>(from);
  parallel_rows(rows, bytes, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (sources[r] < 0)
        __builtin_memset(out + r * bytes, 0, size_t(bytes));
      else
        __builtin_memcpy(out + r * bytes, in + sources[r] / copies * bytes, size_t(bytes));
    }
  });
}

template <class T>
void combine_rows(void* y_address, const void* rows_address, const int32_t* places, const void* residual_address,
                  int64_t tokens, int64_t k, int64_t width) {
  T* const y = static_cast<T*>(y_address);
  const T *const rows = static_cast<const T*>(rows_address), *const residual = static_cast<const T*>(residual_address);
  parallel_rows(tokens, (k + 1) * width * int64_t{sizeof(T)}, [=](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* const place = places + t * k;
      each(width, [=](int64_t c, auto span) {
        Vec sum{};
        for (int64_t j = 0; j < k; ++j)
          if (place[j] >= 0) sum += load_span(rows + place[j] * width + c, span);
        if (residual) sum += load_span(residual + t * width + c, span);
        store_span(y + t * width + c, sum, span);
      });
    }
  });
}

// ---- gated units ---------------------------------------------------------------------------------------------------

template <class T>
ASSAY_INLINE void clear_row(T* row, int64_t width) {
  each(width, [=](int64_t c, auto span) { store_span(row + c, Vec{}, span); });
}

// NaN stays NaN.
ASSAY_INLINE Vec no_more_than(Vec x, float limit) { return x > limit ? splat(limit) : x; }
ASSAY_INLINE Vec no_less_than(Vec x, float limit) { return x < limit ? splat(limit) : x; }

template <class T>
void gated_forward(const GatedArgs& a) {
  const float limit = a.limit > 0.0f ? a.limit : __builtin_inff();
  parallel_rows(a.rows, a.width * 3 * int64_t{sizeof(T)}, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* const h = static_cast<T*>(a.h) + r * a.width;
      if (a.sources[r] < 0) {
        clear_row(h, a.width);
        continue;
      }
      const float weight = a.weights[a.sources[r]], alpha = a.alpha, offset = a.offset;
      const T *const gate = static_cast<const T*>(a.gate) + r * a.gate_step, *const up = static_cast<const T*>(a.up) +
                                                                                         r * a.up_step;
      each(a.width, [=](int64_t c, auto span) {
        const Vec g = no_more_than(load_span(gate + c, span), limit);
        const Vec u = no_less_than(no_more_than(load_span(up + c, span), limit), -limit);
        store_span(h + c, weight * (g * sigmoid(alpha * g) * (u + offset)), span);
      });
    }
  });
}

template <class T, bool with_h>
ASSAY_INLINE float gated_backward_row(const T* gate, const T* up, const T* dh, T* dgate, T* dup, T* h, float weight,
                                      float alpha, float limit, float offset, int64_t width) {
  return sum_each(width, [=](int64_t c, auto span) {
    const Vec x = load_span(gate + c, span), y = load_span(up + c, span), d = load_span(dh + c, span);
    const Vec g = no_more_than(x, limit), u = no_less_than(no_more_than(y, limit), -limit) + offset;
    const Vec s = sigmoid(alpha * g), gs = g * s, unit = gs * u, dw = d * weight;
    const Vec by_gate = dw * u * (s + alpha * gs * (1.0f - s)), by_up = dw * gs;
    if constexpr (with_h) store_span(h + c, weight * unit, span);
    store_span(dgate + c, x > limit ? Vec{} : by_gate, span);
    store_span(dup + c, y > limit ? Vec{} : y < -limit ? Vec{} : by_up, span);
    return only(d * unit, span, 0.0f);
  });
}

template <class T>
void gated_backward(const GatedArgs& a) {
  const float limit = a.limit > 0.0f ? a.limit : __builtin_inff();
  parallel_rows(a.rows, a.width * 6 * int64_t{sizeof(T)}, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T *const dgate = static_cast<T*>(a.dgate) + r * a.dgate_step, *const dup =
                                                                        static_cast<T*>(a.dup) + r * a.dup_step;
      T* const h = a.h ? static_cast<T*>(a.h) + r * a.width : nullptr;
      if (a.sources[r] < 0) {
        clear_row(dgate, a.width);
        clear_row(dup, a.width);
        if (h) clear_row(h, a.width);
        continue;
      }
      const T *const gate = static_cast<const T*>(a.gate) + r * a.gate_step,
                     *const up = static_cast<const T*>(a.up) + r * a.up_step,
                     *const dh = static_cast<const T*>(a.dh) + r * a.width;
      const float weight = a.weights[a.sources[r]];
      a.dweights[a.sources[r]] =
          h ? gated_backward_row<T, true>(gate, up, dh, dgate, dup, h, weight, a.alpha, limit, a.offset, a.width)
            : gated_backward_row<T, false>(gate, up, dh, dgate, dup, h, weight, a.alpha, limit, a.offset, a.width);
    }
  });
}

// ---- gradients of groups -------------------------------------------------------------------------------------------

// Rows are added in blocks, and those to each other: of thousands of rows one sum would round too often.
template <class T, class B>
void group_bias(void* dbias_address, const void* dy_address, const int32_t* offsets, int64_t groups, int64_t width,
                bool accumulate) {
  constexpr int64_t tile = 64, block_rows = 64;
  B* const dbias = static_cast<B*>(dbias_address);
  const T* const dy = static_cast<const T*>(dy_address);
  const int64_t tiles = (width + tile - 1) / tile;
  const int64_t rows = offsets[groups] / (groups > 0 ? groups : 1) + 1;
  parallel_rows(groups * tiles, rows * tile * int64_t{sizeof(T)}, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / tiles, c = i % tiles * tile, n = width - c < tile ? width - c : tile;
      float total[tile], block[tile];
      for (int64_t j = 0; j < n; ++j) total[j] = 0.0f;
      for (int64_t first = offsets[group]; first < offsets[group + 1]; first += block_rows) {
        const int64_t last = first + block_rows < offsets[group + 1] ? first + block_rows : offsets[group + 1];
        for (int64_t j = 0; j < n; ++j) block[j] = 0.0f;
        for (int64_t r = first; r < last; ++r)
          for (int64_t j = 0; j < n; ++j) block[j] += load(dy + r * width + c + j);
        for (int64_t j = 0; j < n; ++j) total[j] += block[j];
      }
      B* const out = dbias + group * width + c;
      for (int64_t j = 0; j < n; ++j) store(out + j, accumulate ? load(out + j) + total[j] : total[j]);
    }
  });
}

void round_sum(void* dw_address, const float* sum, int64_t count, bool accumulate) {
  bf16* const dw = static_cast<bf16*>(dw_address);
  parallel_ranges(count, 64, parallel_bytes / 4, [=](int64_t begin, int64_t end) {
    each(end - begin, [=](int64_t i, auto span) {
      const Vec x = load_span(sum + begin + i, span);
      store_span(dw + begin + i, accumulate ? x + load_span(dw + begin + i, span) : x, span);
    });
  });
}

}  // namespace

extern const ExpertKernels expert_kernels = {
    {route_forward<float>, route_forward<bf16>},
    {route_backward<float>, route_backward<bf16>},
    routing_losses,
    gather_rows,
    {combine_rows<float>, combine_rows<bf16>},
    {gated_forward<float>, gated_forward<bf16>},
    {gated_backward<float>, gated_backward<bf16>},
    {{group_bias<float, float>, group_bias<float, bf16>}, {group_bias<bf16, float>, group_bias<bf16, bf16>}},
    round_sum,
};

}  // namespace assay::cpu::ASSAY_ISA
