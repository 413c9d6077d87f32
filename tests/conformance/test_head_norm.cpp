// Heads of queries and keys, normalised and turned, forward and backward.
#include <cmath>

#include "norm_reference.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

struct HeadShape {
  std::int64_t batch, positions, queries, keys, width;
  float offset = 0;  // of the weights
};
// Whole packs of every type; a half and a whole warp; more than a warp holds; widths that no pack fits; queries or keys
// alone; more heads than a block has teams.
constexpr HeadShape head_shapes[] = {{1, 1, 1, 1, 2},     {2, 9, 3, 1, 10},   {2, 37, 4, 2, 64},   {1, 50, 6, 3, 128},
                                     {1, 7, 2, 2, 256},   {3, 11, 2, 1, 96},  {1, 5, 2, 1, 520},   {1, 40, 2, 0, 32},
                                     {1, 40, 0, 2, 32},   {1, 3, 70, 70, 16}, {2, 9, 3, 1, 10, 1}, {1, 5, 2, 2, 64, 1},
                                     {1, 5, 2, 1, 520, 1}};

// The weights stand out, so that no row of them, and no row of none, passes for another.
struct HeadCase {
  HeadShape shape;
  NormTypes types;
  std::int64_t heads = shape.queries + shape.keys, rows = shape.batch * shape.positions * heads;
  std::int64_t pairs = shape.width / 2;
  DeviceTensor cos{DType::f32, {shape.positions + 2, pairs}}, sin{DType::f32, {shape.positions + 2, pairs}};
  // Between heads of something else, as queries and keys lie before values.
  DeviceTensor packed{types.x,
                      {shape.batch, shape.positions, heads + 3, shape.width},
                      random_values(types.x, rows / heads * (heads + 3) * shape.width, 21, 0.3, 2.0)};
  Tensor x = packed->slice(2, 1, heads);
  Values stored = random_values(types.weight, 2 * shape.width, 22, 1.5, 0.5);
  DeviceTensor weight_there{types.weight, {2, shape.width}, stored};
  Values weight = added(stored, Values(stored.size(), static_cast<double>(shape.offset)));  // what is multiplied by

  HeadCase(const HeadShape& of, const NormTypes& t) : shape(of), types(t) {
    run([&] { backend().run(op::RotaryTable{.cos = cos, .sin = sin, .theta = 100.0}); });
  }

  Values turned(Values x, double sign) const {
    const Values c = cos.read(), s = sin.read();
    for (std::int64_t i = 0; i < rows * pairs; ++i) {
      const auto at = static_cast<std::size_t>(i / pairs / heads % shape.positions * pairs + i % pairs);
      const auto p = static_cast<std::size_t>(2 * i);
      const double even = x[p], odd = x[p + 1], turn = sign * s[at];
      x[p] = even * c[at] - odd * turn, x[p + 1] = even * turn + odd * c[at];
    }
    return x;
  }
  // f(row, which) of each head's elements; which: 0 of queries, 1 of keys.
  template <class F>
  void each_head(F&& f) const {
    for (std::int64_t r = 0; r < rows; ++r) f(r, r % heads < shape.queries ? 0 : 1);
  }
  Values part(const Values& all, std::int64_t row) const {
    return {all.begin() + row * shape.width, all.begin() + (row + 1) * shape.width};
  }
};

void test_head_norm_forward(const HeadShape& shape, const NormTypes& types) {
  const HeadCase c(shape, types);
  const Values x = c.packed.read(c.x);
  Values normed;
  c.each_head([&](std::int64_t r, std::int64_t which) {
    const Normalised n = normalise(false, c.part(x, r), c.part(c.weight, which), {});
    normed.insert(normed.end(), n.y.begin(), n.y.end());
  });
  const DeviceTensor rotated(types.x, {shape.batch, shape.positions, c.heads, shape.width});
  run([&] {
    backend().run(op::HeadNormRotaryForward{.x = c.x,
                                            .weight = c.weight_there,
                                            .cos = c.cos,
                                            .sin = c.sin,
                                            .rotated = rotated,
                                            .queries = shape.queries,
                                            .eps = static_cast<float>(norm_eps),
                                            .weight_offset = shape.offset});
  });
  check("head_norm_rotary_forward", types.x, rotated.read(), c.turned(normed, 1), tolerance_of(types.x, 2e-6));
}

