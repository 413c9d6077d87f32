// A head is read from memory once: it stays in the first cache for the second look.
#include "head_norm.hpp"

#include "norm_types.hpp"
#include "pairs.hpp"
#include "parallel.hpp"

namespace assay::cpu::ASSAY_ISA {
namespace {

ASSAY_INLINE int64_t at(const HeadNormShape& s, const HeadSteps& steps, int64_t row, int64_t head) {
  return row / s.positions * steps.batch + row % s.positions * steps.position + head * steps.head;
}

template <class X>
ASSAY_INLINE float rstd_of(const X* x, const HeadNormShape& s, float eps) {
  const float squares = sum_each(s.pairs, [=](int64_t i, auto span) {
    const Pairs p = load_pairs(x + 2 * i, span);
    return p.even * p.even + p.odd * p.odd;
  });
  return 1.0f / __builtin_sqrtf(squares / float(2 * s.pairs) + eps);
}

template <class W>
ASSAY_INLINE Pairs factors(const W* weight, float offset, auto span) {
  const Pairs w = load_pairs(weight, span);
  return {w.even + offset, w.odd + offset};
}

template <class X, class W>
void forward_typed(const HeadNormArgs& a) {
  const HeadNormShape& s = a.shape;
  const int64_t width = 2 * s.pairs;
  parallel_rows(s.batch * s.positions, 2 * width * s.heads * int64_t(sizeof(X)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* const cos = a.cos + r % s.positions * s.pairs;
      const float* const sin = a.sin + r % s.positions * s.pairs;
      for (int64_t h = 0; h < s.heads; ++h) {
        const X* const x = static_cast<const X*>(a.x) + at(s, s.x, r, h);
        X* const rotated = static_cast<X*>(a.rotated) + at(s, s.rotated, r, h);
        const W* const weight = static_cast<const W*>(a.weight) + (h < s.queries ? 0 : width);
        const float rstd = rstd_of(x, s, a.eps);
        each(s.pairs, [=, &a](int64_t i, auto span) {
          const Pairs p = load_pairs(x + 2 * i, span), w = factors(weight + 2 * i, a.weight_offset, span);
          const Pairs normed{p.even * rstd * w.even, p.odd * rstd * w.odd};
          store_pairs(rotated + 2 * i, turned(normed, load_span(cos + i, span), load_span(sin + i, span)), span);
        });
      }
    }
  });
}

// With n = x rstd, u the gradient turned back and g = u weight: dx = rstd (g - n mean(g n)), dweight = sum of u n. dx
// may be drotated.
template <class X, class W>
void backward_typed(const HeadNormArgs& a) {
  const HeadNormShape& s = a.shape;
  const int64_t width = 2 * s.pairs, rows = s.batch * s.positions, blocks = head_norm_blocks(s);
  const int64_t block_bytes = 3 * width * s.heads * int64_t(sizeof(X)) * (rows / (blocks ? blocks : 1) + 1);
  parallel_rows(blocks, block_bytes, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* const partials = a.weight_partials + block * 2 * width;
      for (int64_t i = 0; i < 2 * width; ++i) partials[i] = 0.0f;
      for (int64_t r = rows * block / blocks; r < rows * (block + 1) / blocks; ++r) {
        const float* const cos = a.cos + r % s.positions * s.pairs;
        const float* const sin = a.sin + r % s.positions * s.pairs;
        for (int64_t h = 0; h < s.heads; ++h) {
          const X* const x = static_cast<const X*>(a.x) + at(s, s.x, r, h);
          const X* const drotated = static_cast<const X*>(a.drotated) + at(s, s.rotated, r, h);
          X* const dx = static_cast<X*>(a.dx) + at(s, s.dx, r, h);
          const int64_t first = h < s.queries ? 0 : width;
          const W* const weight = static_cast<const W*>(a.weight) + first;
          float* const dweight = partials + first;
          const auto turned_back = [=](int64_t i, auto span) {
            return turned(load_pairs(drotated + 2 * i, span), load_span(cos + i, span), -load_span(sin + i, span));
          };
          const float rstd = rstd_of(x, s, a.eps);
          const float dot = sum_each(s.pairs, [=, &a](int64_t i, auto span) {
            const Pairs u = turned_back(i, span), w = factors(weight + 2 * i, a.weight_offset, span),
                        p = load_pairs(x + 2 * i, span);
            return u.even * w.even * p.even + u.odd * w.odd * p.odd;
          });
          const float pull = dot * rstd * rstd / float(width);
          each(s.pairs, [=, &a](int64_t i, auto span) {
            const Pairs u = turned_back(i, span), w = factors(weight + 2 * i, a.weight_offset, span),
                        p = load_pairs(x + 2 * i, span);
            const Pairs sum = load_pairs(dweight + 2 * i, span);
            store_pairs(dweight + 2 * i, Pairs{sum.even + u.even * p.even * rstd, sum.odd + u.odd * p.odd * rstd},
                        span);
            store_pairs(dx + 2 * i,
                        Pairs{(u.even * w.even - p.even * pull) * rstd, (u.odd * w.odd - p.odd * pull) * rstd}, span);
          });
        }
      }
    }
  });
}

void forward(const HeadNormArgs& a) {
  with_types(a.types, [&](auto x, auto w) { forward_typed<decltype(x), decltype(w)>(a); });
}
void backward(const HeadNormArgs& a) {
  with_types(a.types, [&](auto x, auto w) { backward_typed<decltype(x), decltype(w)>(a); });
}

}  // namespace

extern const HeadNormKernels head_norm_kernels = {forward, backward};

}  // namespace assay::cpu::ASSAY_ISA
