// Keys of latent attention, made of each head's own columns and of those that all heads share, and back.
#include <cmath>

#include "samples.hpp"

namespace assay::conformance {
namespace {

struct LatentShape {
  std::int64_t batch, positions, heads, nope, rope;
};
// DeepSeek-V2-Lite's; whole packs; widths that no pack fits, odd ones among them; one head, and none's own columns.
constexpr LatentShape latent_shapes[] = {{1, 5, 16, 128, 64}, {2, 9, 3, 16, 8}, {2, 7, 5, 10, 6},
                                         {3, 4, 2, 5, 2},     {1, 3, 1, 9, 14}, {2, 3, 4, 0, 4}};

// Operands lie as in a decoder: own columns beside values in an up-projection, shared ones behind a latent.
struct LatentCase {
  LatentShape s;
  DType type;
  std::int64_t width = s.nope + s.rope, tokens = s.batch * s.positions;
  DeviceTensor cos{DType::f32, {s.positions + 2, s.rope / 2}}, sin{DType::f32, {s.positions + 2, s.rope / 2}};
  DeviceTensor up{
      type, {s.batch, s.positions, s.heads, s.nope + 8}, random_values(type, tokens* s.heads*(s.nope + 8), 31)};
  DeviceTensor packed{type, {s.batch, s.positions, 16 + s.rope}, random_values(type, tokens*(16 + s.rope), 32)};
  Tensor nope = up->slice(3, 0, s.nope), shared = packed->slice(2, 16, s.rope);
  DeviceTensor k{type, {s.batch, s.positions, s.heads, width}, random_values(type, tokens* s.heads* width, 33)};

  LatentCase(const LatentShape& shape, DType of) : s(shape), type(of) {
    run([&] { backend().run(op::RotaryTable{.cos = cos, .sin = sin, .theta = 50.0}); });
  }
  // Element `c` of shared columns of a token, turned.
  double turned(const Values& of_token, std::int64_t token, std::int64_t c, double sign, const Values& cosines,
                const Values& sines) const {
    const auto angle = static_cast<std::size_t>(token % s.positions * (s.rope / 2) + c / 2);
    const double other = of_token[static_cast<std::size_t>(c ^ 1)] * sign * sines[angle];
    return of_token[static_cast<std::size_t>(c)] * cosines[angle] + (c % 2 == 0 ? -other : other);
  }
};

void test_latent_keys(const LatentShape& shape, DType type) {
  const LatentCase c(shape, type);
  const LatentShape& s = c.s;
  const Values nope = c.up.read(c.nope), shared = c.packed.read(c.shared), dk = c.k.read();
  const Values cosines = c.cos.read(), sines = c.sin.read();
  Values k, dnope, dshared;
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    const Values of_all(shared.begin() + t * s.rope, shared.begin() + (t + 1) * s.rope);
    Values sum(static_cast<std::size_t>(s.rope));
    for (std::int64_t row = t * s.heads; row < (t + 1) * s.heads; ++row) {
      k.insert(k.end(), nope.begin() + row * s.nope, nope.begin() + (row + 1) * s.nope);
      for (std::int64_t i = 0; i < s.rope; ++i) k.push_back(c.turned(of_all, t, i, 1, cosines, sines));
      dnope.insert(dnope.end(), dk.begin() + row * c.width, dk.begin() + row * c.width + s.nope);
      for (std::int64_t i = 0; i < s.rope; ++i)
        sum[static_cast<std::size_t>(i)] += dk[static_cast<std::size_t>(row * c.width + s.nope + i)];
    }
    for (std::int64_t i = 0; i < s.rope; ++i) dshared.push_back(c.turned(sum, t, i, -1, cosines, sines));
  }
  // The backward first, as the forward takes the place of what it reads.
  const DeviceTensor up(type, {s.batch, s.positions, s.heads, s.nope + 8},
                        Values(static_cast<std::size_t>(c.tokens * s.heads * (s.nope + 8)), 3.0));
  const DeviceTensor packed(type, {s.batch, s.positions, 16 + s.rope},
                            Values(static_cast<std::size_t>(c.tokens * (16 + s.rope)), 3.0));
  const Tensor dnope_there = up->slice(3, 0, s.nope), dshared_there = packed->slice(2, 16, s.rope);
  run([&] {
    backend().run(
        op::LatentKeysBackward{.dk = c.k, .cos = c.cos, .sin = c.sin, .dnope = dnope_there, .dshared = dshared_there});
  });
  EXPECT_EQ(up.read(dnope_there), dnope);
  check("latent_keys_backward dshared", type, packed.read(dshared_there), dshared, tolerance_of(type, 2e-6));
  for (const double beside : up.read(up->slice(3, s.nope, 8))) ASSERT_EQ(beside, 3.0);
  for (const double beside : packed.read(packed->slice(2, 0, 16))) ASSERT_EQ(beside, 3.0);
  run([&] {
    backend().run(op::LatentKeysForward{.nope = c.nope, .shared = c.shared, .cos = c.cos, .sin = c.sin, .k = c.k});
  });
  check("latent_keys_forward", type, c.k.read(), k, tolerance_of(type, 1e-6));
}

TEST(LatentKeys, ForwardAndBackward) {
  for (const DType type : float_types())
    for (const LatentShape& shape : latent_shapes) test_latent_keys(shape, type);
}

TEST(LatentKeys, RefusesWhatDoesNotFit) {
  const LatentCase c({1, 4, 2, 8, 4}, DType::f32);
  const DeviceTensor wider(DType::f32, {1, 4, 2, 13});
  std::string text;
  EXPECT_EQ(status_of(
                [&] {
                  backend().run(op::LatentKeysForward{
                      .nope = c.nope, .shared = c.shared, .cos = c.cos, .sin = c.sin, .k = wider});
                },
                &text),
            ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("shared [B, T, R] and k [B, T, H, D + R]"), std::string::npos) << text;
}

}  // namespace

// ---- samples
op::LatentKeysForward sample(Given& g, Kind<op::LatentKeysForward>) {
  return {.nope = g.numbers({2, 6, 3, 5}),
          .shared = g.numbers({2, 6, 8}),
          .cos = g.numbers({6, 4}),
          .sin = g.numbers({6, 4}),
          .k = g.room({2, 6, 3, 13})};
}
op::LatentKeysBackward sample(Given& g, Kind<op::LatentKeysBackward>) {
  return {.dk = g.numbers({2, 6, 3, 13}),
          .cos = g.numbers({6, 4}),
          .sin = g.numbers({6, 4}),
          .dnope = g.room({2, 6, 3, 5}),
          .dshared = g.room({2, 6, 8})};
}

}  // namespace assay::conformance
