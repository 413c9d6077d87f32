// Moving and making data: copies, fills, random numbers, embedding, rotary position.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "samples.hpp"

namespace assay::conformance {
namespace {

constexpr DType copied_types[] = {DType::f32, DType::bf16, DType::f16};  // whatever else a backend serves

TEST(Data, UploadAndDownloadKeepEveryBit) {
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    const bool integer = t == DType::i64 || t == DType::i32 || t == DType::u8;
    const Values values = integer ? random_ids(1001, 1, 0, 200) : random_values(t, 1001, 1);
    EXPECT_EQ(DeviceTensor(t, {7, 143}, values).read(), values) << name_of(t);
  }
}

TEST(Data, FillSetsEveryElement) {
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8})
    for (const double value : {0.0, 7.0, 1.0 / 3.0}) {
      if (value != std::floor(value) && size_of(t) != 2 && t != DType::f32) continue;
      for (const std::int64_t n : {1, 63, 100003}) {
        const DeviceTensor x(t, {n});
        run([&] { backend().run(op::Fill{.x = x, .value = value}); });
        EXPECT_EQ(x.read(), Values(static_cast<std::size_t>(n), rounded(t, value))) << name_of(t) << " " << n;
      }
    }
}

TEST(Data, CopyConvertsByRoundingToNearest) {
  // Ties, subnormal numbers of fp16, the largest finite ones, and zeros of both signs are among them.
  Values values = random_values(DType::f32, 70001, 3, 0.0, 100.0);
  const Values special = {0.0,     -0.0,    1.00390625, 1.01171875, 65504.0,  65519.0, 6.1e-5,
                          5.96e-8, 2.98e-8, 2.9e-8,     1e-30,      -3e-6,    2049.0,  2051.0,
                          -0.1,    1e30,    8.9407e-8,  3.057e-5,   -65519.9, -2.0e-7};
  std::copy(special.begin(), special.end(), values.begin());
  for (double& v : values) v = rounded(DType::f32, v);
  for (const DType from : copied_types)
    for (const DType to : copied_types) {
      Values exact = rounded(from, values);
      for (double& v : exact)  // beyond the range: another test
        if (std::isinf(rounded(to, v)) || std::isinf(v)) v = 1.0;
      const DeviceTensor x(from, {70001}, exact), y(to, {70001});
      run([&] { backend().run(op::Copy{.to = y, .from = x}); });
      EXPECT_EQ(y.read(), rounded(to, exact)) << name_of(from) << " to " << name_of(to);
    }
}

TEST(Data, CopyKeepsInfinitiesAndNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  const DeviceTensor x(DType::f32, {4}, {infinity, -infinity, std::nan(""), 1e6});
  for (const DType t : copied_types) {
    const DeviceTensor y(t, {4});
    run([&] { backend().run(op::Copy{.to = y, .from = x}); });
    const Values got = y.read();
    EXPECT_EQ(got[0], infinity) << name_of(t);
    EXPECT_EQ(got[1], -infinity) << name_of(t);
    EXPECT_TRUE(std::isnan(got[2])) << name_of(t);
    EXPECT_EQ(got[3], t == DType::f16 ? infinity : rounded(t, 1e6)) << name_of(t);
  }
}

TEST(Data, CopyHonoursStrides) {
  for (const DType from : float_types())
    for (const DType to : float_types()) {
      const Shape shape = {3, 5, 7, 18};
      const Values values = random_values(from, elements(shape), 4);
      const DeviceTensor source(from, shape, values), target(to, {3, 7, 5, 40});
      // heads before positions, into the middle of wider rows
      const Tensor view = source->transposed(1, 2);
      const Tensor slot = target->slice(3, 9, 18);
      run([&] { backend().run(op::Fill{.x = target, .value = -1.0}); });
      run([&] { backend().run(op::Copy{.to = slot, .from = view}); });
      EXPECT_EQ(target.read(slot), rounded(to, source.read(view))) << name_of(from) << " to " << name_of(to);
      EXPECT_EQ(target.read(target->slice(3, 0, 9)), Values(3 * 7 * 5 * 9, -1.0)) << "left of the slot";
      EXPECT_EQ(target.read(target->slice(3, 27, 13)), Values(3 * 7 * 5 * 13, -1.0)) << "right of the slot";
      const DeviceTensor back(from, {18, 7, 5, 3});
      run([&] { backend().run(op::Copy{.to = back, .from = source->transposed(0, 3).transposed(1, 2)}); });
      EXPECT_EQ(back.read(), source.read(source->transposed(0, 3).transposed(1, 2))) << "a full transpose";
    }
  const DeviceTensor ids(DType::i64, {4, 6}, random_ids(24, 5, -1000, 1000)), turned(DType::i64, {6, 4});
  run([&] { backend().run(op::Copy{.to = turned, .from = ids->transposed(0, 1)}); });
  EXPECT_EQ(turned.read(), ids.read(ids->transposed(0, 1)));
}

