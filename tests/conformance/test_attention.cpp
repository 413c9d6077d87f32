// Softmax and tiled attention against the matrix of all scores in float64.
#include <cmath>
#include <limits>

#include "attention_reference.hpp"
#include "masks.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::AttentionShape;

// ---- softmax -------------------------------------------------------------------------------------------------------
Values softmax(const Values& x, std::int64_t queries, std::int64_t keys, double scale, bool causal,
               std::int64_t window = 0) {
  Values y(x.size());
  for (std::size_t r = 0; r < x.size() / static_cast<std::size_t>(keys); ++r) {
    const std::int64_t row = static_cast<std::int64_t>(r) % queries;
    const std::int64_t hidden = window > 0 ? std::max<std::int64_t>(0, row + 1 + keys - queries - window) : 0;
    const std::size_t first = r * static_cast<std::size_t>(keys) + static_cast<std::size_t>(hidden);
    const std::size_t end =
        r * static_cast<std::size_t>(keys) + static_cast<std::size_t>(visible(row, queries, keys, causal));
    double high = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (std::size_t i = first; i < end; ++i) high = std::max(high, scale * x[i]);
    for (std::size_t i = first; i < end; ++i) sum += y[i] = std::exp(scale * x[i] - high);
    for (std::size_t i = first; i < end; ++i) y[i] /= sum;
  }
  return y;
}

const Shape score_shapes[] = {{1, 1}, {5}, {3, 7}, {2, 3, 16, 16}, {2, 17, 33}, {33, 17}, {2, 130, 257}, {2, 1000}};

TEST(Softmax, Forward) {
  for (const DType t : float_types())
    for (const Shape& shape : score_shapes)
      for (const bool causal : {false, true})
        for (const double scale : {0.125, 1.0, -0.5})
          for (const bool in_place : {false, true}) {
            const Values x = random_values(t, elements(shape), 1, 3.0, 8.0);
            const DeviceTensor x_there(t, shape, x), apart(t, shape);
            const DeviceTensor& y = in_place ? x_there : apart;
            run([&] {
              backend().run(
                  op::SoftmaxForward{.x = x_there, .y = y, .scale = static_cast<float>(scale), .causal = causal});
            });
            const std::int64_t queries = shape.size() > 1 ? shape[shape.size() - 2] : 1;
            check("softmax_forward", t, y.read(), softmax(x, queries, shape.back(), scale, causal),
                  tolerance_of(t, 3e-6));
          }
}

TEST(Softmax, OfWindow) {
  for (const DType t : float_types())
    for (const Shape& shape : {Shape{2, 17, 33}, Shape{33, 17}, Shape{2, 130, 257}})
      for (const bool causal : {false, true})
        for (const std::int64_t window : {1, 9, 64}) {
          const Values x = random_values(t, elements(shape), 6, 3.0, 8.0);
          const DeviceTensor x_there(t, shape, x), y(t, shape);
          run([&] {
            backend().run(op::SoftmaxForward{.x = x_there, .y = y, .scale = 0.5F, .causal = causal, .window = window});
          });
          check("softmax_forward of a window", t, y.read(),
                softmax(x, shape[shape.size() - 2], shape.back(), 0.5, causal, window), tolerance_of(t, 3e-6));
        }
}

// A part of the queries: columns of what all have.
TEST(Softmax, OfPackedDocuments) {
  const AttentionKind kind(true, 0, 0.0, {}, {1, 20, 12, 33});
  const DocumentTensors documents(kind, 2, 33);
  const Shape shape{2, 2, 20, 33};  // the last 20 of 33 queries
  for (const DType t : float_types())
    for (const std::int64_t window : {0, 9}) {
      const Values x = random_values(t, elements(shape), 6, 3.0, 8.0);
      const DeviceTensor x_there(t, shape, x), y(t, shape);
      run([&] {
        backend().run(op::SoftmaxForward{.x = x_there,
                                         .y = y,
                                         .scale = 0.5F,
                                         .causal = true,
                                         .window = window,
                                         .first_keys = documents.get().first_keys.slice(1, 13, 20)});
      });
      Values seen = x;  // of keys that are not seen 0 is left of their exponential
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / 33;
        if (static_cast<std::int64_t>(i) % 33 < kind.first_key(row / 40, 13 + row % 20, 33)) seen[i] = -1e6;
      }
      check("softmax_forward of documents", t, y.read(), softmax(seen, 20, 33, 0.5, true, window),
            tolerance_of(t, 3e-6));
    }
}

