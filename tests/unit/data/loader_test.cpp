#include <gtest/gtest.h>
#include <assay/data/loader.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checked_feed.hpp"

namespace assay::data {
namespace {

constexpr SampleShape shape{5, 1000};

// Sample n consists of 100 n, 100 n + 1, ...: its tokens show whose they are.
class NumberedSamples : public SampleSource {
 public:
  explicit NumberedSamples(std::int64_t samples) : samples_(samples) {}
  SampleShape shape() const override { return data::shape; }
  std::int64_t samples() const override { return samples_; }
  void read(std::int64_t index, std::span<std::int64_t> out) const override {
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int64_t sample = index + static_cast<std::int64_t>(i) / 10;
      EXPECT_LT(sample, samples_);
      if (sample == broken) throw Error(ASSAY_INTERNAL, "sample " + std::to_string(sample) + " is broken");
      out[i] = 100 * sample + static_cast<std::int64_t>(i) % 10;
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(out.size() / 10); ++i)
      unexpected += remember(index + i, false) ? 0 : 1;
    ++reads;
    longest = std::max(longest.load(), static_cast<std::int64_t>(out.size() / 10));
  }
  void expect(std::int64_t index, std::int64_t count) const override {
    EXPECT_LE(index + count, samples_);
    for (std::int64_t i = 0; i < count; ++i) remember(index + i, true);
  }
  std::int64_t announced() const {
    const std::scoped_lock held(mutex_);
    return static_cast<std::int64_t>(expected_.size());
  }
  std::int64_t broken = -1;
  std::chrono::microseconds delay{0};
  mutable std::atomic<std::int64_t> reads = 0, longest = 0;
  mutable std::atomic<std::int64_t> unexpected = 0;  // samples read without an announcement

 private:
  // Puts a sample among the announced ones, or says whether it is one of them.
  bool remember(std::int64_t sample, bool announce) const {
    const std::scoped_lock held(mutex_);
    return announce ? expected_.insert(sample).second : expected_.count(sample) == 1;
  }
  mutable std::mutex mutex_;
  mutable std::set<std::int64_t> expected_;
  std::int64_t samples_;
};

class Batches {
 public:
  Batches(const SampleSource& source, const LoaderConfig& config)
      : config_(config), values_(static_cast<std::size_t>(Loader::batch_elements(shape, config.batch_size))) {
    auto feed = std::make_unique<CheckedFeed>(Loader::slots(config), Loader::batch_bytes(shape, config.batch_size));
    feed_ = feed.get();
    loader_ = std::make_unique<Loader>(source, config, std::move(feed));
  }
  Loader& loader() { return *loader_; }
  const CheckedFeed& feed() const { return *feed_; }

  // The samples of the next batch, which is checked for its layout.
  std::vector<std::int64_t> next() {
    loader_->next({values_.data(), compute::DType::i64, {static_cast<std::int64_t>(values_.size())}});
    std::vector<std::int64_t> samples;
    const auto batch = static_cast<std::size_t>(config_.batch_size);
    for (std::size_t row = 0; row < batch; ++row) {
      const std::int64_t sample = values_[5 * row] / 100;
      for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(values_[5 * row + i], 100 * sample + std::int64_t(i));
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(values_[5 * batch + 4 * row + i], 100 * sample + 5 + std::int64_t(i)) << "inputs";
        EXPECT_EQ(values_[9 * batch + 4 * row + i], 100 * sample + 6 + std::int64_t(i)) << "labels";
      }
      samples.push_back(sample);
    }
    return samples;
  }
  std::vector<std::vector<std::int64_t>> next(std::int64_t count) {
    std::vector<std::vector<std::int64_t>> batches;
    for (std::int64_t i = 0; i < count; ++i) batches.push_back(next());
    return batches;
  }

 private:
  LoaderConfig config_;
  std::vector<std::int64_t> values_;
  CheckedFeed* feed_ = nullptr;
  std::unique_ptr<Loader> loader_;
};

