// A small, valid call of every operation, for tests that go through the list of operations. A new operation does not
// build here until it has one. The file is long because the list of operations is, and one sample is a few lines.
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

// ---- data
inline op::Fill sample(Given& g, Kind<op::Fill>) { return {.x = g.room(sample_shape), .value = 2}; }
inline op::Copy sample(Given& g, Kind<op::Copy>) {
  return {.to = g.room(sample_shape), .from = g.numbers(sample_shape)};
}
inline op::RandomNormal sample(Given& g, Kind<op::RandomNormal>) {
  return {.x = g.room(sample_shape), .seed = 1, .stream = 2, .mean = 0, .std = 1};
}
inline op::RandomIntegers sample(Given& g, Kind<op::RandomIntegers>) {
  return {.x = g.room(sample_shape, DType::i64), .seed = 1, .stream = 2, .low = 0, .high = 10};
}

// ---- products
inline op::Matmul sample(Given& g, Kind<op::Matmul>) {
  return {.a = g.numbers({6, 5}), .b = g.numbers({5, 8}), .c = g.room({6, 8}), .bias = g.numbers({8})};
}

// ---- element-wise
inline op::Add sample(Given& g, Kind<op::Add>) {
  return {.a = g.numbers(sample_shape), .b = g.numbers(sample_shape), .out = g.room(sample_shape)};
}
inline op::Multiply sample(Given& g, Kind<op::Multiply>) {
  return {.a = g.numbers(sample_shape), .b = g.numbers(sample_shape), .out = g.room(sample_shape)};
}
inline op::Scale sample(Given& g, Kind<op::Scale>) {
  return {.x = g.numbers(sample_shape), .factor = 3, .out = g.room(sample_shape)};
}
inline op::SoftCap sample(Given& g, Kind<op::SoftCap>) {
  return {.x = g.numbers(sample_shape), .cap = 2, .out = g.room(sample_shape)};
}
inline op::ActivationForward sample(Given& g, Kind<op::ActivationForward>) {
  return {.kind = compute::Activation::gelu_erf, .x = g.numbers(sample_shape), .y = g.room(sample_shape)};
}
inline op::ActivationBackward sample(Given& g, Kind<op::ActivationBackward>) {
  return {.kind = compute::Activation::gelu_erf,
          .x = g.numbers(sample_shape),
          .dy = g.numbers(sample_shape),
          .dx = g.room(sample_shape)};
}
inline op::BiasAdd sample(Given& g, Kind<op::BiasAdd>) {
  return {.x = g.numbers(sample_shape), .bias = g.numbers({8}), .y = g.room(sample_shape)};
}
inline op::BiasBackward sample(Given& g, Kind<op::BiasBackward>) {
  return {.dy = g.numbers(sample_shape), .dbias = g.room({8})};
}
inline op::SwigluForward sample(Given& g, Kind<op::SwigluForward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .h = g.room(sample_shape),
          .eight_bits = g.eight_bits()};
}
inline op::SwigluBackward sample(Given& g, Kind<op::SwigluBackward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .dh = g.numbers(sample_shape),
          .dgate = g.room(sample_shape),
          .dup = g.room(sample_shape),
          .h = g.room(sample_shape)};
}
inline op::Quantize sample(Given& g, Kind<op::Quantize>) {
  return {.x = g.numbers(sample_shape),
          .max_abs = g.one(3),
          .y = g.room(sample_shape, DType::f8_e4m3),
          .transposed = g.room({8, 6}, DType::f8_e4m3),
          .inverse_scale = g.room({1})};
}
inline op::QuantizeRows sample(Given& g, Kind<op::QuantizeRows>) {
  return {.x = g.numbers({6, 8}), .y = g.room({6, 8}, DType::f8_e4m3), .inverse_scale = g.room({6})};
}
inline op::QuantizeColumns sample(Given& g, Kind<op::QuantizeColumns>) {
  return {.x = g.numbers({6, 8}), .y = g.room({8, 6}, DType::f8_e4m3), .inverse_scale = g.room({8})};
}
inline op::TransposeEightBits sample(Given& g, Kind<op::TransposeEightBits>) {
  return {.x = g.eight_bit_numbers({6, 8}),
          .scale = g.positive({6}),
          .other_scale = g.positive({6}),
          .y = g.room({8, 16}, DType::f8_e4m3),
          .inverse_scale = g.room({1})};
}
inline op::ApplyDropout sample(Given& g, Kind<op::ApplyDropout>) {
  return {.x = g.numbers(sample_shape), .y = g.room(sample_shape), .dropout = g.dropout()};
}
inline op::BiasReluDropoutForward sample(Given& g, Kind<op::BiasReluDropoutForward>) {
  return {.x = g.numbers(sample_shape), .bias = g.numbers({8}), .y = g.room(sample_shape), .dropout = g.dropout()};
}
inline op::ReluDropoutBackward sample(Given& g, Kind<op::ReluDropoutBackward>) {
  return {
      .y = g.numbers(sample_shape), .dy = g.numbers(sample_shape), .dx = g.room(sample_shape), .probability = 0.25F};
}