TEST(Softmax, BackwardByDifferences) {
  const Shape shape = {3, 9};
  const Values x = random_values(DType::f32, 27, 2), dy = random_values(DType::f32, 27, 3);
  const Values expected = numerical_gradient(
      [&](const Values& p) {
        const Values y = softmax(p, 3, 9, 0.7, true);
        double total = 0.0;
        for (std::size_t i = 0; i < y.size(); ++i) total += y[i] * dy[i];
        return total;
      },
      x);
  const DeviceTensor y(DType::f32, shape, softmax(x, 3, 9, 0.7, true)), dx(DType::f32, shape, dy);
  run([&] { backend().run(op::SoftmaxBackward{.y = y, .dy = dx, .dx = dx, .scale = 0.7F}); });
  check("softmax_backward by differences", DType::f32, dx.read(), expected, 2e-6);
}

TEST(Softmax, Backward) {
  for (const DType t : float_types())
    for (const Shape& shape : score_shapes) {
      const auto columns = static_cast<std::size_t>(shape.back());
      const Values y = rounded(t, softmax(random_values(t, elements(shape), 4), 1, shape.back(), 1.0, false));
      const Values dy = random_values(t, elements(shape), 5);
      Values expected(y.size());
      for (std::size_t r = 0; r < y.size() / columns; ++r) {
        double dot = 0.0;
        for (std::size_t c = 0; c < columns; ++c) dot += y[r * columns + c] * dy[r * columns + c];
        for (std::size_t c = 0; c < columns; ++c)
          expected[r * columns + c] = 0.25 * y[r * columns + c] * (dy[r * columns + c] - dot);
      }
      const DeviceTensor y_there(t, shape, y), dy_there(t, shape, dy), dx(t, shape);
      run([&] { backend().run(op::SoftmaxBackward{.y = y_there, .dy = dy_there, .dx = dx, .scale = 0.25F}); });
      // One row of one column has gradient y (dy - y dy), which is rounding alone.
      if (columns > 1) check("softmax_backward", t, dx.read(), expected, tolerance_of(t, 3e-6));
    }
}

// ---- attention -----------------------------------------------------------------------------------------------------
const AttentionSizes attention_sizes[] = {
    {1, 1, 1, 1, 8},     {2, 17, 17, 3, 8},  {1, 5, 5, 2, 13},     {1, 64, 64, 2, 64},   {2, 33, 257, 2, 40},
    {1, 200, 77, 1, 24}, {3, 7, 130, 1, 16}, {1, 300, 300, 1, 48}, {1, 97, 129, 1, 256}, {1, 530, 530, 1, 32},
};

// What cuDNN serves and is used for: 16-bit types alone, where they are run.
const AttentionSizes cudnn_sizes[] = {
    {1, 128, 128, 2, 16},  {2, 256, 256, 2, 64}, {1, 256, 256, 1, 80}, {1, 128, 128, 2, 128},
    {1, 128, 128, 1, 256}, {1, 257, 257, 2, 64}, {1, 257, 257, 1, 80}, {1, 257, 257, 1, 128},
    {1, 192, 192, 2, 64},  {1, 200, 256, 2, 64}, {1, 2, 128, 1, 64},   {1, 300, 128, 1, 128},
};

// Whole blocks of cuDNN's: a CPU takes the same paths with others, sooner.
bool is_for_cudnn(const AttentionSizes& s) { return s.queries % 128 == 0 && s.keys % 128 == 0; }

// A query without keys has lse -infinity, which relative errors cannot compare.
void check_lse(DType t, const Values& got, const Values& expected) {
  ASSERT_EQ(got.size(), expected.size());
  Values finite_got, finite_expected;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(got[i], expected[i]);
    } else {
      finite_got.push_back(got[i]), finite_expected.push_back(expected[i]);
    }
  }
  // The scores are exact products of 16-bit numbers, summed in fp32, but cuDNN's exponentials are the hardware's.
  check("attention_forward lse", t, finite_got, finite_expected, by_cudnn(t) ? 1e-4 : 2e-6);
}

