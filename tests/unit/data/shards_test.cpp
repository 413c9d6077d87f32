// Data sets that are as they should be: what lies in the folder, and what is read from it.
#include <assay/data/shards.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "crc32c.hpp"
#include "dataset_fixture.hpp"
#include "manifest.hpp"

namespace assay::data {
namespace {

using Shards = DatasetTest;

TEST_F(Shards, AreWrittenOnceAndReusedAfterwards) {
  const auto first = open();
  EXPECT_TRUE(first->generated());
  expect_sound(*first, parameters);
  EXPECT_EQ(names(), (std::set<std::string>{"_lock", "_manifest.json", "_verified", "shard_0000.bin", "shard_0001.bin",
                                            "shard_0002.bin"}));
  const auto written = std::filesystem::last_write_time(file("shard_0001.bin"));
  const auto second = open();
  EXPECT_FALSE(second->generated());
  EXPECT_EQ(std::filesystem::last_write_time(file("shard_0001.bin")), written);
  expect_sound(*second, parameters);
  EXPECT_EQ(second->bytes_read(), 1000u * 2 * 16 * 8);
}

TEST_F(Shards, HoldSourceThenTargetAsInt64) {
  open();
  std::vector<std::int64_t> sample(32);
  SyntheticSamples(parameters.shape, 1000, 42).read(334, sample);  // the first of the second shard: 334 + 333 + 333
  const std::string shard = text(file("shard_0001.bin"));
  EXPECT_EQ(shard.size(), 333u * 256);
  EXPECT_EQ(shard.substr(0, 256), std::string(reinterpret_cast<const char*>(sample.data()), 256));
}

TEST_F(Shards, AreDescribedByTheManifest) {
  open();
  const auto manifest = nlohmann::json::parse(text(file("_manifest.json")));
  EXPECT_EQ(manifest["version"], 1);
  EXPECT_EQ(
      manifest["parameters"],
      (nlohmann::json{{"samples", 1000}, {"sequence_length", 16}, {"vocab_size", 100}, {"seed", 42}, {"shards", 3}}));
  EXPECT_EQ(manifest["bytes"], 256000);
  ASSERT_EQ(manifest["shards"].size(), 3u);
  for (const auto& shard : manifest["shards"]) {
    const std::string content = text(file(shard["name"]));
    EXPECT_EQ(shard["bytes"], content.size());
    EXPECT_EQ(shard["crc32c"], crc_text(crc32c(0, content.data(), content.size())));
  }
}

TEST_F(Shards, AnyRangeCanBeReadAcrossTheirBorders) {
  parameters = {{3, 7}, 23, 5, 6};  // shards of 4, 4, 4, 4, 4, 3
  const auto set = open();
  const SyntheticSamples made(parameters.shape, 23, 5);
  for (std::int64_t first = 0; first < 23; ++first)
    for (std::int64_t count = 1; first + count <= 23; ++count) {
      std::vector<std::int64_t> expected(static_cast<std::size_t>(6 * count));
      std::vector<std::int64_t> found(expected.size());
      made.read(first, expected);
      set->read(first, found);
      EXPECT_EQ(found, expected) << first << " " << count;
    }
}

TEST_F(Shards, ReadTheSameWhenItWasAnnounced) {
  parameters = {{3, 7}, 23, 5, 6};
  const auto set = open();
  for (int again = 0; again < 2; ++again) {
    set->expect(0, 23);
    set->expect(22, 1);
    expect_sound(*set, parameters);
  }
  EXPECT_EQ(set->bytes_read(), 2u * 23 * 48);  // nothing is counted that is not read
}

TEST_F(Shards, AreOfAbout128MegabytesUnlessTheirNumberIsGiven) {
  const auto shards = [](std::int64_t samples, std::int64_t number) {
    return plan({{256, 8192}, samples, 1, number}).shards;  // of 4096 bytes a sample
  };
  EXPECT_EQ(shards(1, 0).size(), 1u);
  EXPECT_EQ(shards(46'000, 0).size(), 1u);       // 188 MB
  EXPECT_EQ(shards(47'000, 0).size(), 2u);       // 193 MB
  EXPECT_EQ(shards(7'324'218, 0).size(), 234u);  // 30 GB
  EXPECT_NEAR(static_cast<double>(shards(7'324'218, 0).front().bytes), 128e6, 1e6);
  EXPECT_EQ(shards(7'324'218, 5).size(), 5u);
  EXPECT_EQ(shards(12'000, 12'000).back().name, "shard_11999.bin");
}

TEST_F(Shards, TellTheirProgress) {
  std::vector<std::uint64_t> done;
  open(parameters, [&](std::uint64_t bytes, std::uint64_t total) {
    EXPECT_EQ(total, 256000u);
    done.push_back(bytes);
  });
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 256000u);
  done.clear();
  open(parameters, [&](std::uint64_t bytes, std::uint64_t) { done.push_back(bytes); });
  EXPECT_TRUE(done.empty());  // nothing is written, and the checksums are known to be right
}

TEST_F(Shards, RefuseParametersThatCannotBe) {
  EXPECT_SAYS(refusal(ASSAY_INVALID_ARGUMENT, {{0, 10}, 10, 0, 0}), "sequence_length is 0");
  EXPECT_SAYS(refusal(ASSAY_INVALID_ARGUMENT, {{10, 0}, 10, 0, 0}), "vocab_size is 0");
  EXPECT_SAYS(refusal(ASSAY_INVALID_ARGUMENT, {{10, 10}, 0, 0, 0}), "0 samples");
  EXPECT_SAYS(refusal(ASSAY_INVALID_ARGUMENT, {{10, 10}, INT64_MAX / 100, 0, 0}), "expected 1 to");
  EXPECT_SAYS(refusal(ASSAY_INVALID_ARGUMENT, {{10, 10}, 10, 0, 11}), "11 shards");
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

}  // namespace
}  // namespace assay::data