// ---- embedding and position
inline op::EmbeddingForward sample(Given& g, Kind<op::EmbeddingForward>) {
  return {.ids = g.ids(6, 5), .table = g.numbers({5, 8}), .out = g.room(sample_shape)};
}
inline op::EmbeddingBackward sample(Given& g, Kind<op::EmbeddingBackward>) {
  return {.ids = g.ids(6, 5), .dout = g.numbers(sample_shape), .dtable = g.room({5, 8})};
}
inline op::RotaryTable sample(Given& g, Kind<op::RotaryTable>) {
  return {.cos = g.room({6, 4}), .sin = g.room({6, 4}), .theta = 10'000};
}
inline op::Rotary sample(Given& g, Kind<op::Rotary>) {
  return {.x = g.numbers({2, 6, 3, 8}), .cos = g.numbers({6, 4}), .sin = g.numbers({6, 4})};
}

inline op::HeadNormRotaryForward sample(Given& g, Kind<op::HeadNormRotaryForward>) {
  return {.x = g.numbers({2, 6, 3, 8}),
          .weight = g.numbers({2, 8}),
          .cos = g.numbers({6, 4}),
          .sin = g.numbers({6, 4}),
          .rotated = g.room({2, 6, 3, 8}),
          .queries = 2,
          .eps = 1e-5F};
}
inline op::HeadNormRotaryBackward sample(Given& g, Kind<op::HeadNormRotaryBackward>) {
  return {.drotated = g.numbers({2, 6, 3, 8}),
          .x = g.numbers({2, 6, 3, 8}),
          .weight = g.numbers({2, 8}),
          .cos = g.numbers({6, 4}),
          .sin = g.numbers({6, 4}),
          .dx = g.room({2, 6, 3, 8}),
          .dweight = g.room({2, 8}),
          .queries = 2,
          .eps = 1e-5F};
}

inline op::LatentKeysForward sample(Given& g, Kind<op::LatentKeysForward>) {
  return {.nope = g.numbers({2, 6, 3, 5}),
          .shared = g.numbers({2, 6, 8}),
          .cos = g.numbers({6, 4}),
          .sin = g.numbers({6, 4}),
          .k = g.room({2, 6, 3, 13})};
}
inline op::LatentKeysBackward sample(Given& g, Kind<op::LatentKeysBackward>) {
  return {.dk = g.numbers({2, 6, 3, 13}),
          .cos = g.numbers({6, 4}),
          .sin = g.numbers({6, 4}),
          .dnope = g.room({2, 6, 3, 5}),
          .dshared = g.room({2, 6, 8})};
}

// ---- norms
inline op::RmsNormForward sample(Given& g, Kind<op::RmsNormForward>) {
  return {.x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .y = g.room(sample_shape),
          .rstd = g.room({6}),
          .eps = 1e-5F,
          .eight_bits = g.eight_bits()};
}
inline op::AddRmsNormForward sample(Given& g, Kind<op::AddRmsNormForward>) {
  return {.x = g.numbers(sample_shape),
          .residual = g.numbers(sample_shape),
          .sum = g.room(sample_shape),
          .weight = g.numbers({8}),
          .y = g.room(sample_shape),
          .rstd = g.room({6}),
          .eps = 1e-5F,
          .eight_bits = g.eight_bits()};
}
inline op::RmsNormBackward sample(Given& g, Kind<op::RmsNormBackward>) {
  return {.dy = g.numbers(sample_shape),
          .x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .rstd = g.positive({6}),
          .residual = g.numbers(sample_shape),
          .dx = g.room(sample_shape),
          .dweight = g.room({8}),
          .y = g.room(sample_shape),
          .eight_bits = g.eight_bits()};
}
inline op::LayerNormForward sample(Given& g, Kind<op::LayerNormForward>) {
  return {.x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .bias = g.numbers({8}),
          .y = g.room(sample_shape),
          .mean = g.room({6}),
          .rstd = g.room({6}),
          .eps = 1e-5F};
}
inline op::LayerNormBackward sample(Given& g, Kind<op::LayerNormBackward>) {
  return {.dy = g.numbers(sample_shape),
          .x = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .mean = g.numbers({6}),
          .rstd = g.positive({6}),
          .residual = g.numbers(sample_shape),
          .dx = g.room(sample_shape),
          .dweight = g.room({8}),
          .dbias = g.room({8})};
}
inline op::DropoutAddLayerNormForward sample(Given& g, Kind<op::DropoutAddLayerNormForward>) {
  return {.x = g.numbers(sample_shape),
          .bias = g.numbers({8}),
          .residual = g.numbers(sample_shape),
          .dropout = g.dropout(),
          .sum = g.room(sample_shape),
          .weight = g.numbers({8}),
          .norm_bias = g.numbers({8}),
          .y = g.room(sample_shape),
          .mean = g.room({6}),
          .rstd = g.room({6}),
          .eps = 1e-5F};
}
inline op::DropoutAddLayerNormBackward sample(Given& g, Kind<op::DropoutAddLayerNormBackward>) {
  return {.dy = g.numbers(sample_shape),
          .sum = g.numbers(sample_shape),
          .weight = g.numbers({8}),
          .mean = g.numbers({6}),
          .rstd = g.positive({6}),
          .dropout = g.dropout(),
          .dsum = g.room(sample_shape),
          .dx = g.room(sample_shape),
          .dbias = g.room({8}),
          .dweight = g.room({8}),
          .dnorm_bias = g.room({8})};
}

// ---- attention
inline op::SoftmaxForward sample(Given& g, Kind<op::SoftmaxForward>) {
  return {.x = g.numbers({2, 3, 6, 6}),
          .y = g.room({2, 3, 6, 6}),
          .scale = 0.5F,
          .causal = true,
          .window = 4,
          .soft_cap = 1.5F,
          .sinks = g.numbers({3}),
          .lse = g.room({2, 3, 6}),
          .first_keys = g.documents().first_keys};
}
inline op::SoftmaxBackward sample(Given& g, Kind<op::SoftmaxBackward>) {
  return {.y = g.positive({2, 3, 6, 6}),
          .dy = g.numbers({2, 3, 6, 6}),
          .dx = g.room({2, 3, 6, 6}),
          .scale = 0.5F,
          .soft_cap = 8.0F,
          .sinks = g.numbers({3}),
          .lse = g.positive({2, 3, 6}),
          .dsinks = g.room({3})};
}
inline op::AttentionForward sample(Given& g, Kind<op::AttentionForward>) {
  const Shape shape{2, 6, 3, 8};
  return {.q = g.numbers(shape),
          .k = g.numbers(shape),
          .v = g.numbers(shape),
          .out = g.room(shape),
          .lse = g.room({2, 3, 6}),
          .shape = {.scale = 0.5F,
                    .causal = true,
                    .dropout = g.dropout(),
                    .window = 4,
                    .soft_cap = 1.5F,
                    .documents = g.documents()},
          .sinks = g.numbers({3})};
}
inline op::AttentionBackward sample(Given& g, Kind<op::AttentionBackward>) {
  const Shape shape{2, 6, 3, 8};
  return {.q = g.numbers(shape),
          .k = g.numbers(shape),
          .v = g.numbers(shape),
          .out = g.numbers(shape),
          .lse = g.positive({2, 3, 6}),
          .dout = g.numbers(shape),
          .dq = g.room(shape),
          .dk = g.room(shape),
          .dv = g.room(shape),
          .shape = {.scale = 0.5F,
                    .causal = true,
                    .dropout = g.dropout(),
                    .window = 4,
                    .soft_cap = 1.5F,
                    .documents = g.documents()},
          .sinks = g.numbers({3}),
          .dsinks = g.room({3})};
}

// ---- losses
inline op::CrossEntropyForward sample(Given& g, Kind<op::CrossEntropyForward>) {
  return {.logits = g.numbers(sample_shape), .labels = g.ids(6, 8), .losses = g.room({6}), .lse = g.room({6})};
}
inline op::CrossEntropyBackward sample(Given& g, Kind<op::CrossEntropyBackward>) {
  return {.logits = g.numbers(sample_shape),
          .labels = g.ids(6, 8),
          .lse = g.positive({6}),
          .scale = 0.5F,
          .dlogits = g.room(sample_shape)};
}
inline op::CrossEntropyInPlace sample(Given& g, Kind<op::CrossEntropyInPlace>) {
  return {.logits = g.numbers(sample_shape), .labels = g.ids(6, 8), .losses = g.room({6}), .scale = 0.5F};
}

// ---- reductions
inline op::Sum sample(Given& g, Kind<op::Sum>) { return {.x = g.numbers(sample_shape), .out = g.room({1})}; }
inline op::SumOfSquares sample(Given& g, Kind<op::SumOfSquares>) {
  return {.x = g.numbers(sample_shape), .out = g.room({1})};
}
inline op::MaxAbs sample(Given& g, Kind<op::MaxAbs>) { return {.x = g.numbers(sample_shape), .out = g.room({1})}; }
inline op::CountNonfinite sample(Given& g, Kind<op::CountNonfinite>) {
  return {.x = g.numbers(sample_shape), .out = g.room({1})};
}
inline op::OrderedSum sample(Given& g, Kind<op::OrderedSum>) {
  return {.x = g.numbers({48}), .out = g.room({1}), .options = {}};
}
inline op::OrderedDot sample(Given& g, Kind<op::OrderedDot>) {
  return {.x = g.numbers({48}), .y = g.numbers({48}), .out = g.room({1}), .options = {}};
}

// ---- optimizers
inline op::Advance sample(Given& g, Kind<op::Advance>) { return {.step = g.one(3, DType::i64)}; }
inline op::AdamW sample(Given& g, Kind<op::AdamW>) {
  return {.parameter = g.numbers({48}),
          .gradient = g.numbers({48}),
          .m = g.numbers({48}),
          .v = g.positive({48}),
          .step = g.one(3, DType::i64),
          .lr = g.one(0.5),
          .options = {},
          .compute_copy = g.room({48}, DType::bf16)};
}
inline op::Sgd sample(Given& g, Kind<op::Sgd>) {
  return {.parameter = g.numbers({48}),
          .gradient = g.numbers({48}),
          .momentum = g.numbers({48}),
          .step = g.one(3, DType::i64),
          .lr = g.one(0.5),
          .options = {.momentum = 0.9F},
          .compute_copy = g.room({48}, DType::bf16)};
}
inline op::MuonMomentum sample(Given& g, Kind<op::MuonMomentum>) {
  return {.gradient = g.numbers({2, 48}),
          .momentum = g.numbers({2, 48}),
          .update = g.room({2, 48}),
          .options = {.momentum = 0.5F}};
}
inline op::NormalizeRows sample(Given& g, Kind<op::NormalizeRows>) { return {.x = g.numbers({2, 48})}; }
inline op::MuonUpdate sample(Given& g, Kind<op::MuonUpdate>) {
  return {.parameter = g.numbers({2, 48}),
          .update = g.numbers({2, 48}),
          .lr = g.one(0.5),
          .options = {},
          .compute_copy = g.room({2, 48}, DType::bf16)};
}
inline op::UpdateLossScale sample(Given& g, Kind<op::UpdateLossScale>) {
  return {.scale = g.one(8),
          .nonfinite = g.one(0),
          .good_steps = g.one(1, DType::i64),
          .skipped_steps = g.one(0, DType::i64),
          .options = {}};
}

// ---- mixtures of experts: 4 tokens, 3 experts, 2 for each; expert 1 has 3 rows, expert 2 has 1
inline op::RouteForward sample(Given& g, Kind<op::RouteForward>) {
  return {.logits = g.numbers({4, 3}),
          .bias = g.numbers({3}),
          .scores = g.room({4, 3}),
          .lse = g.room({4}),
          .experts = g.room({4, 2}, DType::i32),
          .weights = g.room({4, 2})};
}
inline op::RouteBackward sample(Given& g, Kind<op::RouteBackward>) {
  return {.scores = g.positive({4, 3}),
          .lse = g.numbers({4}),
          .experts = g.whole({4, 2}, {0, 1, 1, 2, 2, 0, 0, 1}),
          .counts = g.whole({3}, {3, 3, 2}),
          .dweights = g.numbers({4, 2}),
          .dlogits = g.room({4, 3}),
          .balance = 0.25F,
          .z = 0.125F};
}
inline op::RoutingLosses sample(Given& g, Kind<op::RoutingLosses>) {
  return {
      .scores = g.positive({4, 3}), .lse = g.numbers({4}), .counts = g.whole({3}, {3, 3, 2}), .losses = g.room({2})};
}
inline op::GroupRows sample(Given& g, Kind<op::GroupRows>) {
  return {.experts = g.whole({4, 2}, {0, 1, 1, 2, 2, 0, 0, 1}),
          .counts = g.room({3}, DType::i32),
          .offsets = g.room({4}, DType::i32),
          .places = g.room({4, 2}, DType::i32),
          .sources = g.room({8}, DType::i32)};
}
inline op::GatherRows sample(Given& g, Kind<op::GatherRows>) {
  return {.x = g.numbers({4, 8}), .sources = g.whole({6}, {0, 3, 2, 7, 4, -1}), .rows = g.room({6, 8}), .copies = 2};
}
inline op::CombineRows sample(Given& g, Kind<op::CombineRows>) {
  return {.rows = g.numbers({6, 8}),
          .places = g.whole({3, 2}, {4, 1, 0, -1, 2, 3}),
          .residual = g.numbers({3, 8}),
          .y = g.room({3, 8})};
}
inline op::GroupedMatmul sample(Given& g, Kind<op::GroupedMatmul>) {
  return {.a = g.numbers({6, 8}),
          .b = g.numbers({3, 16, 8}),
          .offsets = g.whole({4}, {0, 0, 2, 6}),
          .c = g.room({6, 16}),
          .transpose_b = true,
          .bias = g.numbers({3, 16})};
}
inline op::GroupedWeightGradient sample(Given& g, Kind<op::GroupedWeightGradient>) {
  return {.dy = g.numbers({6, 16}),
          .x = g.numbers({6, 8}),
          .offsets = g.whole({4}, {0, 0, 2, 6}),
          .dw = g.room({3, 16, 8}),
          .dbias = g.room({3, 16}),
          .update = {.parameter = g.numbers({3, 16, 8}),
                     .m = g.numbers({3, 16, 8}),
                     .v = g.positive({3, 16, 8}),
                     .step = g.one(3, DType::i64),
                     .lr = g.one(0.5)}};
}
inline op::WeightedGatedForward sample(Given& g, Kind<op::WeightedGatedForward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .weights = g.numbers({3, 2}),
          .sources = g.whole({6}, {5, 1, 0, 2, 4, -1}),
          .h = g.room(sample_shape)};
}
inline op::WeightedGatedBackward sample(Given& g, Kind<op::WeightedGatedBackward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .dh = g.numbers(sample_shape),
          .weights = g.numbers({3, 2}),
          .sources = g.whole({6}, {5, 1, 0, 2, 4, -1}),
          .dgate = g.room(sample_shape),
          .dup = g.room(sample_shape),
          .dweights = g.room({3, 2}),
          .h = g.room(sample_shape)};
}

// ---- the account of steps
inline op::SpoilPlaces sample(Given& g, Kind<op::SpoilPlaces>) {
  return {.x = g.numbers({48}), .places = g.ids(5, 48), .loss = g.one(2)};
}
inline op::MarkStep sample(Given& g, Kind<op::MarkStep>) {
  return {.count = g.one(2, DType::i64),
          .marks = g.numbers({6, compute::MarkColumns::count}),
          .loss = g.one(2),
          .results = g.numbers({48}),
          .state = g.numbers({48}),
          .places = g.ids(5, 48)};
}

}  // namespace assay::conformance
