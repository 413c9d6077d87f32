// Buckets by hand: where they end, and when they are said to be ready.
#include <gtest/gtest.h>
#include <assay/parallel/gradient_average.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/parallel/replica_average.hpp>
#include <assay/train/optimizer.hpp>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "recorded_ranks.hpp"

namespace assay::train {
namespace {

// Groups of 64, 128 + 64, 100 (28 of gap) and 64 elements, in bf16 gradients.
ParameterSet small_set() {
  ParameterSet set({.gradient = compute::DType::bf16});
  set.add({{"a", {64}}});
  set.add({{"b", {128}}, {"c", {64}}});
  set.add({{"d", {100}}});
  set.add({{"e", {64}}});
  return set;
}

using Ranges = std::vector<ElementRange>;

TEST(GradientBuckets, EndWithTheGroupThatFillsThem) {
  const ParameterSet set = small_set();
  ASSERT_EQ(set.arena_elements(), 64 + 192 + 128 + 64);
  // First 128 bytes: a. Then 500 bytes: b and c are 384, with d 640.
  EXPECT_EQ(parallel::plan_buckets(set, {.first_bytes = 128, .bytes = 500}), (Ranges{{0, 64}, {64, 384}, {384, 448}}));
  // A group that is larger than a bucket stays whole.
  EXPECT_EQ(parallel::plan_buckets(set, {.first_bytes = 2, .bytes = 2}),
            (Ranges{{0, 64}, {64, 256}, {256, 384}, {384, 448}}));
  EXPECT_EQ(parallel::plan_buckets(set, {}), (Ranges{{0, 448}}));
}

TEST(GradientBuckets, EndAtMultiplesForShards) {
  ParameterSet set = small_set();
  EXPECT_THROW(parallel::plan_buckets(set, {.multiple = 128}), Error);
  set.pad_to(128);
  ASSERT_EQ(set.arena_elements(), 512);
  EXPECT_EQ(set.tail_elements(), 64);
  EXPECT_EQ(set.parameter_count(), 64 + 192 + 100 + 64);
  EXPECT_EQ(parallel::plan_buckets(set, {.first_bytes = 256, .bytes = 600, .multiple = 128}),
            (Ranges{{0, 128}, {128, 384}, {384, 512}}));
  // Less than one multiple is asked for.
  EXPECT_EQ(parallel::plan_buckets(set, {.first_bytes = 2, .bytes = 2, .multiple = 256}),
            (Ranges{{0, 256}, {256, 512}}));
  EXPECT_EQ(parallel::shard_of({128, 384}, 1, 4), (ElementRange{192, 256}));
}

TEST(GradientBuckets, OfLessThanTheFirstOnesSizeAreAllAlike) {
  ParameterSet set = small_set();
  EXPECT_EQ(parallel::bucket_options(std::size_t{25} << 20).first_bytes, std::size_t{1} << 20);
  // A quarter of the arena's 896 bytes: 224 bytes are filled by a and b with c, by d, and by what is left.
  EXPECT_EQ(parallel::plan_buckets(set, parallel::bucket_options(224)), (Ranges{{0, 256}, {256, 384}, {384, 448}}));
  set.pad_to(128);
  EXPECT_EQ(parallel::plan_buckets(set, parallel::bucket_options(256, 0, 128)),
            (Ranges{{0, 128}, {128, 256}, {256, 384}, {384, 512}}));
}

// 16 groups of 64 elements, 2048 bytes. After the first bucket 1920 are left, and a bucket has half of what is left.
TEST(GradientBuckets, ShrinkTowardsTheEnd) {
  ParameterSet set({.gradient = compute::DType::bf16});
  for (int i = 0; i < 16; ++i) set.add({{"a" + std::to_string(i), {64}}});
  const parallel::BucketOptions halves{.first_bytes = 128, .bytes = 4096, .last_bytes = 128};
  EXPECT_EQ(parallel::plan_buckets(set, halves), (Ranges{{0, 64}, {64, 576}, {576, 832}, {832, 960}, {960, 1024}}));
  // None is larger than asked for, nor smaller than the last is to be, but the rest.
  EXPECT_EQ(parallel::plan_buckets(set, {.first_bytes = 128, .bytes = 512, .last_bytes = 256}),
            (Ranges{{0, 64}, {64, 320}, {320, 576}, {576, 832}, {832, 960}, {960, 1024}}));
  parallel::BucketOptions at_multiples = halves;
  at_multiples.multiple = 128;
  EXPECT_EQ(parallel::plan_buckets(set, at_multiples),
            (Ranges{{0, 128}, {128, 512}, {512, 768}, {768, 896}, {896, 1024}}));
  EXPECT_EQ(parallel::bucket_options(512).last_bytes, 512u) << "all alike where nothing is asked for";
  EXPECT_EQ(parallel::bucket_options(512, 256).last_bytes, 256u);
}

// Elements 0 to 448, of which b and c (64 to 256), or a and d (256 to 384), or all but e, are a rank's own.
TEST(GradientBuckets, LeaveOutWhatOneRankHas) {
  const ParameterSet set = small_set();
  const auto shared = [&](const Ranges& own, std::size_t bytes = 1 << 20) {
    return parallel::plan_shared_buckets(set, own, {.first_bytes = bytes, .bytes = bytes});
  };
  EXPECT_EQ(shared({}), (Ranges{{0, 448}}));
  EXPECT_EQ(shared({{64, 256}}), (Ranges{{0, 64}, {256, 448}}));
  EXPECT_EQ(shared({{64, 256}}, 2), (Ranges{{0, 64}, {256, 384}, {384, 448}}));
  EXPECT_EQ(shared({{0, 64}, {256, 384}}), (Ranges{{64, 256}, {384, 448}}));
  EXPECT_EQ(shared({{0, 384}}), (Ranges{{384, 448}}));
  EXPECT_EQ(shared({{384, 448}}), (Ranges{{0, 384}}));
  EXPECT_EQ(shared({{0, 448}}), (Ranges{}));
  EXPECT_THROW(shared({{256, 384}, {0, 64}}), Error) << "in descending order";
  EXPECT_THROW(shared({{64, 128}}), Error) << "a part of a group";
}

// What is updated beside the sums is all of the arena, also what needs none.
TEST(GradientBuckets, StretchesHoldWhatOneRankHas) {
  const ParameterSet set = small_set();
  const parallel::GradientAverage sums(set, {{0, 64}, {256, 384}}, 2);
  EXPECT_EQ(sums.pieces(), (Ranges{{64, 256}, {384, 448}}));
  EXPECT_EQ(sums.stretches(), (Ranges{{0, 384}, {384, 448}}));
  const parallel::GradientAverage last_is_own(set, {{64, 256}, {384, 448}}, 2);
  EXPECT_EQ(last_is_own.stretches(), (Ranges{{0, 256}, {256, 448}}));
}

TEST(GradientBuckets, PadToAMultipleThatIsThereAddsNothing) {
  ParameterSet set = small_set();
  set.pad_to(64);
  EXPECT_EQ(set.tail_elements(), 0);
  EXPECT_EQ(set.gradient_bytes(), 2u * 448u);
}

TEST(GradientBuckets, OfParametersLeaveGapsOut) {
  EXPECT_EQ(parallel::parameter_ranges(small_set()), (Ranges{{0, 64}, {64, 192}, {192, 256}, {256, 356}, {384, 448}}));
}

TEST(GradientBuckets, StartOnceEachAndInOrderWhenTheirGradientsAreThere) {
  ParameterSet set = small_set();
  set.pad_to(128);
  std::vector<std::size_t> started;
  parallel::ReadyBuckets ready(set, parallel::plan_buckets(set, {.first_bytes = 256, .bytes = 256, .multiple = 128}),
                               [&](std::size_t bucket) { started.push_back(bucket); });
  for (int step = 0; step < 2; ++step) {
    started.clear();
    ready.begin_step();
    ready.gradients_ready(1);  // a: 64 elements, half of the first bucket
    EXPECT_TRUE(started.empty());
    ready.gradients_ready(3);  // to 256
    EXPECT_EQ(started, (std::vector<std::size_t>{0, 1}));
    ready.gradients_ready(4);  // d, and the gap after it
    EXPECT_EQ(started, (std::vector<std::size_t>{0, 1, 2}));
    ready.gradients_ready(5);  // all, with the padding
    EXPECT_EQ(started, (std::vector<std::size_t>{0, 1, 2, 3}));
  }
}

// Of what is left the first half, by whole buckets; the last bucket is alone.
TEST(GradientAverage, AnUpdateFollowsTheBuckets) {
  using parallel::GradientAverage, parallel::AverageMode;
  ParameterSet set({.gradient = compute::DType::bf16});
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) set.add({{name, {64}}});
  const GradientAverage average(AverageMode::overlap_bucketed, set, 2);
  EXPECT_EQ(average.stretches(), (Ranges{{0, 256}, {256, 384}, {384, 448}, {448, 512}}));
  EXPECT_EQ(GradientAverage(AverageMode::overlap_bucketed, set, 1 << 20).stretches(), (Ranges{{0, 512}}));
  EXPECT_TRUE(GradientAverage(AverageMode::flat, set, 2).stretches().empty());
}

TEST(OptimizerRanges, StateIsOfTheirElementsAlone) {
  ParameterSet set = small_set();
  set.pad_to(256);
  Optimizer adamw({}, set);
  EXPECT_EQ(adamw.moment_bytes(), 2u * 4u * 512u);
  EXPECT_EQ(adamw.state_bytes(), 2u * 4u * 512u + Optimizer::scalar_bytes);
  adamw.restrict_to({{64, 128}, {256, 448}});
  EXPECT_EQ(adamw.moment_bytes(), 2u * 4u * 256u);
  adamw.restrict_to({});
  EXPECT_EQ(adamw.moment_bytes(), 0u);
}

TEST(OptimizerRanges, MustBeAlignedAndInside) {
  const ParameterSet set = small_set();
  Optimizer adamw({}, set);
  EXPECT_THROW(adamw.restrict_to({{0, 100}}), Error);
  EXPECT_THROW(adamw.restrict_to({{32, 64}}), Error);
  EXPECT_THROW(adamw.restrict_to({{0, 512}}), Error);
  EXPECT_THROW(adamw.restrict_to({{128, 64}}), Error);
}

// What the ranks of a replica do in the end to what all of them have.
class Within : public GradientExchange {
 public:
  explicit Within(std::function<void()> finish) : finish_(std::move(finish)) {}
  void begin_step() override {}
  GradientListener* listener() override { return nullptr; }
  void finish() override { finish_(); }

