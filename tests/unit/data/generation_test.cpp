// Generations that are killed, given up, or asked for by several processes at once.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "dataset_fixture.hpp"
#include "processes.hpp"

namespace assay::data {
namespace {

class Generation : public DatasetTest {
 protected:
  // Large enough that a generation can be caught at it: 32 MB in 16 shards.
  Generation() { parameters = {{128, 1000}, 16'000, 9, 16}; }

  // A process that stops in the middle of a generation; returns when it has.
  std::unique_ptr<Child> stopped_in_the_middle() const {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
    auto child = std::make_unique<Child>([&] {
      open(parameters, [&](std::uint64_t done, std::uint64_t) {
        if (done == 0) return;
        const char byte = 1;
        if (::write(ends[1], &byte, 1) != 1) ::_exit(98);
        for (;;) ::pause();  // the generating threads go on, but the manifest is this one's to write
      });
      return 0;
    });
    ::close(ends[1]);
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    return child;
  }
};

TEST_F(Generation, KilledLeavesNothingThatLooksFinishedAndTheNextOneClears) {
  stopped_in_the_middle()->kill();
  EXPECT_TRUE(names().contains("_generating"));
  EXPECT_FALSE(names().contains("_manifest.json"));
  // What a power cut may leave of a file besides.
  write(file("shard_0005.bin.partial"), "part");
  write(file("_manifest.json.partial"), "{");
  write(file("shard_0099.bin"), "of a larger generation");
  const auto set = open();
  EXPECT_TRUE(set->generated());
  expect_sound(*set, parameters);
  EXPECT_EQ(names().size(), 16u + 3);
  EXPECT_FALSE(names().contains("shard_0099.bin"));
  EXPECT_FALSE(names().contains("_generating"));
}

// The same at any other moment: killed a little later each time, until one comes through.
TEST_F(Generation, KilledAtAnyMoment) {
  int killed = 0;
  for (int delay_us = 0;; delay_us += 1 + delay_us / 2) {
    Child child([&] { return open()->generated() ? 0 : 1; });
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    const bool finished_before = std::filesystem::exists(file("_manifest.json"));
    child.kill();
    if (std::filesystem::exists(file("_manifest.json"))) {
      const auto set = open();
      EXPECT_FALSE(set->generated());
      expect_sound(*set, parameters);
      if (finished_before) break;
      std::filesystem::remove_all(folder());
    } else {
      ++killed;
    }
    ASSERT_LT(delay_us, 60'000'000);
  }
  EXPECT_GT(killed, 3);
}

TEST_F(Generation, KilledAfterTheManifestIsFinished) {
  open();
  write(file("_generating"), "left");
  EXPECT_FALSE(open()->generated());
  EXPECT_FALSE(names().contains("_generating"));
}

TEST_F(Generation, GivenUpByItsCallerIsCleared) {
  for (const std::uint64_t least : {0, 1}) {
    const Progress interrupt = [&](std::uint64_t done, std::uint64_t) {
      if (done >= least) throw std::runtime_error("interrupted");
    };
    EXPECT_THROW(open(parameters, interrupt), std::runtime_error);
    EXPECT_EQ(names(), (std::set<std::string>{"_lock"}));
  }
  EXPECT_TRUE(open()->generated());
}

TEST_F(Generation, OfSeveralProcessesOneGenerates) {
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(std::make_unique<Child>([&] {
      const auto set = open();
      std::vector<std::int64_t> expected(256);
      std::vector<std::int64_t> found(256);
      SyntheticSamples(parameters.shape, parameters.samples, parameters.seed).read(12345, expected);
      set->read(12345, found);
      return expected != found ? 50 : set->generated() ? 1 : 0;
    }));
  int generated = 0;
  for (const auto& child : children) {
    const int result = child->wait();
    EXPECT_TRUE(result == 0 || result == 1) << result;
    generated += result;
  }
  EXPECT_EQ(generated, 1);
}

TEST_F(Generation, WaitersSeeProgressAndTakeOverFromAKilledOne) {
  const std::unique_ptr<Child> child = stopped_in_the_middle();
  std::vector<std::uint64_t> seen;
  const auto set = open(parameters, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 16'000u * 2048);
    EXPECT_LE(done, total);
    if (seen.size() == 2) child->kill();
    seen.push_back(done);
  });
  EXPECT_GT(seen.size(), 2u);
  EXPECT_GT(*std::max_element(seen.begin(), seen.begin() + 2), 0u);
  EXPECT_TRUE(set->generated());
  expect_sound(*set, parameters);
}

}  // namespace
}  // namespace assay::data
