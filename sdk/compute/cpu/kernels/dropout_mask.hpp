// The masks of dropout, made where they are needed. Included by kernel files only.
#pragma once
#include "dropout.hpp"
#include "philox.hpp"

namespace assay::cpu::ASSAY_ISA {

typedef uint32_t BitVecAnywhere __attribute__((vector_size(4 * lanes), aligned(4), may_alias));

// One operation's dropout, with the key of its step.
struct Mask {
  PhiloxKey key{};
  uint32_t drop_below;
  float factor;

  explicit Mask(const DropoutArgs& d) : drop_below(d.drop_below), factor(d.factor) {
    if (drops()) key = philox_key_of_step(d.seed, d.stream, d.step);
  }
  bool drops() const { return drop_below > 0; }
};

// The mask of up to `most` elements that follow each other, wherever they begin.
template <int most>
class MaskRow {
 public:
  // Of elements [first, first + count).
  void draw(const Mask& mask, int64_t first, int count) {
    skip_ = int(first & 3);
    philox_words(mask.key, uint64_t(first) / 4, skip_ + count, word_);
  }
  // x times the factor where elements i, i + 1, ... of the row are kept; 0 where they are dropped, whatever x is.
  Vec through(const Mask& mask, int64_t i, Vec x) const {
    const BitVec bits = *reinterpret_cast<const BitVecAnywhere*>(word_ + skip_ + i);
    return bits >= mask.drop_below ? x * mask.factor : Vec{};
  }

 private:
  int skip_ = 0;
  uint32_t word_[philox_room(most + 3) + lanes];  // a whole vector past the last element
};

// body(index, span, through) over a row of n elements, which begins at element `first` of what is masked; through(x)
// is x, or any vector of this place, after dropout.
template <class Body>
ASSAY_INLINE void each_masked(const Mask& mask, int64_t first, int64_t n, Body body) {
  MaskRow<philox_tile_words> row;
  for (int64_t i = 0; i < n; i += philox_tile_words) {
    const int64_t count = n - i < philox_tile_words ? n - i : philox_tile_words;
    row.draw(mask, first + i, int(count));
    each(count, [&](int64_t j, auto span) { body(i + j, span, [&](Vec x) { return row.through(mask, j, x); }); });
  }
}

}  // namespace assay::cpu::ASSAY_ISA