TEST(Data, CopyRefusesOtherShapesAndTypes) {
  const DeviceTensor a(DType::f32, {4}), b(DType::f32, {5}), ids(DType::i64, {4});
  EXPECT_EQ(status_of([&] { backend().run(op::Copy{.to = a, .from = b}); }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { backend().run(op::Copy{.to = a, .from = ids}); }), ASSAY_UNSUPPORTED);
}

// ---- random numbers ------------------------------------------------------------------------------------------------

// The generator as its authors state it, one block at a time.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * counter[0], p1 = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  return counter;
}
std::array<std::uint32_t, 4> block_of(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return philox({low(block), low(block >> 32), low(stream), low(stream >> 32)}, {low(seed), low(seed >> 32)});
}

TEST(Random, ReferenceGivesThePublishedVectors) {
  using Words = std::array<std::uint32_t, 4>;
  const std::uint32_t ones = 0xffffffffu;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

constexpr std::uint64_t seed = 0x0123456789abcdefull, stream = 0xfedcba9876543210ull;

Values normal_reference(std::int64_t count, double mean, double std) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto word = block_of(seed, stream, static_cast<std::uint64_t>(i / 4));
    const std::size_t pair = static_cast<std::size_t>(i % 4 / 2) * 2;
    const double u = ((word[pair] >> 8) + 1.0) / 16777216.0, v = (word[pair + 1] >> 8) / 16777216.0;
    const double radius = std::sqrt(-2.0 * std::log(u)), angle = 2.0 * M_PI * v;
    values.push_back(mean + std * radius * (i % 2 ? std::sin(angle) : std::cos(angle)));
  }
  return values;
}

TEST(Random, NormalIsBoxMullerOfPhilox) {
  for (const DType t : float_types())
    for (const std::int64_t n : {1, 2, 5, 63, 64, 65, 50021}) {
      const DeviceTensor x(t, {n});
      run([&] { backend().run(op::RandomNormal{.x = x, .seed = seed, .stream = stream, .mean = 0.5F, .std = 0.02F}); });
      check("random_normal", t, x.read(), normal_reference(n, 0.5F, 0.02F), tolerance_of(t, 1e-6));
    }
}

TEST(Random, IntegersAreScaledPhilox) {
  for (const auto& [low, high] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
           {0, 10000}, {-5, 6}, {7, 8}, {-(1ll << 40), 1ll << 40}}) {
    const std::int64_t n = 20011;
    const DeviceTensor x(DType::i64, {n});
    run([&, low = low, high = high] {
      backend().run(op::RandomIntegers{.x = x, .seed = seed, .stream = stream, .low = low, .high = high});
    });
    Values reference;
    __extension__ typedef unsigned __int128 Wide;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto word = block_of(seed, stream, static_cast<std::uint64_t>(i / 2));
      const std::size_t half = static_cast<std::size_t>(i % 2) * 2;
      const std::uint64_t bits = word[half] | static_cast<std::uint64_t>(word[half + 1]) << 32;
      const auto scaled = static_cast<std::int64_t>(Wide{bits} * static_cast<std::uint64_t>(high - low) >> 64);
      reference.push_back(static_cast<double>(low + scaled));
    }
    EXPECT_EQ(x.read(), reference) << low << " " << high;
  }
  const DeviceTensor x(DType::i64, {4});
  EXPECT_EQ(status_of([&] { backend().run(op::RandomIntegers{.x = x, .seed = 1, .stream = 2, .low = 5, .high = 5}); }),
            ASSAY_INVALID_ARGUMENT);
}

