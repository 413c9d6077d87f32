// A layer's experts over ranks against the same layer on one rank that has all tokens and all experts: outputs and
// gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <assay/compute/operations.hpp>
#include <assay/models/expert_travel.hpp>
#include <assay/parallel/expert_ranks.hpp>
#include <assay/train/step_recording.hpp>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cpu_device.hpp"
#include "gloo_ranks.hpp"

namespace assay::models {
namespace {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;
using test::CpuDevice;

struct Sizes {
  std::int64_t ranks, tokens, choices, experts, width, hidden;  // tokens: of a rank
  std::int64_t all_tokens() const { return ranks * tokens; }
};

using Floats = std::vector<float>;

// What the layer is given: of all ranks, one behind the other.
struct Inputs {
  Sizes sizes;
  Floats x, dy, weights, gate_up, down;  // [RN, d], [RN, d], [RN, k], [E, 2 f, d], [E, d, f]
  std::vector<std::int32_t> experts;     // [RN, k]
};

// `popularity` of each expert; 0: nobody goes there.
Inputs inputs_of(const Sizes& s, const std::vector<double>& popularity) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::int64_t n, float scale) {
    Floats x(static_cast<std::size_t>(n));
    for (float& value : x) value = scale * normal(random);
    return x;
  };
  Inputs in{.sizes = s};
  const float narrow = 1.0F / std::sqrt(static_cast<float>(s.width));
  in.x = draw(s.all_tokens() * s.width, 1), in.dy = draw(s.all_tokens() * s.width, 1);
  in.weights = draw(s.all_tokens() * s.choices, 1);
  in.gate_up = draw(s.experts * 2 * s.hidden * s.width, narrow);
  in.down = draw(s.experts * s.width * s.hidden, narrow);
  for (std::int64_t t = 0; t < s.all_tokens(); ++t) {
    std::vector<double> left = popularity;
    for (std::int64_t j = 0; j < s.choices; ++j) {
      std::discrete_distribution<std::int32_t> choose(left.begin(), left.end());
      in.experts.push_back(choose(random));
      left[static_cast<std::size_t>(in.experts.back())] = 0;
    }
  }
  return in;
}

struct Results {
  Floats y, dx, dweights, dgate_up, ddown;
};

// One expert after the other: rows [M, d] by offsets, and back.
class Experts {
 public:
  Experts(CpuDevice& device, const Sizes& s, std::int64_t experts, std::int64_t rows, const float* gate_up,
          const float* down)
      : b_(device.backend()),
        hidden_(s.hidden),
        gate_up(device.tensor(DType::f32, {experts, 2 * s.hidden, s.width})),
        down(device.tensor(DType::f32, {experts, s.width, s.hidden})),
        dgate_up(device.tensor(DType::f32, {experts, 2 * s.hidden, s.width})),
        ddown(device.tensor(DType::f32, {experts, s.width, s.hidden})),
        rows(device.tensor(DType::f32, {rows, s.width})),
        out(device.tensor(DType::f32, {rows, s.width})),
        dout(device.tensor(DType::f32, {rows, s.width})),
        drows(device.tensor(DType::f32, {rows, s.width})),
        packed(device.tensor(DType::f32, {rows, 2 * s.hidden})),
        dpacked(device.tensor(DType::f32, {rows, 2 * s.hidden})),
        h(device.tensor(DType::f32, {rows, s.hidden})),
        dh(device.tensor(DType::f32, {rows, s.hidden})) {
    b_.upload(this->gate_up, gate_up);
    b_.upload(this->down, down);
  }
  void forward(const Tensor& offsets, const Tensor& sources, const Tensor& weights) {
    b_.run(op::GroupedMatmul{.a = rows, .b = gate_up, .offsets = offsets, .c = packed, .transpose_b = true});
    b_.run(op::WeightedGatedForward{
        .gate = half(packed, 0), .up = half(packed, 1), .weights = weights, .sources = sources, .h = h});
    b_.run(op::GroupedMatmul{.a = h, .b = down, .offsets = offsets, .c = out, .transpose_b = true});
  }
  void backward(const Tensor& offsets, const Tensor& sources, const Tensor& weights, const Tensor& dweights) {
    b_.run(op::GroupedMatmul{.a = dout, .b = down, .offsets = offsets, .c = dh});
    b_.run(op::GroupedWeightGradient{.dy = dout, .x = h, .offsets = offsets, .dw = ddown});
    b_.run(op::WeightedGatedBackward{.gate = half(packed, 0),
                                     .up = half(packed, 1),
                                     .dh = dh,
                                     .weights = weights,
                                     .sources = sources,
                                     .dgate = half(dpacked, 0),
                                     .dup = half(dpacked, 1),
                                     .dweights = dweights});
    b_.run(op::GroupedWeightGradient{.dy = dpacked, .x = rows, .offsets = offsets, .dw = dgate_up});
    b_.run(op::GroupedMatmul{.a = dpacked, .b = gate_up, .offsets = offsets, .c = drows});
  }