void test_attention(DType t, const AttentionSizes& s, const AttentionKind& kind, AttentionLayout layout,
                    float dropped = 0.0F) {
  SCOPED_TRACE(::testing::Message() << s << ' ' << name_of(t) << (kind.causal ? " causal" : "") << " window "
                                    << kind.window << " cap " << kind.soft_cap
                                    << (kind.sinks.empty() ? "" : " with sinks") << " documents "
                                    << kind.documents.size() << " layout " << int(layout) << " dropped " << dropped);
  const double scale = static_cast<float>(1.3 / std::sqrt(static_cast<double>(s.depth)));
  using enum AttentionSide;
  const Values q = random_values(t, s.query_count(), 10), k = random_values(t, s.key_count(), 11);
  const Values v = random_values(t, s.value_count(), 12), dout = random_values(t, s.out_count(), 13);
  const AttentionOperand q_there(t, s, queries, layout, &q), k_there(t, s, keys, layout, &k);
  const AttentionOperand v_there(t, s, values, layout, &v), dout_there(t, s, results, layout, &dout);
  const AttentionOperand out(t, s, results, layout), dq(t, s, queries, layout);
  const AttentionOperand dk(t, s, keys, layout), dv(t, s, values, layout);
  const DeviceTensor lse(DType::f32, {s.batch, s.heads, s.queries});
  const DeviceTensor step(DType::i64, {1}, {5});
  const DocumentTensors documents(kind, s.batch, s.queries);
  const AttentionShape shape{static_cast<float>(scale),
                             kind.causal,
                             {dropped, 17, 3, dropped > 0.0F ? step : Tensor{}},
                             kind.window,
                             static_cast<float>(kind.soft_cap),
                             documents.get()};
  const bool has_sinks = !kind.sinks.empty();
  const Shape sink_shape{has_sinks ? s.heads : 0};
  const DeviceTensor sinks(DType::f32, sink_shape, kind.sinks), dsinks(DType::f32, sink_shape);
  const Tensor none;
  const Values mask = mask_of({s.batch, s.heads, s.queries, s.keys}, shape.dropout);
  const auto forward = [&] {
    backend().run(op::AttentionForward{.q = q_there,
                                       .k = k_there,
                                       .v = v_there,
                                       .out = out,
                                       .lse = lse,
                                       .shape = shape,
                                       .sinks = has_sinks ? sinks.tensor() : none});
  };
  const auto backward = [&] {
    backend().run(op::AttentionBackward{.q = q_there,
                                        .k = k_there,
                                        .v = v_there,
                                        .out = out,
                                        .lse = lse,
                                        .dout = dout_there,
                                        .dq = dq,
                                        .dk = dk,
                                        .dv = dv,
                                        .shape = shape,
                                        .sinks = has_sinks ? sinks.tensor() : none,
                                        .dsinks = has_sinks ? dsinks.tensor() : none});
  };
  if (refused(t, s, kind, false)) {
    EXPECT_EQ(status_of([&] { run(forward); }), ASSAY_UNSUPPORTED);
    EXPECT_EQ(status_of([&] { run(backward); }), ASSAY_UNSUPPORTED);
    return;
  }
  run(forward);
  Attended expected = attend(s, q, k, v, scale, kind, mask);
  check("attention_forward", t, out.read(), expected.out, attention_tolerance(t, 6e-6));
  check_lse(t, lse.read(), expected.lse);
  if (refused(t, s, kind, true)) {
    EXPECT_EQ(status_of([&] { run(backward); }), ASSAY_UNSUPPORTED);
    return;
  }
  // The backward starts from what the forward stored, rounded as it is.
  expected.out = out.read();
  run(backward);
  const AttentionGradients g = attend_backward(s, q, k, v, expected, dout, scale, kind, mask);
  // One key leaves ds = p (dp - delta) = 0 but for rounding, which no relative error measures.
  // The slope of a cap is 1 less a square that may be near it.
  const double of_scores = attention_tolerance(t, kind.soft_cap > 0 ? 3e-5 : 1e-5);
  if (s.keys > 1 && !(kind.causal && kind.window == 1)) {
    check("attention_backward dq", t, dq.read(), g.q, of_scores);
    check("attention_backward dk", t, dk.read(), g.k, of_scores);
  }
  // All queries see the first keys of a causal head: sums of larger terms than most, and so of larger roundings of the
  // probabilities to 16 bits, which alone make 3.5e-3 of fp16 at 256 queries.
  const double of_first_keys = by_cudnn(t) && kind.causal ? 1.5 : 1;
  check("attention_backward dv", t, dv.read(), g.v, of_first_keys * attention_tolerance(t, 1e-5));
  if (has_sinks) check("attention_backward dsinks", DType::f32, dsinks.read(), g.sinks, by_cudnn(t) ? 1e-3 : 1e-5);
}