void test_head_norm_backward(const HeadShape& shape, const NormTypes& types, bool accumulate) {
  const HeadCase c(shape, types);
  const Values x = c.packed.read(c.x), drotated = random_values(types.x, c.rows * shape.width, 24);
  const Values u = c.turned(drotated, -1);
  Values dx, dweight(static_cast<std::size_t>(2 * shape.width));
  const Values before = random_values(types.weight_gradient, 2 * shape.width, 25);
  c.each_head([&](std::int64_t r, std::int64_t which) {
    const Values of_head = c.part(x, r), weight = c.part(c.weight, which);
    const NormGradients g =
        normalise_backward(false, c.part(u, r), of_head, weight, normalise(false, of_head, weight, {}));
    dx.insert(dx.end(), g.x.begin(), g.x.end());
    for (std::size_t i = 0; i < g.weight.size(); ++i)
      dweight[static_cast<std::size_t>(which * shape.width) + i] += g.weight[i];
  });
  // The gradient takes the place of the result's, in a packed buffer, whose other heads stay.
  const DeviceTensor gradients(types.x, {shape.batch, shape.positions, c.heads + 3, shape.width},
                               Values(static_cast<std::size_t>(c.rows / c.heads * (c.heads + 3) * shape.width), 3.0));
  const DeviceTensor apart(types.x, {shape.batch, shape.positions, c.heads, shape.width}, drotated);
  const Tensor in_place = gradients->slice(2, 0, c.heads);
  const DeviceTensor dweight_there(types.weight_gradient, {2, shape.width}, before);
  run([&] { backend().run(op::Copy{.to = in_place, .from = apart}); });
  run([&] {
    backend().run(op::HeadNormRotaryBackward{.drotated = in_place,
                                             .x = c.x,
                                             .weight = c.weight_there,
                                             .cos = c.cos,
                                             .sin = c.sin,
                                             .dx = in_place,
                                             .dweight = dweight_there,
                                             .queries = shape.queries,
                                             .eps = static_cast<float>(norm_eps),
                                             .accumulate = accumulate,
                                             .weight_offset = shape.offset});
  });
  check("head_norm_rotary_backward dx", types.x, gradients.read(in_place), dx, tolerance_of(types.x, 4e-6));
  for (const double other : gradients.read(gradients->slice(2, c.heads, 3))) ASSERT_EQ(other, 3.0) << "beside the view";
  for (std::size_t i = 0; accumulate && i < dweight.size(); ++i) dweight[i] += before[i];
  check("head_norm_rotary_backward dweight", types.weight_gradient, dweight_there.read(), dweight,
        tolerance_of(types.weight_gradient, 3e-6));
}

TEST(HeadNorm, Forward) {
  for (const NormTypes& t : norm_type_sets())
    for (const HeadShape& shape : head_shapes) test_head_norm_forward(shape, t);
}

TEST(HeadNorm, Backward) {
  for (const NormTypes& t : norm_type_sets())
    for (const HeadShape& shape : head_shapes)
      for (const bool accumulate : {false, true}) test_head_norm_backward(shape, t, accumulate);
}

TEST(HeadNorm, RefusesWhatDoesNotFit) {
  const DeviceTensor x(DType::f32, {1, 4, 3, 8}, Values(96, 1.0)), y(DType::f32, {1, 4, 3, 8});
  const DeviceTensor weight(DType::f32, {2, 8}, Values(16, 1.0)), one(DType::f32, {1, 8}, Values(8, 1.0));
  const DeviceTensor cos(DType::f32, {4, 4}, Values(16, 1.0)), sin(DType::f32, {4, 4}, Values(16, 0.0));
  const auto refusal = [&](const Tensor& w, std::int64_t queries) {
    std::string text;
    EXPECT_EQ(status_of(
                  [&] {
                    backend().run(op::HeadNormRotaryForward{
                        .x = x, .weight = w, .cos = cos, .sin = sin, .rotated = y, .queries = queries, .eps = 1e-5F});
                  },
                  &text),
              ASSAY_INVALID_ARGUMENT);
    return text;
  };
  EXPECT_NE(refusal(one, 2).find("weight [2, D], of queries and of keys"), std::string::npos);
  EXPECT_NE(refusal(weight, 4).find("queries = 4; expected 0 to 3, the heads of x"), std::string::npos);
}

}  // namespace

// ---- samples
op::HeadNormRotaryForward sample(Given& g, Kind<op::HeadNormRotaryForward>) {
  return {.x = g.numbers({2, 6, 3, 8}),
          .weight = g.numbers({2, 8}),
          .cos = g.numbers({6, 4}),
          .sin = g.numbers({6, 4}),
          .rotated = g.room({2, 6, 3, 8}),
          .queries = 2,
          .eps = 1e-5F};
}
op::HeadNormRotaryBackward sample(Given& g, Kind<op::HeadNormRotaryBackward>) {
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

}  // namespace assay::conformance