 private:
  Tensor half(const Tensor& packed, std::int64_t which) const { return packed.slice(1, which * hidden_, hidden_); }
  compute::Backend& b_;
  std::int64_t hidden_;

 public:
  Tensor gate_up, down, dgate_up, ddown, rows, out, dout, drows;

 private:
  Tensor packed, dpacked, h, dh;
};

Results on_one_rank(const Inputs& in) {
  const Sizes& s = in.sizes;
  const std::int64_t n = s.all_tokens(), k = s.choices;
  CpuDevice device;
  auto& b = device.backend();
  const Tensor x = device.tensor(DType::f32, {n, s.width}, in.x), dy = device.tensor(DType::f32, {n, s.width}, in.dy);
  const Tensor weights = device.tensor(DType::f32, {n, k}, in.weights);
  const Tensor chosen = device.tensor(DType::i32, {n, k}, in.experts);
  const Tensor counts = device.tensor(DType::i32, {s.experts}), offsets = device.tensor(DType::i32, {s.experts + 1});
  const Tensor places = device.tensor(DType::i32, {n, k}), sources = device.tensor(DType::i32, {n * k});
  const Tensor y = device.tensor(DType::f32, {n, s.width}), dx = device.tensor(DType::f32, {n, s.width});
  const Tensor dweights = device.tensor(DType::f32, {n, k});
  Experts experts(device, s, s.experts, n * k, in.gate_up.data(), in.down.data());
  const auto step = [&] {
    b.run(op::GroupRows{.experts = chosen, .counts = counts, .offsets = offsets, .places = places, .sources = sources});
    b.run(op::GatherRows{.x = x, .sources = sources, .rows = experts.rows, .copies = k});
    experts.forward(offsets, sources, weights);
    b.run(op::CombineRows{.rows = experts.out, .places = places, .residual = x, .y = y});
    b.run(op::GatherRows{.x = dy, .sources = sources, .rows = experts.dout, .copies = k});
    experts.backward(offsets, sources, weights, dweights);
    b.run(op::CombineRows{.rows = experts.drows, .places = places, .residual = dy, .y = dx});
  };
  device.prepare(step);
  step();
  b.synchronize();
  return {device.values(y), device.values(dx), device.values(dweights), device.values(experts.dgate_up),
          device.values(experts.ddown)};
}

template <class T>
std::vector<T> part(const std::vector<T>& all, std::int64_t rank, std::int64_t ranks) {
  const auto n = static_cast<std::ptrdiff_t>(all.size()) / ranks;
  return {all.begin() + rank * n, all.begin() + (rank + 1) * n};
}

