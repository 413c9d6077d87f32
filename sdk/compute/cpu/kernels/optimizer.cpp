// Each thread takes one run of the arena and goes over it once.
#include "optimizer.hpp"

#include "parallel.hpp"
#include "vec.hpp"

namespace assay::cpu::ASSAY_ISA {

ASSAY_INLINE Vec square_root(Vec x) {
  Vec y;
  for (int i = 0; i < lanes; ++i) y[i] = __builtin_sqrtf(x[i]);
  return y;
}

// call(P{}, G{}, S{}) with the types of parameter, gradient and state.
template <class Call>
static void with_types(OptimizerTypes types, Call call) {
  switch (types) {
    case OptimizerTypes::f32: return call(float{}, float{}, float{});
    case OptimizerTypes::f32_with_bf16_gradient: return call(float{}, bf16{}, float{});
    case OptimizerTypes::f32_with_bf16_moments: return call(float{}, float{}, bf16{});
    case OptimizerTypes::f32_with_bf16_gradient_and_moments: return call(float{}, bf16{}, bf16{});
    case OptimizerTypes::bf16: return call(bf16{}, bf16{}, bf16{});
  }
}

// body(index, span) over the arena, by all threads.
template <class Body>
ASSAY_INLINE void each_in_parallel(int64_t count, Body body) {
  parallel_ranges(count, 4 * lanes, parallel_bytes / 16, [&](int64_t begin, int64_t end) {
    each(end - begin, [&](int64_t i, auto span) { body(begin + i, span); });
  });
}

template <class P, class G, class S, bool copied>
static void adamw_typed(const OptimizerArgs& a, const AdamWStep& s) {
  P* const parameter = static_cast<P*>(a.parameter);
  S* const first = static_cast<S*>(a.first);
  S* const second = static_cast<S*>(a.second);
  const G* const gradient = static_cast<const G*>(a.gradient);
  uint16_t* const copy = a.compute_copy;
  each_in_parallel(a.count, [=](int64_t i, auto span) {
    const Vec g = load_span(gradient + i, span);
    Vec m = load_span(first + i, span);
    m = m + (g - m) * s.first_new;
    const Vec v = load_span(second + i, span) * s.second_keep + g * g * s.second_new;
    Vec p = load_span(parameter + i, span) * s.keep;
    p = p - s.rate * m / (square_root(v) * s.root_scale + s.eps);
    store_span(first + i, m, span);
    store_span(second + i, v, span);
    store_span(parameter + i, p, span);
    if constexpr (copied) store_span(copy + i, p, span);
  });
}

template <class P, class G>
static void sgd_typed(const OptimizerArgs& a, const SgdStep& s) {
  P* const parameter = static_cast<P*>(a.parameter);
  P* const buffer = static_cast<P*>(a.first);
  const G* const gradient = static_cast<const G*>(a.gradient);
  uint16_t* const copy = a.compute_copy;
  each_in_parallel(a.count, [=](int64_t i, auto span) {
    Vec p = load_span(parameter + i, span);
    Vec g = load_span(gradient + i, span) + p * s.weight_decay;
    if (buffer) {
      if (!s.first) g = load_span(buffer + i, span) * s.momentum + g;
      store_span(buffer + i, g, span);
    }
    p = p - g * s.rate;
    store_span(parameter + i, p, span);
    if (copy) store_span(copy + i, p, span);
  });
}

static void adamw(const OptimizerArgs& a, const AdamWStep& s) {
  with_types(a.types, [&](auto p, auto g, auto m) {
    a.compute_copy ? adamw_typed<decltype(p), decltype(g), decltype(m), true>(a, s)
                   : adamw_typed<decltype(p), decltype(g), decltype(m), false>(a, s);
  });
}
static void sgd(const OptimizerArgs& a, const SgdStep& s) {
  with_types(a.types, [&](auto p, auto g, auto) { sgd_typed<decltype(p), decltype(g)>(a, s); });
}

// call(float{}) or call(bf16{}).
template <class Call>
static void with_type(bool is_bf16, Call call) {
  is_bf16 ? call(bf16{}) : call(float{});
}

template <class G, class M, class U>
static void muon_momentum_typed(const MuonMomentumArgs& a) {
  const G* const gradient = static_cast<const G*>(a.gradient);
  M* const momentum = static_cast<M*>(a.momentum);
  U* const update = static_cast<U*>(a.update);
  each_in_parallel(a.count, [=](int64_t i, auto span) {
    const Vec g = load_span(gradient + i, span);
    Vec m = load_span(momentum + i, span);
    m = m + (g - m) * a.taken;
    store_span(momentum + i, m, span);
    store_span(update + i, a.nesterov ? g + (m - g) * a.kept : m, span);
  });
}

template <class P, class U>
static void muon_update_typed(const MuonUpdateArgs& a) {
  P* const parameter = static_cast<P*>(a.parameter);
  const U* const update = static_cast<const U*>(a.update);
  each_in_parallel(a.count, [=](int64_t i, auto span) {
    const Vec p = load_span(parameter + i, span) * a.keep - load_span(update + i, span) * a.rate;
    store_span(parameter + i, p, span);
    if (a.compute_copy) store_span(a.compute_copy + i, p, span);
  });
}

static void muon_momentum(const MuonMomentumArgs& a) {
  with_type(a.bf16_gradient, [&](auto g) {
    with_type(a.bf16_momentum, [&](auto m) {
      with_type(a.bf16_update, [&](auto u) { muon_momentum_typed<decltype(g), decltype(m), decltype(u)>(a); });
    });
  });
}
static void muon_update(const MuonUpdateArgs& a) {
  with_type(a.bf16_parameter,
            [&](auto p) { with_type(a.bf16_update, [&](auto u) { muon_update_typed<decltype(p), decltype(u)>(a); }); });
}

const OptimizerKernels optimizer_kernels = {adamw, sgd, muon_momentum, muon_update};

}  // namespace assay::cpu::ASSAY_ISA
