#include <assay/parallel/optimizer_shards.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <assay/models/decoder.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/workload/precision.hpp>
#include <string>

namespace assay::parallel {
namespace {

using assay::compute::DType;
using assay::models::DecoderConfig;
using assay::parallel::BucketOptions;
using assay::train::ElementRange;
using assay::train::Optimizer;
using assay::train::OptimizerConfig;
using assay::train::ParameterSet;
using assay::workload::PrecisionPolicy;

constexpr PrecisionPolicy fp32{};
constexpr PrecisionPolicy bf16_pure{DType::bf16, DType::bf16, DType::bf16, DType::bf16};

// The parameters of a model in an arena for `variant`, and what the ranks own of it.
struct Shared {
  Shared(StateSharing variant, std::int32_t ranks, const PrecisionPolicy& policy = fp32, DecoderConfig model = tiny())
      : set(policy) {
    add_decoder_parameters(set, model);
    set.pad_to(arena_multiple(variant, ranks));
    const BucketOptions options{.bytes = std::size_t{2} << 20, .multiple = arena_multiple(variant, ranks)};
    buckets = plan_buckets(set, options);
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      owned.push_back(owned_ranges(variant, buckets, set.arena_elements(), rank, ranks));
  }
  static DecoderConfig tiny() {
    DecoderConfig model;
    model.d_model = 128, model.d_ff = 512, model.layers = 2, model.heads = 4;
    return model;
  }
  std::int64_t state_bytes(std::size_t rank, const char* optimizer = "adamw") const {
    Optimizer o(OptimizerConfig{.name = optimizer}, set);
    o.restrict_to(owned[rank]);
    return static_cast<std::int64_t>(o.moment_bytes());
  }