// One rank of several, with its buffers planned as a model's are. Of as many steps the results of the last one.
Results on_a_rank(const Inputs& in, double capacity_factor, comm::Communicator& communicator, int steps = 1) {
  const Sizes& s = in.sizes;
  const std::int64_t n = s.tokens, k = s.choices, rank = communicator.rank();
  const std::int64_t capacity = expert_capacity(n, k, s.ranks, capacity_factor);
  CpuDevice device;
  auto& b = device.backend();
  const auto own = [&](const auto& all) { return part(all, rank, s.ranks); };
  const Tensor x = device.tensor(DType::f32, {n, s.width}, own(in.x));
  const Tensor dy = device.tensor(DType::f32, {n, s.width}, own(in.dy));
  const Tensor weights = device.tensor(DType::f32, {n, k}, own(in.weights));
  const Tensor chosen = device.tensor(DType::i32, {n, k}, own(in.experts));
  const TokensByExpert tokens{.counts = device.tensor(DType::i32, {s.experts}),
                              .places = device.tensor(DType::i32, {n, k}),
                              .sources = device.tensor(DType::i32, {n * k})};
  const Tensor offsets = device.tensor(DType::i32, {s.experts + 1});
  const Tensor y = device.tensor(DType::f32, {n, s.width}), dx = device.tensor(DType::f32, {n, s.width});
  const Tensor dweights = device.tensor(DType::f32, {n, k}), own_dweights = device.tensor(DType::f32, {capacity});
  Experts experts(device, s, s.experts / s.ranks, capacity, own(in.gate_up).data(), own(in.down).data());

  train::BufferPlan plan;
  const ExpertTravelShape shape{
      .tokens = n, .choices = k, .experts = s.experts, .ranks = s.ranks, .width = s.width, .capacity = capacity};
  const ExpertTravel travel(shape, 0, plan, "experts.");
  const auto step_by = [&](compute::Backend& backend, train::ExpertExchange& ranks) {
    const ExpertTravel::Step step{backend, plan, ranks};
    backend.run(op::GroupRows{.experts = chosen,
                              .counts = tokens.counts,
                              .offsets = offsets,
                              .places = tokens.places,
                              .sources = tokens.sources});
    travel.finish_to_experts(step, travel.start_to_experts(step, x, weights, tokens), experts.rows);
    if (&backend == &b) experts.forward(travel.offsets(plan), travel.sources(plan), travel.weights(plan));
    travel.finish_to_tokens(step, travel.start_to_tokens(step, experts.out), tokens, x, y);
    travel.finish_gradient_to_experts(step, travel.start_gradient_to_experts(step, dy, tokens), experts.dout);
    if (&backend == &b)
      experts.backward(travel.offsets(plan), travel.sources(plan), travel.weights(plan), own_dweights);
    else  // the experts' last look at what they read
      for (const Tensor& used : {travel.offsets(plan), travel.sources(plan), travel.weights(plan)})
        backend.download(nullptr, used);
    const ExpertTravel::Tickets tickets = travel.start_gradient_to_tokens(step, experts.drows, own_dweights);
    travel.finish_weight_gradient(step, tickets, tokens, own_dweights, dweights);
    travel.finish_gradient_to_tokens(step, tickets, tokens, dy, dx);
    if (&backend != &b) backend.download(nullptr, travel.offsets(plan));  // which is looked at afterwards
  };
  train::plan_step(plan, nullptr, [&](compute::Backend& recorder) {
    train::RecordedExpertExchange recorded;
    step_by(recorder, recorded);
  });
  plan.bind(nullptr, device.take(plan.own_bytes()));
  parallel::ExpertRanks ranks(
      {.rank = rank, .ranks = s.ranks, .experts = s.experts, .rows = n * k, .capacity = capacity});
  device.prepare([&] { step_by(b, ranks); });
  ranks.use(&communicator);
  for (int i = 0; i < steps; ++i) step_by(b, ranks);
  b.synchronize();
  // Counted twice: by the ranks, and by those who have the experts.
  const std::vector<std::int32_t> counts = device.values<std::int32_t>(tokens.counts);
  const std::vector<std::int32_t>& agreed = ranks.counts(0);
  EXPECT_TRUE(std::equal(counts.begin(), counts.end(), agreed.begin() + rank * s.experts));
  EXPECT_EQ(std::accumulate(agreed.begin(), agreed.end(), std::int64_t{0}), s.all_tokens() * k);
  const std::vector<std::int32_t> ends = device.values<std::int32_t>(travel.offsets(plan));
  EXPECT_EQ(static_cast<std::uint64_t>(ends.back()) * static_cast<std::uint64_t>(steps),
            ranks.take_load().received_rows);
  return {device.values(y), device.values(dx), device.values(dweights), device.values(experts.dgate_up),
          device.values(experts.ddown)};
}

