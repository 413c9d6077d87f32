// The reference against the definition: attention written down plainly, and its gradients by differences.
#include "reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace attention {
namespace {

Head random_head(std::int64_t seq, std::int64_t head_dim, bool causal) {
  Head h{seq, head_dim, causal, 1 / std::sqrt(static_cast<double>(head_dim)), {}, {}, {}, {}};
  std::mt19937 bits(static_cast<unsigned>(100 * seq + head_dim));
  std::normal_distribution<float> normal;
  for (auto* matrix : {&h.q, &h.k, &h.v, &h.dout})
    for (std::int64_t i = 0; i < seq * head_dim; ++i) matrix->push_back(normal(bits));
  return h;
}

struct Point {
  std::vector<double> q, k, v;
};

// sum of dout * out over the queries.
double objective(const Head& h, const Point& o, const std::vector<std::int64_t>& queries) {
  const auto d = static_cast<std::size_t>(h.head_dim);
  double total = 0;
  for (const std::int64_t query : queries) {
    const auto i = static_cast<std::size_t>(query);
    const std::size_t visible = h.causal ? i + 1 : static_cast<std::size_t>(h.seq);
    std::vector<double> weight(visible);
    double sum = 0;
    for (std::size_t j = 0; j < visible; ++j) {
      double score = 0;
      for (std::size_t c = 0; c < d; ++c) score += o.q[i * d + c] * o.k[j * d + c];
      sum += weight[j] = std::exp(h.scale * score);
    }
    for (std::size_t j = 0; j < visible; ++j)
      for (std::size_t c = 0; c < d; ++c) total += weight[j] / sum * o.v[j * d + c] * double(h.dout[i * d + c]);
  }
  return total;
}

std::vector<double> gradient(const Head& h, std::vector<double> Point::*which,
                             const std::vector<std::int64_t>& queries) {
  constexpr double step = 1e-5;
  Point o{{h.q.begin(), h.q.end()}, {h.k.begin(), h.k.end()}, {h.v.begin(), h.v.end()}};
  std::vector<double> result;
  for (double& x : o.*which) {
    const double before = x;
    x = before + step;
    const double high = objective(h, o, queries);
    x = before - step;
    result.push_back((high - objective(h, o, queries)) / (2 * step));
    x = before;
  }
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-8) << i;
}

class AttentionGradients : public testing::TestWithParam<bool> {};

TEST_P(AttentionGradients, OfAllQueriesAreThoseByDifferences) {
  const Head h = random_head(7, 9, GetParam());
  const auto queries = spread_rows(h.seq, h.seq);
  const Reference r = reference_of(h, queries);
  expect_near(r.dq.value, gradient(h, &Point::q, queries));
  expect_near(r.dk.value, gradient(h, &Point::k, queries));
  expect_near(r.dv.value, gradient(h, &Point::v, queries));
}

TEST_P(AttentionGradients, OfSomeQueriesAreTheirsAlone) {
  const Head h = random_head(11, 3, GetParam());
  const std::vector<std::int64_t> queries{0, 4, 8};
  const Reference r = reference_of(h, queries);
  expect_near(r.dk.value, gradient(h, &Point::k, queries));
  expect_near(r.dv.value, gradient(h, &Point::v, queries));
  const std::vector<double> dq = gradient(h, &Point::q, queries);
  for (std::size_t row = 0; row < queries.size(); ++row)
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(r.dq.value[row * 3 + c], dq[static_cast<std::size_t>(queries[row]) * 3 + c], 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Mask, AttentionGradients, testing::Bool(),
                         [](const auto& param) { return std::string(param.param ? "Causal" : "Full"); });

TEST(AttentionReference, ACausalFirstQueryIsTheFirstValue) {
  const Head h = random_head(5, 4, true);
  const Reference r = reference_of(h, {0});
  for (std::size_t c = 0; c < 4; ++c) EXPECT_DOUBLE_EQ(r.out.value[c], double(h.v[c]));
  // One probability of 1, whatever the scores: no gradient, though its terms have a size.
  ASSERT_EQ(r.dq.value.size(), 4u) << "one query";
  for (const double x : r.dq.value) EXPECT_NEAR(x, 0, 1e-15);
  EXPECT_GT(r.dq.magnitude[0], 0);
  // Keys that the query does not see get nothing at all.
  EXPECT_GT(r.dv.magnitude[0], 0);
  for (std::size_t j = 1; j < 5; ++j) EXPECT_EQ(r.dv.magnitude[j], 0);
}

TEST(AttentionReference, TheFirstQueryOfADocumentIsItsFirstValue) {
  Head h = random_head(5, 4, true);
  h.documents = {2, 3};
  const Reference r = reference_of(h, {1, 2});
  for (std::size_t c = 0; c < 4; ++c) EXPECT_DOUBLE_EQ(r.out.value[4 + c], double(h.v[8 + c]));
  for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(r.dv.magnitude[j] > 0, j < 3) << "by both queries, key " << j;
}

// The product of dout and a value may come near 0, which hides the terms that cancelled in it.
TEST(AttentionReference, ACancelledProductKeepsTheSizeOfItsTerms) {
  Head h = random_head(1, 2, true);
  h.q = {1, 0}, h.k = {1, 0}, h.v = {3, 4}, h.dout = {4, -3};
  const Reference r = reference_of(h, {0});
  // Two terms of 12, of the product and of its mean once more.
  EXPECT_NEAR(r.dq.magnitude[0], 2 * std::sqrt(2 * 12.0 * 12.0) / std::sqrt(2.0), 1e-9);
}

TEST(AttentionReference, LargeScoresDoNotOverflow) {
  Head h = random_head(6, 8, false);
  for (float& x : h.q) x *= 1e4F;
  const Reference r = reference_of(h, {0, 5});
  ASSERT_EQ(r.out.value.size(), 2 * 8u) << "two queries";
  for (const double x : r.out.value) EXPECT_TRUE(std::isfinite(x));
}

TEST(AttentionReference, WithoutAGradientThereIsOnlyTheOutput) {
  Head h = random_head(6, 8, false);
  h.dout.clear();
  const Reference r = reference_of(h, {2, 3});
  EXPECT_EQ(r.out.value.size(), 16u);
  EXPECT_TRUE(r.dq.value.empty() && r.dk.value.empty() && r.dv.value.empty());
}

}  // namespace
}  // namespace attention