  ParameterSet set;
  std::vector<ElementRange> buckets;
  std::vector<std::vector<ElementRange>> owned;  // by rank
};

TEST(Shards, OfTheBaselineIsTheWholeArenaOnEveryRank) {
  const Shared shared(StateSharing::baseline, 3);
  EXPECT_EQ(shared.set.tail_elements(), 0);
  ASSERT_EQ(shared.owned.size(), 3u);
  for (const auto& owned : shared.owned)
    EXPECT_EQ(owned, (std::vector<ElementRange>{{0, shared.set.arena_elements()}}));
}

TEST(Shards, OfBroadcastAreOneRangeEachInTheOrderOfTheRanks) {
  EXPECT_EQ(owned_ranges(StateSharing::broadcast, {}, 768, 0, 3), (std::vector<ElementRange>{{0, 256}}));
  EXPECT_EQ(owned_ranges(StateSharing::broadcast, {}, 768, 2, 3), (std::vector<ElementRange>{{512, 768}}));
}

TEST(Shards, OfZero1AreOneRangePerBucket) {
  const std::vector<ElementRange> buckets{{0, 128}, {128, 512}, {512, 640}};
  EXPECT_EQ(owned_ranges(StateSharing::zero1, buckets, 640, 0, 2),
            (std::vector<ElementRange>{{0, 64}, {128, 320}, {512, 576}}));
  EXPECT_EQ(owned_ranges(StateSharing::zero1, buckets, 640, 1, 2),
            (std::vector<ElementRange>{{64, 128}, {320, 512}, {576, 640}}));
}

struct Division {
  StateSharing variant;
  std::int32_t ranks;
};
std::string name_of(const testing::TestParamInfo<Division>& info) {
  return std::string(state_sharings.name_of(info.param.variant)) + "_" + std::to_string(info.param.ranks);
}

class Divided : public testing::TestWithParam<Division> {};

TEST_P(Divided, EveryElementHasOneOwner) {
  const auto [variant, ranks] = GetParam();
  const Shared shared(variant, ranks);
  std::vector<ElementRange> all;
  for (const auto& owned : shared.owned) all.insert(all.end(), owned.begin(), owned.end());
  std::sort(all.begin(), all.end(), [](const ElementRange& a, const ElementRange& b) { return a.begin < b.begin; });
  std::int64_t end = 0;
  for (const ElementRange& range : all) {
    EXPECT_EQ(range.begin, end);
    EXPECT_GT(range.elements(), 0);
    EXPECT_EQ(range.elements() % part_elements, 0);
    end = range.end;
  }
  EXPECT_EQ(end, shared.set.arena_elements());
}

TEST_P(Divided, StatePerRankIsTheBaselinesDividedToTheByteAndThePadding) {
  const auto [variant, ranks] = GetParam();
  for (const PrecisionPolicy& policy : {fp32, bf16_pure}) {
    const Shared shared(variant, ranks, policy);
    const std::int64_t baseline = Shared(StateSharing::baseline, ranks, policy).state_bytes(0);
    const auto state_size = static_cast<std::int64_t>(assay::compute::size_of(policy.state));
    EXPECT_EQ(baseline, 2 * state_size * 3'084'928);
    const std::int64_t padding = 2 * state_size * shared.set.tail_elements();
    EXPECT_LT(shared.set.tail_elements(), part_elements * ranks);
    for (std::size_t rank = 0; rank < shared.owned.size(); ++rank)
      EXPECT_EQ(shared.state_bytes(rank) * ranks, baseline + padding) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, Divided,
                         testing::Values(Division{StateSharing::broadcast, 1}, Division{StateSharing::broadcast, 2},
                                         Division{StateSharing::broadcast, 3}, Division{StateSharing::broadcast, 4},
                                         Division{StateSharing::zero1, 1}, Division{StateSharing::zero1, 2},
                                         Division{StateSharing::zero1, 3}, Division{StateSharing::zero1, 4},
                                         Division{StateSharing::zero1, 64}),
                         name_of);

// What README.md and the experiments' tables state.
TEST(Shards, ATinyModelOnTwoAndFourRanks) {
  for (const StateSharing variant : {StateSharing::broadcast, StateSharing::zero1}) {
    EXPECT_EQ(Shared(variant, 2).set.tail_elements(), 0);
    EXPECT_EQ(Shared(variant, 2).state_bytes(1), 12'339'712);
    EXPECT_EQ(Shared(variant, 4).set.tail_elements(), 128);
    EXPECT_EQ(Shared(variant, 4).state_bytes(3), 6'170'112);
  }
}

TEST(Shards, AnXlModelInBf16OnTwoAndFourRanks) {
  DecoderConfig model;
  model.d_model = 1600, model.d_ff = 6400, model.layers = 48, model.heads = 25;
  EXPECT_EQ(Shared(StateSharing::baseline, 2, bf16_pure, model).state_bytes(0), 7'992'940'800);
  EXPECT_EQ(Shared(StateSharing::zero1, 2, bf16_pure, model).state_bytes(0), 3'996'470'528);
  EXPECT_EQ(Shared(StateSharing::zero1, 4, bf16_pure, model).state_bytes(0), 1'998'235'392);
}

TEST(Shards, SgdWithoutMomentumHasNoStateToShare) {
  EXPECT_EQ(Shared(StateSharing::baseline, 2).state_bytes(0, "sgd"), 0);
  EXPECT_EQ(Shared(StateSharing::zero1, 2).state_bytes(0, "sgd"), 0);
}

// The reductions that overlap with backward must not leave a gradient out.
TEST(Shards, BucketsOfZero1CoverTheArenaAndDivideEvenly) {
  const Shared shared(StateSharing::zero1, 3);
  std::int64_t end = 0;
  for (const ElementRange& bucket : shared.buckets) {
    EXPECT_EQ(bucket.begin, end);
    EXPECT_EQ(bucket.elements() % (3 * part_elements), 0);
    end = bucket.end;
  }
  EXPECT_EQ(end, shared.set.arena_elements());
  EXPECT_GT(shared.buckets.size(), 2u);
}

}  // namespace
}  // namespace assay::parallel