std::string refusal(const NumberedSamples& source, const LoaderConfig& config) {
  try {
    Loader(source, config, std::make_unique<CheckedFeed>(1, 1));
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
    return e.what();
  }
  return "accepted";
}

TEST(Loader, UnshuffledGoesThroughTheDataSet) {
  const NumberedSamples source(10);
  Batches batches(source, {.batch_size = 3, .shuffle = false});
  EXPECT_EQ(batches.loader().batches_per_epoch(), 3);
  const std::vector<std::vector<std::int64_t>> epoch{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}};
  EXPECT_EQ(batches.next(3), epoch);
  EXPECT_EQ(batches.next(3), epoch);  // sample 9 fills no batch
}

TEST(Loader, GivesTheSameBatchesWhateverTheWorkersAndThePrefetch) {
  const NumberedSamples source(1000);
  const auto taken = [&](int workers, std::int64_t prefetch) {
    return Batches(source, {.batch_size = 48, .workers = workers, .prefetch = prefetch, .seed = 3}).next(50);
  };
  const auto expected = taken(1, 1);
  EXPECT_EQ(taken(4, 1), expected);
  EXPECT_EQ(taken(3, 5), expected);
  EXPECT_EQ(taken(70, 2), expected);
}

TEST(Loader, EachEpochHasEachSampleOnceInAnotherOrder) {
  const NumberedSamples source(960);
  Batches batches(source, {.batch_size = 32, .workers = 2});
  std::set<std::vector<std::int64_t>> orders;
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> order;
    for (int step = 0; step < 30; ++step)
      for (const std::int64_t sample : batches.next()) order.push_back(sample);
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 960u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 4u);
}

// What a step trains on does not depend on how many ranks share it.
TEST(Loader, RanksShareEachStepWithoutOverlap) {
  const NumberedSamples source(1003);
  Batches alone(source, {.batch_size = 24, .seed = 5});
  std::vector<std::unique_ptr<Batches>> ranks;
  for (std::int64_t rank = 0; rank < 3; ++rank)
    ranks.push_back(std::make_unique<Batches>(
        source, LoaderConfig{.batch_size = 8, .rank = rank, .ranks = 3, .workers = 2, .seed = 5}));
  EXPECT_EQ(ranks[0]->loader().batches_per_epoch(), 41);
  for (int step = 0; step < 100; ++step) {
    std::vector<std::int64_t> together;
    for (const auto& rank : ranks)
      for (const std::int64_t sample : rank->next()) together.push_back(sample);
    EXPECT_EQ(together, alone.next()) << step;
  }
}

TEST(Loader, DropsWhatDoesNotFillABatchOnEveryRank) {
  const NumberedSamples source(23);
  std::multiset<std::int64_t> epoch;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Batches batches(source, {.batch_size = 4, .rank = rank, .ranks = 2});
    EXPECT_EQ(batches.loader().batches_per_epoch(), 2);
    for (const auto& batch : batches.next(2)) epoch.insert(batch.begin(), batch.end());
  }
  EXPECT_EQ(epoch.size(), 16u);
  EXPECT_EQ(std::set<std::int64_t>(epoch.begin(), epoch.end()).size(), 16u);
}

TEST(Loader, ReadsRunsAtOnceButNeverMoreThanAnEighthOfAStep) {
  const NumberedSamples source(4096);
  Batches(source, {.batch_size = 256}).next(16);
  EXPECT_EQ(source.longest, 32);
  source.longest = 0;
  Batches(source, {.batch_size = 256, .run_samples = 4}).next(16);
  EXPECT_EQ(source.longest, 4);
  source.longest = 0;
  Batches(source, {.batch_size = 7}).next(16);
  EXPECT_EQ(source.longest, 1);
}