TEST(Attention, ForwardAndBackward) {
  for (const DType t : float_types())
    for (const AttentionSizes& s : attention_sizes)
      for (const bool causal : {false, true})
        for (const AttentionLayout layout : {AttentionLayout::packed, AttentionLayout::heads_outside})
          // Strides know no type, and each of cuDNN's plans takes a while to build.
          if (t == DType::f32 || layout == AttentionLayout::packed || (by_cudnn(t) && s.depth == 64))
            test_attention(t, s, causal, layout);
}

// The mask is that of dropout() on the matrix of all probabilities, but for cuDNN's own (test_attention_dropout.cpp).
TEST(Attention, DropsWhatDropoutDrops) {
  for (const DType t : float_types())
    for (const AttentionSizes& s : attention_sizes)
      for (const bool causal : {false, true})
        if (!by_cudnn(t)) test_attention(t, s, causal, AttentionLayout::packed, 0.1F);
}

// Decoder to encoder: no mask, and lengths of which no block is a divisor.
TEST(Attention, CrossAttention) {
  for (const DType t : float_types())
    for (const AttentionSizes& s : {AttentionSizes{2, 255, 256, 2, 32}, AttentionSizes{1, 256, 255, 1, 32},
                                    AttentionSizes{1, 7, 129, 2, 32}, AttentionSizes{1, 129, 7, 2, 32}})
      for (const float dropped : {0.0F, 0.1F})
        if (dropped == 0.0F || !by_cudnn(t)) test_attention(t, s, false, AttentionLayout::packed, dropped);
}

// Fewer heads of keys and values: groups of 2 to 7 heads, one group (whose gradients several threads of a CPU make by
// key tiles), lengths of which no block is a divisor, and, of fp32, dropout, whose mask is by the heads of queries.
TEST(Attention, OfGroupedQueries) {
  for (const DType t : float_types())
    for (const AttentionSizes& s : {AttentionSizes{2, 33, 33, 4, 16, 2}, AttentionSizes{1, 130, 130, 4, 32, 2},
                                    AttentionSizes{1, 64, 128, 6, 32, 3}, AttentionSizes{2, 65, 130, 3, 24, 1},
                                    AttentionSizes{1, 200, 200, 7, 16, 1}})
      for (const bool causal : {false, true}) {
        test_attention(t, s, causal, AttentionLayout::packed);
        if (t == DType::f32) test_attention(t, s, causal, AttentionLayout::heads_outside);
        if (!by_cudnn(t) && causal) test_attention(t, s, causal, AttentionLayout::packed, 0.1F);
      }
}