TEST(Random, StreamsDiffer) {
  const DeviceTensor x(DType::f32, {1000}), y(DType::f32, {1000});
  run([&] { backend().run(op::RandomNormal{.x = x, .seed = 1, .stream = 0, .mean = 0.0F, .std = 1.0F}); });
  run([&] { backend().run(op::RandomNormal{.x = y, .seed = 1, .stream = 1, .mean = 0.0F, .std = 1.0F}); });
  const Values a = x.read(), b = y.read();
  double product = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) product += a[i] * b[i];
  EXPECT_LT(std::fabs(product / 1000.0), 0.15);  // five standard deviations of a correlation of nothing
}

// ---- embedding and position ----------------------------------------------------------------------------------------

TEST(Embedding, ForwardTakesRows) {
  for (const DType table_type : float_types())
    for (const DType t : float_types()) {
      const std::int64_t rows = 301, width = 77, vocabulary = 53;
      const Values ids = random_ids(rows, 6, 0, vocabulary), table = random_values(table_type, vocabulary * width, 7);
      const DeviceTensor id(DType::i64, {rows}, ids), weights(table_type, {vocabulary, width}, table);
      const DeviceTensor out(t, {7, 43, width});
      run([&] { backend().run(op::EmbeddingForward{.ids = id, .table = weights, .out = out}); });
      Values reference;
      for (const double i : ids)
        for (std::int64_t c = 0; c < width; ++c)
          reference.push_back(rounded(t, table[static_cast<std::size_t>(static_cast<std::int64_t>(i) * width + c)]));
      EXPECT_EQ(out.read(), reference) << name_of(table_type) << " to " << name_of(t);
    }
}

TEST(Embedding, BackwardAddsRows) {
  for (const DType table_type : float_types())
    for (const DType t : float_types())
      // Many rows of one id; ids that no row has; rows of the table that few stretches of the ids name.
      for (const auto& [rows, width, vocabulary] : {std::array<std::int64_t, 3>{5, 3, 37},
                                                    {5, 3, 1001},
                                                    {700, 77, 37},
                                                    {700, 77, 1001},
                                                    {300, 768, 37},
                                                    {300, 768, 1001},
                                                    {70001, 2, 60000}})
        for (const bool accumulate : {false, true}) {
          const Values ids = random_ids(rows, 8, 0, vocabulary), dout = random_values(t, rows * width, 9);
          const Values start = random_values(table_type, vocabulary * width, 10);
          const DeviceTensor id(DType::i64, {rows}, ids), d(t, {rows, width}, dout);
          const DeviceTensor dtable(table_type, {vocabulary, width}, start);
          run([&] {
            backend().run(op::EmbeddingBackward{.ids = id, .dout = d, .dtable = dtable, .accumulate = accumulate});
          });
          Values reference = accumulate ? start : Values(start.size());
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < width; ++c)
              reference[static_cast<std::size_t>(static_cast<std::int64_t>(ids[static_cast<std::size_t>(r)]) * width +
                                                 c)] += dout[static_cast<std::size_t>(r * width + c)];
          check("embedding_backward", table_type, dtable.read(), reference, tolerance_of(table_type, 1e-6));
        }
}

TEST(Embedding, RefusesAnIdOutsideTheTable) {
  if (std::string(backend().kind()) != "cpu") GTEST_SKIP() << "ids are on the device";
  const DeviceTensor ids(DType::i64, {3}, {0, 10, 1}), table(DType::f32, {10, 4}), out(DType::f32, {3, 4});
  std::string text;
  EXPECT_EQ(status_of([&] { backend().run(op::EmbeddingForward{.ids = ids, .table = table, .out = out}); }, &text),
            ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("id 10 at position 1"), std::string::npos) << text;
  EXPECT_EQ(status_of([&] {
              backend().run(op::EmbeddingBackward{.ids = ids, .dout = out, .dtable = table, .accumulate = true});
            }),
            ASSAY_INVALID_ARGUMENT);
}

TEST(Rotary, TableIsCosineAndSine) {
  const std::int64_t positions = 2049, pairs = 33;
  const DeviceTensor c(DType::f32, {positions, pairs}), s(DType::f32, {positions, pairs});
  run([&] { backend().run(op::RotaryTable{.cos = c, .sin = s, .theta = 10000.0}); });
  Values cosine, sine;
  for (std::int64_t t = 0; t < positions; ++t)
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(i) / (2.0 * pairs));
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  check("rotary_table", DType::f32, c.read(), cosine, 1e-7);
  check("rotary_table", DType::f32, s.read(), sine, 1e-7);
}