 private:
  std::function<void()> finish_;
};

// Ranks of a replica that reduce all gradients, in two stretches, the first one within backward.
class Reducing final : public Within {
 public:
  explicit Reducing(std::vector<ElementRange> stretches)
      : Within([this] { reduced(4); }), stretches_(std::move(stretches)) {}
  bool announce_to(GradientListener& listener) override {
    listener_ = &listener;
    return true;
  }
  const std::vector<ElementRange>& stretches() const override { return stretches_; }
  void finish_stretch(std::size_t index) override {
    if (index == 1) reduced(4);
  }
  void reduced(ParameterSet::Id end) { listener_->gradients_ready(end); }

 private:
  std::vector<ElementRange> stretches_;
  GradientListener* listener_ = nullptr;
};

using Calls = std::vector<std::pair<std::ptrdiff_t, std::size_t>>;

TEST(ReplicaAverage, TakesWhatIsSummedWithinAReplicaLast) {
  ParameterSet set({.gradient = compute::DType::f32});
  for (const char* name : {"a", "b", "c", "norm"}) set.add({{name, {64}}});
  std::vector<float> gradients(256);
  set.bind(nullptr, nullptr, gradients.data());
  test::RecordedRanks ranks(1);
  Calls before;  // the ranks of the replica have met
  Within within([&] { before = ranks.calls_of(0, gradients.data()); });
  parallel::ReplicaAverage average(set, 256, {192, 256}, &within);
  average.use(&ranks.rank(0));
  for (int step = 0; step < 2; ++step) {
    const std::size_t earlier = static_cast<std::size_t>(step) * 4;
    average.begin_step();
    average.listener()->gradients_ready(2);
    EXPECT_EQ(ranks.calls_of(0, gradients.data()).size(), earlier + 2) << "beside the rest of backward";
    average.listener()->gradients_ready(4);
    EXPECT_EQ(ranks.calls_of(0, gradients.data()).size(), earlier + 3) << "but for the norm, which is no sum yet";
    average.finish();
    EXPECT_EQ(before.size(), earlier + 3);
  }
  EXPECT_EQ(ranks.calls_of(0, gradients.data()),
            (Calls{{0, 64}, {64, 64}, {128, 64}, {192, 64}, {0, 64}, {64, 64}, {128, 64}, {192, 64}}));
}

TEST(ReplicaAverage, TakesEachBucketWhenItIsReady) {
  ParameterSet set({.gradient = compute::DType::f32});
  for (const char* name : {"a", "b", "c"}) set.add({{name, {64}}});
  std::vector<float> gradients(192);
  set.bind(nullptr, nullptr, gradients.data());
  test::RecordedRanks ranks(1);
  parallel::ReplicaAverage average(set, 256);
  average.use(&ranks.rank(0));
  average.begin_step();
  average.listener()->gradients_ready(1);
  EXPECT_EQ(ranks.calls_of(0, gradients.data()), (Calls{{0, 64}}));
  average.listener()->gradients_ready(2);
  average.finish();
  EXPECT_EQ(ranks.calls_of(0, gradients.data()), (Calls{{0, 64}, {64, 64}, {128, 64}}));
}

// The buckets of a stretch are averaged as its reductions end, and none has elements of the next stretch.
TEST(ReplicaAverage, FollowsTheReductionsOfAReplica) {
  ParameterSet set({.gradient = compute::DType::f32});
  for (const char* name : {"a", "b", "c", "d"}) set.add({{name, {64}}});
  std::vector<float> gradients(256);
  set.bind(nullptr, nullptr, gradients.data());
  test::RecordedRanks ranks(1);
  Reducing within({{0, 192}, {192, 256}});
  parallel::ReplicaAverage average(set, std::size_t{1} << 20, {}, &within);
  EXPECT_EQ(average.pieces(), (Ranges{{0, 192}, {192, 256}}));
  EXPECT_EQ(average.listener(), nullptr) << "backward's gradients are not the reduced ones";
  ASSERT_EQ(average.stretches(), (Ranges{{0, 192}, {192, 256}}));
  average.use(&ranks.rank(0));
  const Calls first{{0, 192}}, both{{0, 192}, {192, 64}};
  average.begin_step();
  within.reduced(2);
  EXPECT_TRUE(ranks.calls_of(0, gradients.data()).empty());
  within.reduced(3);
  EXPECT_EQ(ranks.calls_of(0, gradients.data()), first) << "beside the rest of backward";
  average.finish_stretch(0);
  EXPECT_EQ(ranks.calls_of(0, gradients.data()), first);
  average.finish_stretch(1);
  EXPECT_EQ(ranks.calls_of(0, gradients.data()), both);
  // Without stretches, as where a loss scale sees all gradients first.
  average.begin_step();
  within.reduced(3);
  average.finish();
  EXPECT_EQ(ranks.calls_of(0, gradients.data()), (Calls{{0, 192}, {192, 64}, {0, 192}, {192, 64}}));
}

TEST(ReplicaAverage, OfABackwardThatAnnouncesNothingIsAllAtTheEndAndOfSilenceNothing) {
  ParameterSet set({.gradient = compute::DType::f32});
  for (const char* name : {"a", "b"}) set.add({{name, {64}}});
  std::vector<float> gradients(128);
  set.bind(nullptr, nullptr, gradients.data());
  test::RecordedRanks ranks(1);
  parallel::ReplicaAverage average(set, std::size_t{1} << 20);
  for (comm::Communicator* const communicator : {&ranks.rank(0), static_cast<comm::Communicator*>(nullptr)}) {
    average.use(communicator);
    average.begin_step();
    average.finish();
    EXPECT_EQ(ranks.calls_of(0, gradients.data()), (Calls{{0, 128}}));
  }
}

}  // namespace
}  // namespace assay::train
