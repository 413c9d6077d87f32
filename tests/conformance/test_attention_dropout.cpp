// Dropout inside attention, whoever makes the mask: what must hold of any, found without knowing it.
// (test_attention.cpp compares with the mask of dropout() where that is the one.)
#include <cmath>

#include "attention_reference.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::AttentionShape;

// A head dimension and lengths that every backend serves in every type.
const AttentionSizes sizes{2, 256, 256, 2, 64};
constexpr std::int64_t count = 2 * 256 * 2 * 64;

struct Case {
  DType type;
  AttentionShape shape{0.125F, false, {0.1F, 17, 3, {}}};
  DeviceTensor step{DType::i64, {1}, {1}};
  DeviceTensor q{made(1)}, k{made(2)}, out{empty()}, lse{DType::f32, {sizes.batch, sizes.heads, sizes.queries}};

  explicit Case(DType t) : type(t) { shape.dropout.step = step; }
  DeviceTensor made(std::uint64_t salt) const {
    return {type, {sizes.batch, sizes.queries, sizes.heads, sizes.depth}, random_values(type, count, salt)};
  }
  DeviceTensor empty() const { return {type, {sizes.batch, sizes.queries, sizes.heads, sizes.depth}}; }
  Values forward(const Tensor& v) const {
    run([&] { backend().run(op::AttentionForward{.q = q, .k = k, .v = v, .out = out, .lse = lse, .shape = shape}); });
    return out.read();
  }
};

double root_mean_square(const Values& x, const Values& minus) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - minus[i]) * (x[i] - minus[i]);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(AttentionDropout, IsTheSameInOneStepAndAnotherInTheNext) {
  for (const DType t : float_types()) {
    Case c(t);
    const DeviceTensor v = c.made(3);
    const Values first = c.forward(v);
    EXPECT_EQ(c.forward(v), first) << name_of(t);
    c.step.write({2});
    EXPECT_NE(c.forward(v), first) << name_of(t) << ", another step";
    c.step.write({1});
    c.shape.dropout.stream = 4;
    EXPECT_NE(c.forward(v), first) << name_of(t) << ", another stream";
    c.shape.dropout = {0.1F, 18, 3, c.step};
    EXPECT_NE(c.forward(v), first) << name_of(t) << ", another seed";
    c.shape.dropout = {0.1F, 17, 3, c.step};
    EXPECT_EQ(c.forward(v), first) << name_of(t) << ", and back";
  }
}

TEST(AttentionDropout, LeavesTheMeanAsItIs) {
  for (const DType t : float_types()) {
    Case c(t);
    const DeviceTensor v = c.made(3);
    Values mean(static_cast<std::size_t>(count));
    double single = 0.0;
    constexpr int seeds = 64;
    c.shape.dropout.probability = 0.0F;
    const Values undropped = c.forward(v);
    c.shape.dropout.probability = 0.1F;
    for (int seed = 0; seed < seeds; ++seed) {
      c.shape.dropout.seed = static_cast<std::uint64_t>(seed);
      const Values out = c.forward(v);
      if (seed == 0) single = root_mean_square(out, undropped);
      for (std::size_t i = 0; i < out.size(); ++i) mean[i] += out[i] / seeds;
    }
    // out is a sum of p_j v_j with v of mean 0: dropping adds p / (1 - p) = 1/9 of its variance, the mean of 64 a 64th
    // of that. A scale of 1 / (1 - p) forgotten would leave 0.1 of the whole.
    const double whole = root_mean_square(undropped, Values(undropped.size()));
    EXPECT_NEAR(single / whole, std::sqrt(1.0 / 9.0), 0.03) << name_of(t);
    EXPECT_NEAR(root_mean_square(mean, undropped) / whole, std::sqrt(1.0 / 9.0 / seeds), 0.01) << name_of(t);
  }
}

// out is linear in v, so <dout, out(u)> = <dv, u> for every u if the backward has the forward's mask. With another one
// the two would be apart by about sqrt(2 p / (1 - p)), half of their size.
TEST(AttentionDropout, BackwardHasTheForwardsMask) {
  for (const DType t : float_types()) {
    const Case c(t);
    const DeviceTensor v = c.made(3), dout = c.made(4), dq = c.empty(), dk = c.empty(), dv = c.empty();
    c.forward(v);
    run([&] {
      backend().run(op::AttentionBackward{.q = c.q,
                                          .k = c.k,
                                          .v = v,
                                          .out = c.out,
                                          .lse = c.lse,
                                          .dout = dout,
                                          .dq = dq,
                                          .dk = dk,
                                          .dv = dv,
                                          .shape = c.shape});
    });
    const Values gradient = dv.read(), weight = dout.read();
    double apart = 0.0, whole = 0.0;
    for (std::uint64_t direction = 0; direction < 8; ++direction) {
      const DeviceTensor u = c.made(10 + direction);
      const Values along = u.read(), out = c.forward(u);
      double forward = 0.0, backward = 0.0, squares = 0.0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        forward += weight[i] * out[i];
        squares += weight[i] * out[i] * weight[i] * out[i];
        backward += gradient[i] * along[i];
      }
      apart += (forward - backward) * (forward - backward);
      whole += squares;
    }
    EXPECT_LE(std::sqrt(apart / whole), t == DType::f32 ? 1e-4 : 0.03) << name_of(t);
  }
}

TEST(AttentionDropout, RefusesWhatIsNoProbability) {
  Case c(DType::f32);
  c.shape.dropout.probability = 1.0F;
  EXPECT_EQ(status_of([&] { c.forward(c.q); }), ASSAY_INVALID_ARGUMENT);
  c.shape.dropout = {0.1F, 1, 1, c.lse};
  EXPECT_EQ(status_of([&] { c.forward(c.q); }), ASSAY_UNSUPPORTED);
}

}  // namespace

// ---- samples
op::AttentionForward sample(Given& g, Kind<op::AttentionForward>) {
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
op::AttentionBackward sample(Given& g, Kind<op::AttentionBackward>) {
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

}  // namespace assay::conformance