// A sample is 80 bytes here, so that 4 MiB are more than all of them: two epochs are announced, of this rank.
TEST(Loader, AnnouncesToTheSourceWhatItWillRead) {
  const NumberedSamples source(960);
  Batches batches(source, {.batch_size = 16, .rank = 1, .ranks = 2, .run_samples = 8});
  batches.next();
  EXPECT_EQ(source.unexpected, 0);
  EXPECT_GE(source.announced(), 480);
  batches.loader().start_epoch(7);
  batches.next(90);
  EXPECT_EQ(source.unexpected, 0);
}

// With batches of more than 4 MiB one is announced ahead, not all that will come.
TEST(Loader, AnnouncesNoMoreThanAFewMegabytesAhead) {
  const NumberedSamples source(1'000'000);
  Batches batches(source, {.batch_size = 60'000, .prefetch = 1});
  batches.next();
  // What its two slots hold, and the one ahead.
  EXPECT_LE(source.announced(), 3 * 60'000);
  EXPECT_EQ(source.unexpected, 0);
}

TEST(Loader, StartEpochDropsWhatWasReadAheadOfAnother) {
  const NumberedSamples source(100);
  const LoaderConfig config{.batch_size = 10, .workers = 3, .prefetch = 4, .seed = 8};
  Batches straight(source, config);
  const auto all = straight.next(50);  // epochs 0 to 4
  const auto epoch = [&](int number) {
    return std::vector<std::vector<std::int64_t>>(all.begin() + 10 * number, all.begin() + 10 * (number + 1));
  };
  Batches batches(source, config);
  batches.loader().start_epoch(3);
  EXPECT_EQ(batches.next(10), epoch(3));
  batches.loader().start_epoch(1);
  batches.next(4);
  batches.loader().start_epoch(1);
  EXPECT_EQ(batches.next(10), epoch(1));
  EXPECT_EQ(batches.next(10), epoch(2));
  batches.next(3);
  batches.loader().start_epoch(0);
  EXPECT_EQ(batches.next(10), epoch(0));
  EXPECT_THROW(batches.loader().start_epoch(-1), Error);
}

TEST(Loader, StartEpochKeepsWhatWasReadAheadOfIt) {
  const NumberedSamples source(60);
  Batches batches(source, {.batch_size = 10, .prefetch = 3, .run_samples = 1});
  batches.loader().start_epoch(0);
  batches.next(6);
  batches.loader().start_epoch(1);
  batches.next(6);
  batches.loader().take_totals();
  // Two epochs and the read-ahead of a third, nothing twice.
  EXPECT_LE(source.reads, 2 * 60 + 4 * 10);
}

TEST(Loader, SendsAheadWhatIsReady) {
  const NumberedSamples source(1000);
  Batches batches(source, {.batch_size = 10, .workers = 2, .prefetch = 3});
  batches.next();
  // The workers fill three more while nothing is asked for; the next call sends them all.
  while (source.reads < 40) std::this_thread::yield();
  while (batches.feed().sent() < 4) batches.next();
  EXPECT_EQ(batches.feed().delivered, batches.feed().reclaimed + 1);
}

TEST(Loader, RethrowsAWorkersErrorAtTheBatchThatItConcerns) {
  NumberedSamples source(100);
  source.broken = 57;
  Batches batches(source, {.batch_size = 10, .workers = 3, .shuffle = false});
  batches.next(5);
  for (int again = 0; again < 2; ++again) {
    try {
      batches.next();
      ADD_FAILURE() << "was delivered";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "sample 57 is broken");
    }
  }
  EXPECT_EQ(batches.feed().delivered, 5u);
}

TEST(Loader, EndsAtAnyTime) {
  NumberedSamples source(1000);
  source.delay = std::chrono::microseconds(200);
  for (int taken = 0; taken < 20; ++taken) Batches(source, {.batch_size = 16, .workers = 4, .prefetch = 3}).next(taken);
  source.broken = 0;
  for (int i = 0; i < 5; ++i) Batches(source, {.batch_size = 16, .workers = 4, .shuffle = false});
}

TEST(Loader, TotalsCountSinceTheLastCall) {
  NumberedSamples source(1000);
  source.delay = std::chrono::milliseconds(2);
  Batches batches(source, {.batch_size = 10, .run_samples = 1});
  batches.next(3);
  const LoaderTotals totals = batches.loader().take_totals();
  EXPECT_EQ(totals.batches, 3);
  EXPECT_EQ(totals.bytes, 3u * 10 * 80);
  EXPECT_GT(totals.wait_ms, 0);
  EXPECT_GE(totals.read_ms, 3 * 10 * 2);
  EXPECT_EQ(batches.loader().take_totals().batches, 0);
}

TEST(Loader, MakesTheLastBatchAgain) {
  const NumberedSamples source(1000);
  const LoaderConfig config{.batch_size = 48, .rank = 1, .ranks = 2, .workers = 3, .prefetch = 4, .seed = 3};
  Loader loader(source, config, std::make_unique<CheckedFeed>(Loader::slots(config), Loader::batch_bytes(shape, 48)));
  EXPECT_THROW(loader.last_batch(source), Error);
  std::vector<std::int64_t> batch(static_cast<std::size_t>(Loader::batch_elements(shape, 48))), before;
  const auto next = [&] {
    before = batch;
    loader.next({batch.data(), compute::DType::i64, {static_cast<std::int64_t>(batch.size())}});
  };
  for (int i = 0; i < 25; ++i) {  // an epoch has ten
    next();
    EXPECT_EQ(loader.last_batch(source), batch) << i;
    EXPECT_NE(loader.last_batch(source), before) << i;
  }
  loader.start_epoch(7);
  EXPECT_EQ(loader.last_batch(source), batch) << "nothing has been delivered since";
  next();
  EXPECT_EQ(loader.last_batch(source), batch);
}

TEST(Loader, RefusesWhatCannotBe) {
  const NumberedSamples source(10);
  EXPECT_EQ(refusal(source, {.batch_size = 0}), "loader: batch_size is 0; expected at least 1");
  EXPECT_EQ(refusal(source, {.workers = 0}), "loader: workers is 0; expected at least 1");
  EXPECT_EQ(refusal(source, {.prefetch = 0}), "loader: prefetch is 0; expected at least 1");
  EXPECT_EQ(refusal(source, {.rank = 2, .ranks = 2}), "loader: rank is 2; expected less than the number of ranks, 2");
  EXPECT_EQ(refusal(source, {.batch_size = 6, .ranks = 2}),
            "loader: 10 samples are less than one batch of 6 for each of 2 ranks; remedy: more samples, or a smaller "
            "batch");
}

TEST(Loader, RefusesATensorThatIsNoBatch) {
  const NumberedSamples source(10);
  const LoaderConfig config{.batch_size = 2};
  Loader loader(source, config, std::make_unique<CheckedFeed>(Loader::slots(config), Loader::batch_bytes(shape, 2)));
  std::vector<std::int64_t> values(26);
  EXPECT_THROW(loader.next({values.data(), compute::DType::i64, {25}}), Error);
  EXPECT_THROW(loader.next({values.data(), compute::DType::f32, {26}}), Error);
  EXPECT_NO_THROW(loader.next({values.data(), compute::DType::i64, {2, 13}}));
}

TEST(Loader, DeviceMemoryIsOfWholeSlots) {
  EXPECT_EQ(Loader::batch_elements(shape, 2), 26);
  EXPECT_EQ(Loader::device_bytes(shape, {.batch_size = 2, .prefetch = 3}), 4u * 256);
  EXPECT_EQ(Loader::device_bytes(shape, {.batch_size = 3, .prefetch = 1}), 2u * 512);
}

}  // namespace
}  // namespace assay::data
