// A small, valid call of every operation, for tests that go through the list of operations: they do not link until a
// new operation has one.
#pragma once
#include <assay/compute/operations.hpp>

#include <deque>
#include <type_traits>

#include "harness.hpp"

namespace assay::conformance {

// The tensors of one call. The same calls get the same numbers.
class Given {
 public:
  Tensor numbers(const Shape& shape, DType dtype = DType::f32, double mean = 0.0, double std = 1.0) {
    return tensors_.emplace_back(dtype, shape, random_values(dtype, elements(shape), ++salt_, mean, std));
  }
  Tensor positive(const Shape& shape) {
    Values values = random_values(DType::f32, elements(shape), ++salt_);
    for (double& x : values) x = rounded(DType::f32, 0.5 + x * x);
    return tensors_.emplace_back(DType::f32, shape, values);
  }
  // Small whole numbers, which 8 bits hold.
  Tensor eight_bit_numbers(const Shape& shape) {
    Values values(static_cast<std::size_t>(elements(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7) - 3;
    return tensors_.emplace_back(DType::f8_e4m3, shape, values);
  }
  Tensor ids(std::int64_t count, std::int64_t high) {
    return tensors_.emplace_back(DType::i64, Shape{count}, random_ids(count, ++salt_, 0, high));
  }
  Tensor whole(const Shape& shape, const Values& values) { return tensors_.emplace_back(DType::i32, shape, values); }
  Tensor one(double value, DType dtype = DType::f32) { return tensors_.emplace_back(dtype, Shape{1}, Values{value}); }
  Tensor room(const Shape& shape, DType dtype = DType::f32) { return tensors_.emplace_back(dtype, shape); }
  op::EightBitRows eight_bits() { return {.numbers = room({6, 8}, DType::f8_e4m3), .inverse_scale = room({6})}; }
  compute::PackedDocuments documents() {  // of two sequences of six tokens
    return {.first_keys = whole({2, 6}, {0, 1, 1, 1, 1, 5, 0, 0, 0, 0, 0, 0}),
            .starts = whole({5}, {0, 1, 5, 6, 12}),
            .longest = 6,
            .pairs = 33};
  }
  compute::Dropout dropout() { return {.probability = 0.25F, .seed = 7, .stream = 9, .step = one(3, DType::i64)}; }

  // The elements of a tensor that these have made.
  Values read(const Tensor& t) const {
    for (const DeviceTensor& own : tensors_)
      if (own->data == t.data) return own.read(t);
    ADD_FAILURE() << "a tensor of another call";
    return {};
  }

 private:
  std::deque<DeviceTensor> tensors_;
  std::uint64_t salt_ = 0;
};

template <class Op>
using Kind = std::type_identity<Op>;

inline const Shape sample_shape{6, 8};  // rows, columns

// Each is defined at the end of the test of its theme.
#define ASSAY_DECLARE_SAMPLE(Name) op::Name sample(Given& g, Kind<op::Name>);
ASSAY_OPERATIONS(ASSAY_DECLARE_SAMPLE)
#undef ASSAY_DECLARE_SAMPLE

}  // namespace assay::conformance