// Frequencies by the published programs' formulas: transformers' _compute_llama3_parameters and
// _compute_yarn_parameters in Python's numbers.
struct ScaledRotation {
  const char* name;
  double theta;
  compute::RotaryScaling scaling;
  std::array<double, 8> frequencies;
  double magnitude = 1;
};
using Scaling = compute::RotaryScalingKind;
constexpr ScaledRotation scaled_rotations[] = {
    {"linear",
     1e4,
     {.kind = Scaling::linear, .factor = 8},
     {0.125, 0.0395284707521047, 0.0125, 3.95284707521047e-3, 1.25e-3, 3.95284707521047e-4, 1.25e-4,
      3.95284707521047e-5}},
    {"llama3",
     5e5,
     {.kind = Scaling::llama3, .factor = 32, .original_positions = 64},
     {1, 0.0671330375110499, 0.0011751884665895, 0.000227895773038035, 4.41941738241592e-05, 8.57025548988148e-06,
      1.66196746779531e-06, 3.22293293037889e-07}},
    {"yarn",
     1e4,
     {.kind = Scaling::yarn, .factor = 8, .original_positions = 64, .beta_fast = 4, .beta_slow = 0.25},
     {1, 0.247052942200655, 0.05625, 0.0108703294568288, 0.00125, 0.000395284707521047, 0.000125, 3.95284707521047e-05},
     1.20794415416798},
    {"yarn, between pairs",
     1e4,
     {.kind = Scaling::yarn,
      .whole_pairs = false,
      .factor = 8,
      .original_positions = 64,
      .beta_fast = 4,
      .beta_slow = 0.25,
      .magnitude = 0.75},
     {1, 0.2946133883291, 0.056831345092132, 0.00648195976352374, 0.00125, 0.000395284707521047, 0.000125,
      3.95284707521047e-05},
     0.75}};

TEST(Rotary, AScaledTableHasThePublishedFrequencies) {
  const std::int64_t positions = 300, pairs = 8;
  for (const ScaledRotation& r : scaled_rotations) {
    SCOPED_TRACE(r.name);
    const DeviceTensor c(DType::f32, {positions, pairs}), s(DType::f32, {positions, pairs});
    run([&] { backend().run(op::RotaryTable{.cos = c, .sin = s, .theta = r.theta, .scaling = r.scaling}); });
    Values cosine, sine;
    for (std::int64_t t = 0; t < positions; ++t)
      for (const double frequency : r.frequencies) {
        cosine.push_back(r.magnitude * std::cos(static_cast<double>(t) * frequency));
        sine.push_back(r.magnitude * std::sin(static_cast<double>(t) * frequency));
      }
    check("rotary_table", DType::f32, c.read(), cosine, 1e-7);
    check("rotary_table", DType::f32, s.read(), sine, 1e-7);
  }
}

TEST(Rotary, RefusesScalingsThatCannotBe) {
  const DeviceTensor c(DType::f32, {4, 2}), s(DType::f32, {4, 2});
  const compute::RotaryScaling wrong[] = {{.kind = Scaling::linear, .factor = 0.5},
                                          {.kind = Scaling::llama3, .factor = 8},
                                          {.kind = Scaling::llama3, .original_positions = 8, .low = 4, .high = 4},
                                          {.kind = Scaling::yarn, .original_positions = 8, .beta_slow = 40}};
  for (const compute::RotaryScaling& scaling : wrong)
    EXPECT_EQ(status_of([&] { backend().run(op::RotaryTable{.cos = c, .sin = s, .theta = 100, .scaling = scaling}); }),
              ASSAY_INVALID_ARGUMENT);
}