// Sums of the same terms, whose order a product may choose by its shape.
void expect_near(const Floats& got, const Floats& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  float most = 0;
  for (const float e : expected) most = std::max(most, std::fabs(e));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::fabs(got[i] - expected[i]), 2e-6F * std::max(most, 1.0F)) << what << ", element " << i;
}

void expect_same(const Inputs& in, double capacity_factor) {
  const Results whole = on_one_rank(in);
  const auto ranks = static_cast<std::int32_t>(in.sizes.ranks);
  test::on_ranks(ranks, [&](comm::Communicator& c, const assay_comm&) {
    const Results got = on_a_rank(in, capacity_factor, c, 2);
    const auto own = [&](const Floats& all) { return part(all, c.rank(), ranks); };
    const std::string rank = "rank " + std::to_string(c.rank()) + ", ";
    expect_near(got.y, own(whole.y), rank + "y");
    expect_near(got.dx, own(whole.dx), rank + "dx");
    expect_near(got.dweights, own(whole.dweights), rank + "dweights");
    expect_near(got.dgate_up, own(whole.dgate_up), rank + "dgate_up");
    expect_near(got.ddown, own(whole.ddown), rank + "ddown");
  });
}

TEST(ExpertTravel, RanksComputeWhatOneDoes) {
  for (const std::int64_t ranks : {1, 2, 4})
    expect_same(inputs_of({ranks, 37, 3, 8, 24, 20}, std::vector<double>(8, 1.0)), 2.5);
}

TEST(ExpertTravel, SkewedRouting) {
  for (const std::int64_t ranks : {2, 4})
    expect_same(inputs_of({ranks, 50, 2, 8, 16, 12}, {64, 32, 16, 8, 4, 2, 1, 1}), static_cast<double>(ranks));
}

// Of four ranks the first and the third have nothing to do, and all of what the others do is another's.
TEST(ExpertTravel, RanksThatReceiveNothing) {
  expect_same(inputs_of({4, 21, 2, 8, 16, 12}, {0, 0, 1, 1, 0, 0, 1, 0}), 4);
  expect_same(inputs_of({2, 9, 1, 4, 8, 8}, {0, 0, 0, 1}), 2);
}

TEST(ExpertTravel, OneTokenAndAllExperts) {
  expect_same(inputs_of({2, 1, 1, 2, 8, 8}, {1, 1}), 2);
  expect_same(inputs_of({2, 5, 4, 4, 8, 8}, {1, 1, 1, 1}), 1);
}

TEST(ExpertTravel, ACapacityThatDoesNotDoFailsOnEveryRank) {
  const Inputs in = inputs_of({2, 20, 1, 4, 8, 8}, {1, 0, 0, 0});
  test::on_ranks(2, [&](comm::Communicator& c, const assay_comm&) {
    try {
      (void)on_a_rank(in, 1.5, c);
      FAIL() << "rows beyond the capacity were dropped";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
      EXPECT_STREQ(e.what(),
                   "experts, layer 0: rank 0 would receive 40 rows, and there is room for 30; raise "
                   "capacity_factor to 2.00 or more: no row is dropped");
    }
  });
}

TEST(ExpertTravel, CapacityIsOfBalancedRoutingAndAtMostAll) {
  EXPECT_EQ(expert_capacity(100, 2, 4, 1), 200);
  EXPECT_EQ(expert_capacity(100, 2, 4, 1.251), 251);
  EXPECT_EQ(expert_capacity(100, 2, 4, 9), 800);
  EXPECT_THROW((void)expert_capacity(100, 2, 4, 0.9), Error);
}

}  // namespace
}  // namespace assay::models