// Windows of one key, that end within blocks, at their ends and behind all keys; lengths of several blocks, so that
// some are left out whole, from either side; rectangles, and groups.
TEST(Attention, SlidingWindow) {
  struct {
    AttentionSizes sizes;
    std::int64_t window;
  } const cases[] = {{{1, 33, 33, 2, 16}, 1},        {{2, 130, 130, 4, 32, 2}, 64}, {{1, 530, 530, 2, 32}, 70},
                     {{1, 65, 130, 3, 24, 1}, 50},   {{1, 256, 256, 2, 64}, 128},   {{1, 256, 256, 1, 64}, 256},
                     {{1, 300, 300, 1, 128}, 1'000}, {{1, 128, 256, 2, 64}, 70}};
  for (const DType t : float_types())
    for (const auto& [sizes, window] : cases)
      for (const bool causal : {false, true})
        if (is_cuda() || !is_for_cudnn(sizes)) test_attention(t, sizes, {causal, window}, AttentionLayout::packed);
  test_attention(DType::f32, {1, 130, 130, 2, 16}, {true, 40}, AttentionLayout::packed, 0.1F);
}

// With caps that scores come near, and sinks below and above the scores; keys that no query's window reaches, and
// queries that see no key.
TEST(Attention, SoftCapAndSinks) {
  const auto sinks = [](std::int64_t heads) { return random_values(DType::f32, heads, 14, 1.0, 3.0); };
  for (const DType t : float_types())
    for (const AttentionSizes& s :
         {AttentionSizes{is_cuda() ? 2 : 1, 130, 130, 4, 32, 2}, AttentionSizes{1, 256, 256, 2, 64}})
      for (const bool causal : {false, true})
        for (const std::int64_t window : {0, 50}) {
          if (is_for_cudnn(s) && (!is_cuda() || (!causal && window == 0))) continue;
          test_attention(t, s, {causal, window, 1.5}, AttentionLayout::packed);
          test_attention(t, s, {causal, window, 0.0, sinks(s.heads)}, AttentionLayout::packed);
          if (causal) test_attention(t, s, {causal, window, 1.5, sinks(s.heads)}, AttentionLayout::packed);
        }
  for (const AttentionSizes& s : {AttentionSizes{1, 40, 10, 2, 16}, AttentionSizes{1, 10, 300, 2, 16}})
    test_attention(DType::f32, s, {true, 20, 1.5, sinks(2)}, AttentionLayout::packed, 0.1F);
}

// Latent attention's widths, 192 of queries and keys to 128, and wider values; no multiples of a vector, groups (whole,
// and by key tiles), rectangles, and whatever else changes scores or probabilities. cuDNN is asked for 192 to 128
// alone.
TEST(Attention, ValuesOfAnotherWidth) {
  const Values sinks = random_values(DType::f32, 2, 14, 1.0, 3.0);
  const std::int64_t tokens = is_cuda() ? 256 : 130;
  const AttentionSizes latent{1, tokens, tokens, 2, 192, 0, 128};
  for (const DType t : float_types()) {
    for (const AttentionLayout layout : {AttentionLayout::packed, AttentionLayout::heads_outside})
      test_attention(t, latent, true, layout);
    if (by_cudnn(t)) continue;
    for (const AttentionSizes& s :
         {AttentionSizes{2, 33, 33, 4, 24, 2, 13}, AttentionSizes{1, 65, 130, 3, 13, 1, 40},
          AttentionSizes{1, 130, 97, 2, 8, 0, 256}, AttentionSizes{1, 200, 200, 1, 96, 0, 64}})
      for (const bool causal : {false, true}) test_attention(t, s, causal, AttentionLayout::packed);
    test_attention(t, {2, 33, 33, 2, 24, 1, 16}, {true, 9, 1.5, sinks}, AttentionLayout::packed, 0.1F);
  }
}

// Documents of one token, of a whole sequence, and some that begin and end within blocks, at their ends, and behind
// some that are left out whole; with whatever else hides keys or changes scores.
TEST(Attention, OfPackedDocuments) {
  const Values sinks = random_values(DType::f32, 2, 14, 1.0, 3.0);
  const std::vector<std::int64_t> many = {1, 127, 1, 200, 96, 5, 100, 530}, few = {130, 1, 1, 63, 65};
  const std::vector<std::int64_t> of_256 = {64, 2, 126, 64, 256};
  for (const DType t : float_types()) {
    if (is_cuda())
      for (const AttentionSizes& s :
           {AttentionSizes{2, 256, 256, 4, 64, 2}, AttentionSizes{2, 256, 256, 2, 192, 0, 128}})
        test_attention(t, s, {true, 0, 0.0, {}, of_256}, AttentionLayout::packed);
    test_attention(t, {2, 530, 530, 2, 32, 1}, {true, 0, 0.0, {}, many}, AttentionLayout::packed);
    test_attention(t, {2, 530, 530, 2, 32}, {true, 60, 0.0, {}, many}, AttentionLayout::packed);
    test_attention(t, {2, 130, 130, 2, 16}, {true, 0, 1.5, sinks, few}, AttentionLayout::packed);
    if (!by_cudnn(t)) test_attention(t, {2, 130, 130, 2, 16}, {true, 0, 0.0, {}, few}, AttentionLayout::packed, 0.1F);
  }
}

TEST(Attention, ByCudnn) {
  if (!is_cuda()) GTEST_SKIP() << "the " << backend().kind() << " backend has no cuDNN";
  for (const DType t : {DType::bf16, DType::f16})
    for (const AttentionSizes& s : cudnn_sizes)
      for (const bool causal : {false, true}) test_attention(t, s, causal, AttentionLayout::packed);
}

TEST(Attention, BackwardByDifferences) {
  const AttentionSizes s{1, 5, 7, 2, 8};
  const double scale = 0.25;
  const Values q = random_values(DType::f32, 80, 20), k = random_values(DType::f32, 112, 21);
  const Values v = random_values(DType::f32, 112, 22), dout = random_values(DType::f32, 80, 23);
  const auto loss = [&](const Values& a, const Values& b, const Values& c) {
    return dot(attend(s, a, b, c, scale, true).out.data(), dout.data(), 80);
  };
  const DeviceTensor q_there(DType::f32, {1, 5, 2, 8}, q), k_there(DType::f32, {1, 7, 2, 8}, k);
  const DeviceTensor v_there(DType::f32, {1, 7, 2, 8}, v), dout_there(DType::f32, {1, 5, 2, 8}, dout);
  const DeviceTensor out(DType::f32, {1, 5, 2, 8}), lse(DType::f32, {1, 2, 5}), dq(DType::f32, {1, 5, 2, 8});
  const DeviceTensor dk(DType::f32, {1, 7, 2, 8}), dv(DType::f32, {1, 7, 2, 8});
  const AttentionShape shape{static_cast<float>(scale), true};
  run([&] {
    backend().run(
        op::AttentionForward{.q = q_there, .k = k_there, .v = v_there, .out = out, .lse = lse, .shape = shape});
    backend().run(op::AttentionBackward{.q = q_there,
                                        .k = k_there,
                                        .v = v_there,
                                        .out = out,
                                        .lse = lse,
                                        .dout = dout_there,
                                        .dq = dq,
                                        .dk = dk,
                                        .dv = dv,
                                        .shape = shape});
  });
  const char* const name = "attention_backward by differences";
  check(name, DType::f32, dq.read(), numerical_gradient([&](const Values& p) { return loss(p, k, v); }, q), 3e-6);
  check(name, DType::f32, dk.read(), numerical_gradient([&](const Values& p) { return loss(q, p, v); }, k), 3e-6);
  check(name, DType::f32, dv.read(), numerical_gradient([&](const Values& p) { return loss(q, k, p); }, v), 3e-6);
}

// Scores in the hundreds: without the running maximum their exponentials overflow.
TEST(Attention, StandsLargeScores) {
  const AttentionSizes s{1, 150, 300, 1, 16};
  const Values q = random_values(DType::f32, 150 * 16, 30, 0.0, 12.0);
  const Values k = random_values(DType::f32, 300 * 16, 31, 0.0, 12.0), v = random_values(DType::f32, 300 * 16, 32);
  const DeviceTensor q_there(DType::f32, {1, 150, 1, 16}, q), k_there(DType::f32, {1, 300, 1, 16}, k);
  const DeviceTensor v_there(DType::f32, {1, 300, 1, 16}, v), out(DType::f32, {1, 150, 1, 16});
  const DeviceTensor lse(DType::f32, {1, 1, 150});
  run([&] {
    backend().run(
        op::AttentionForward{.q = q_there, .k = k_there, .v = v_there, .out = out, .lse = lse, .shape = {0.5F, false}});
  });
  const Attended expected = attend(s, q, k, v, 0.5, false);
  // A score of a thousand is known to 6e-5, and the probabilities with it.
  check("attention_forward of large scores", DType::f32, out.read(), expected.out, 3e-4);
  check("attention_forward of large scores", DType::f32, lse.read(), expected.lse, 3e-4);
}

TEST(Attention, RefusesWhatItDoesNotServe) {
  const DeviceTensor q(DType::f32, {1, 4, 2, 8}), k(DType::f32, {1, 6, 2, 8}), odd(DType::f32, {1, 6, 2, 7});
  const DeviceTensor half(DType::f16, {1, 4, 2, 8}), lse(DType::f32, {1, 2, 4}), short_lse(DType::f32, {1, 2, 3});
  const DeviceTensor square(DType::f32, {1, 8, 2, 8});
  const auto call = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out, const Tensor& l) {
    return status_of([&] {
      backend().run(op::AttentionForward{.q = a, .k = b, .v = c, .out = out, .lse = l, .shape = {1.0F, true}});
    });
  };
  if (!is_cuda()) {
    EXPECT_EQ(call(half, half, half, half, lse), ASSAY_UNSUPPORTED);
  }
  const DeviceTensor integers(DType::i32, {1, 4, 2, 8});
  EXPECT_EQ(call(integers, integers, integers, integers, lse), ASSAY_UNSUPPORTED);
  EXPECT_EQ(call(q, k, odd, q, lse), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call(q, k, DeviceTensor(DType::f32, {1, 6, 2, 0}), DeviceTensor(DType::f32, {1, 4, 2, 0}), lse),
            ASSAY_INVALID_ARGUMENT)
      << "values without columns";
  EXPECT_EQ(call(q, k, q, q, lse), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(call(q, k, k, q, short_lse), ASSAY_INVALID_ARGUMENT);
  const auto of_kind = [&](const AttentionShape& shape, const Tensor& sinks) {
    return status_of([&] {
      backend().run(op::AttentionForward{.q = q, .k = k, .v = k, .out = q, .lse = lse, .shape = shape, .sinks = sinks});
    });
  };
  EXPECT_EQ(of_kind({1.0F, true, {}, -1}, {}), ASSAY_INVALID_ARGUMENT) << "a window below 0";
  EXPECT_EQ(of_kind({1.0F, true, {}, 0, -1.0F}, {}), ASSAY_INVALID_ARGUMENT) << "a cap below 0";
  EXPECT_EQ(of_kind({1.0F, true}, DeviceTensor(DType::f32, {3})), ASSAY_INVALID_ARGUMENT) << "a sink too many";
  const DeviceTensor first_keys(DType::i32, {1, 8}), starts(DType::i32, {3}), eight_sums(DType::f32, {1, 2, 8});
  const auto of_documents = [&](const Tensor& a, const Tensor& b, const compute::PackedDocuments& documents) {
    return status_of([&] {
      backend().run(op::AttentionForward{
          .q = a, .k = b, .v = b, .out = a, .lse = eight_sums, .shape = {.scale = 1.0F, .documents = documents}});
    });
  };
  EXPECT_EQ(of_documents(square, square, {first_keys, {}, 4}), ASSAY_INVALID_ARGUMENT) << "without their starts";
  EXPECT_EQ(of_documents(square, square, {first_keys, starts, 9}), ASSAY_INVALID_ARGUMENT) << "longer than all";
  EXPECT_EQ(of_documents(square, DeviceTensor(DType::f32, {1, 9, 2, 8}), {first_keys, starts, 4}),
            ASSAY_INVALID_ARGUMENT)
      << "more keys than queries";
  EXPECT_EQ(of_documents(square, square, {starts, starts, 4}), ASSAY_INVALID_ARGUMENT) << "of another shape";
  const DeviceTensor more_heads(DType::f32, {1, 6, 4, 8}), three_heads(DType::f32, {1, 4, 3, 8});
  EXPECT_EQ(call(q, more_heads, more_heads, q, lse), ASSAY_INVALID_ARGUMENT) << "more heads of keys than of queries";
  EXPECT_EQ(call(three_heads, k, k, three_heads, DeviceTensor(DType::f32, {1, 3, 4})), ASSAY_INVALID_ARGUMENT);
  const Tensor turned = square.tensor().transposed(1, 3);
  EXPECT_EQ(call(turned, turned, turned, square, DeviceTensor(DType::f32, {1, 2, 8})), ASSAY_UNSUPPORTED);
}

}  // namespace

// ---- samples
op::SoftmaxForward sample(Given& g, Kind<op::SoftmaxForward>) {
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
op::SoftmaxBackward sample(Given& g, Kind<op::SoftmaxBackward>) {
  return {.y = g.positive({2, 3, 6, 6}),
          .dy = g.numbers({2, 3, 6, 6}),
          .dx = g.room({2, 3, 6, 6}),
          .scale = 0.5F,
          .soft_cap = 8.0F,
          .sinks = g.numbers({3}),
          .lse = g.positive({2, 3, 6}),
          .dsinks = g.room({3})};
}

}  // namespace assay::conformance
