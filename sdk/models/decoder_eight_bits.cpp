// The decoder's products of 8 bits: what they read, and when it is made.
#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using compute::Tensor;

// Of a product [rows, depth] x [depth, outputs].
DecoderModel::EightBits DecoderModel::plan_eight_bits(const std::string& name, std::int64_t depth, std::int64_t outputs,
                                                      const EightBits* with_weights) {
  using Use = train::BufferPlan::Use;
  const std::int64_t n = config_.rows();
  constexpr std::int64_t in_product = 16;  // a product of 8 bits adds up so many at a time
  EightBits by{.x = plan_.add(name + "eight_bits", DType::f8_e4m3, {n, depth}),
               .x_scales = plan_.add(name + "scales", DType::f32, {n}),
               .w = 0,
               .w_scales = 0,
               .turned = plan_.add(name + "turned.eight_bits", DType::f8_e4m3,
                                   {depth, (n + in_product - 1) / in_product * in_product}),
               .turned_scale = plan_.add(name + "turned.scale", DType::f32, {1})};
  if (keeps_eight_bit_weights() && with_weights) {
    by.w = with_weights->w, by.w_scales = with_weights->w_scales;
  } else {
    const Use use = keeps_eight_bit_weights() ? Use::outlives_steps : Use::temporary;
    by.w = plan_.add(name + "weight.eight_bits", DType::f8_e4m3, {outputs, depth}, use);
    by.w_scales = plan_.add(name + "weight.scales", DType::f32, {outputs}, use);
  }
  return by;
}

// The 8 bits of a result of so many rows that a product by `by` reads next; none where products have none.
op::EightBitRows DecoderModel::as_read_by(const EightBits& by) const {
  if (!eight_bits()) return {};
  return {.numbers = plan_[by.x], .inverse_scale = plan_[by.x_scales]};
}

void DecoderModel::quantize_for(Backend& b, const Tensor& x, const EightBits& by) const {
  if (eight_bits()) b.run(op::QuantizeRows{.x = x, .y = plan_[by.x], .inverse_scale = plan_[by.x_scales]});
}

void DecoderModel::multiply_eight_bits(Backend& b, const EightBits& by, const Tensor& y) const {
  b.run(op::Matmul{.a = plan_[by.x],
                   .b = plan_[by.w],
                   .c = y,
                   .transpose_b = true,
                   .a_scale = plan_[by.x_scales],
                   .b_scale = plan_[by.w_scales],
                   .fast_accumulation = true});
}

// Weights are rounded right before the product that reads them, which finds them in cache, so that no copy of them
// stays in memory; of several micro-batches the first one rounds all.
void DecoderModel::project(Backend& b, const Tensor& x, train::ParameterSet::Id first, std::size_t count,
                           const EightBits& by, const Tensor& y, const Tensor& bias) const {
  const Tensor w = set_.compute(first, count);
  if (!eight_bits()) return b.run(op::Matmul{.a = x, .b = w, .c = y, .transpose_b = true, .bias = bias});
  if (!keeps_eight_bit_weights())
    b.run(op::QuantizeRows{.x = w, .y = plan_[by.w], .inverse_scale = plan_[by.w_scales]});
  multiply_eight_bits(b, by, y);
  if (bias) b.run(op::BiasAdd{.x = y, .bias = bias, .y = y});
}

void DecoderModel::project_back(Backend& b, const Tensor& dy, train::ParameterSet::Id first, std::size_t count,
                                const EightBits& by, const Tensor& dx) const {
  const Tensor w = set_.compute(first, count);
  if (!eight_bits()) return b.run(op::Matmul{.a = dy, .b = w, .c = dx});
  if (!keeps_eight_bit_weights())
    b.run(op::QuantizeColumns{.x = w, .y = plan_[by.w], .inverse_scale = plan_[by.w_scales]});
  multiply_eight_bits(b, by, dx);
}

void DecoderModel::quantize_weights(Backend& b) const {
  for (std::size_t l = 0; l < forward_.size(); ++l) {
    const DecoderLayerParameters& p = ids_.layers[l];
    const auto quantize = [&](train::ParameterSet::Id first, std::size_t count, const EightBits& by_rows,
                              const EightBits& by_columns) {
      const Tensor w = set_.compute(first, count);
      b.run(op::QuantizeRows{.x = w, .y = plan_[by_rows.w], .inverse_scale = plan_[by_rows.w_scales]});
      if (config_.backward)
        b.run(op::QuantizeColumns{.x = w, .y = plan_[by_columns.w], .inverse_scale = plan_[by_columns.w_scales]});
    };
    quantize(p.q, 3, forward_[l].qkv_8, backward_[l].qkv_8);
    quantize(p.output, 1, forward_[l].output_8, backward_[l].output_8);
    quantize(p.w1, 2, forward_[l].gate_up_8, backward_[l].gate_up_8);
    quantize(p.w2, 1, forward_[l].w2_8, backward_[l].w2_8);
  }
}

// Sums over tokens: both inputs are turned, and the tokens' scales go into the numbers of one of them.
void DecoderModel::weight_gradient(Backend& b, Id dy, Id x, train::ParameterSet::Id first, std::size_t count,
                                   const EightBits& dy_8, const EightBits& x_8) const {
  if (!eight_bit_weight_gradients()) return weight_gradient(b, plan_[dy], plan_[x], first, count);
  if (lanes()) b.begin_side();
  b.run(op::TransposeEightBits{.x = plan_[dy_8.x],
                               .scale = plan_[dy_8.x_scales],
                               .other_scale = plan_[x_8.x_scales],
                               .y = plan_[dy_8.turned],
                               .inverse_scale = plan_[dy_8.turned_scale]});
  b.run(op::TransposeEightBits{.x = plan_[x_8.x], .y = plan_[x_8.turned]});
  b.run(op::Matmul{.a = plan_[dy_8.turned],
                   .b = plan_[x_8.turned],
                   .c = set_.gradient(first, count),
                   .transpose_b = true,
                   .a_scale = plan_[dy_8.turned_scale]});
  if (lanes()) b.end_side();
}

}  // namespace assay::models