TEST(Rotary, TurnsAdjacentPairsOfAStridedView) {
  for (const DType t : float_types())
    for (const bool inverse : {false, true})
      for (const auto& [batch, positions, heads, size] :
           {std::array<std::int64_t, 4>{1, 1, 1, 2}, {2, 9, 3, 10}, {2, 130, 4, 64}}) {
        const std::int64_t pairs = size / 2;
        const DeviceTensor c(DType::f32, {positions + 3, pairs}), s(DType::f32, {positions + 3, pairs});
        run([&] { backend().run(op::RotaryTable{.cos = c, .sin = s, .theta = 100.0}); });
        const Values cosine = c.read(), sine = s.read();
        const Shape shape = {batch, positions, 3 * heads, size};
        const DeviceTensor packed(t, shape, random_values(t, elements(shape), 11));
        const Tensor view = packed->slice(2, heads, heads);  // the keys of a packed buffer
        const Values before = packed.read(), x = packed.read(view);
        Values reference = x;
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()) / 2; ++i) {
          const std::size_t at = static_cast<std::size_t>(i / pairs / heads % positions * pairs + i % pairs);
          const std::size_t p = static_cast<std::size_t>(2 * i);
          const double turn = inverse ? -sine[at] : sine[at];
          reference[p] = x[p] * cosine[at] - x[p + 1] * turn;
          reference[p + 1] = x[p] * turn + x[p + 1] * cosine[at];
        }
        run([&] { backend().run(op::Rotary{.x = view, .cos = c, .sin = s, .inverse = inverse}); });
        check("rotary", t, packed.read(view), reference, tolerance_of(t, 1e-6));
        const Values after = packed.read();
        for (std::int64_t i = 0; i < elements(shape); ++i) {
          const std::int64_t head = i / size % (3 * heads);
          if (head >= heads && head < 2 * heads) continue;
          ASSERT_EQ(after[static_cast<std::size_t>(i)], before[static_cast<std::size_t>(i)]) << "outside the view";
        }
      }
}

TEST(Data, NothingAllocatesInASecondExecution) {
  for (const DType t : float_types()) {
    const DeviceTensor x(t, {2, 200, 6, 64}), y(t, {2, 200, 6, 64}), ids(DType::i64, {400});
    const DeviceTensor table(t, {50, 384}), rows(t, {400, 384}), c(DType::f32, {200, 32}), s(DType::f32, {200, 32});
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::Fill{.x = x, .value = 1.0}); }), 0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::Copy{.to = y, .from = x}); }), 0u);
    EXPECT_EQ(allocations_in_second(
                  [&] { backend().run(op::RandomNormal{.x = x, .seed = 1, .stream = 2, .mean = 0.0F, .std = 1.0F}); }),
              0u);
    EXPECT_EQ(allocations_in_second(
                  [&] { backend().run(op::RandomIntegers{.x = ids, .seed = 1, .stream = 2, .low = 0, .high = 50}); }),
              0u);
    EXPECT_EQ(
        allocations_in_second([&] { backend().run(op::EmbeddingForward{.ids = ids, .table = table, .out = rows}); }),
        0u);
    EXPECT_EQ(allocations_in_second([&] {
                backend().run(op::EmbeddingBackward{.ids = ids, .dout = rows, .dtable = table, .accumulate = true});
              }),
              0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::RotaryTable{.cos = c, .sin = s, .theta = 10000.0}); }), 0u);
    EXPECT_EQ(allocations_in_second([&] { backend().run(op::Rotary{.x = x, .cos = c, .sin = s}); }), 0u);
  }
}

}  // namespace

// ---- samples
op::Fill sample(Given& g, Kind<op::Fill>) { return {.x = g.room(sample_shape), .value = 2}; }
op::Copy sample(Given& g, Kind<op::Copy>) { return {.to = g.room(sample_shape), .from = g.numbers(sample_shape)}; }
op::RandomNormal sample(Given& g, Kind<op::RandomNormal>) {
  return {.x = g.room(sample_shape), .seed = 1, .stream = 2, .mean = 0, .std = 1};
}
op::RandomIntegers sample(Given& g, Kind<op::RandomIntegers>) {
  return {.x = g.room(sample_shape, DType::i64), .seed = 1, .stream = 2, .low = 0, .high = 10};
}
op::EmbeddingForward sample(Given& g, Kind<op::EmbeddingForward>) {
  return {.ids = g.ids(6, 5), .table = g.numbers({5, 8}), .out = g.room(sample_shape)};
}
op::EmbeddingBackward sample(Given& g, Kind<op::EmbeddingBackward>) {
  return {.ids = g.ids(6, 5), .dout = g.numbers(sample_shape), .dtable = g.room({5, 8})};
}
op::RotaryTable sample(Given& g, Kind<op::RotaryTable>) {
  return {.cos = g.room({6, 4}), .sin = g.room({6, 4}), .theta = 10'000};
}
op::Rotary sample(Given& g, Kind<op::Rotary>) {
  return {.x = g.numbers({2, 6, 3, 8}), .cos = g.numbers({6, 4}), .sin = g.numbers({6, 4})};
}

}  // namespace assay::conformance
