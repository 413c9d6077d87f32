// Data sets on disk: written once and used again, refused when they are damaged or another's, and a disk without room.
#include <sys/mount.h>

#include <fstream>

#include "encoder_decoder_sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string on_disk = "num_samples = 40\nnum_shards = 3\ndata_dir = \"data\"\n";
const std::set<std::string> whole_data_set{"_lock",          "_manifest.json", "_verified",
                                           "shard_0000.bin", "shard_0001.bin", "shard_0002.bin"};

class EncoderDecoderData : public EncoderDecoderSandbox {
 protected:
  json expect_refusal(const std::string& params, const std::vector<std::string>& parts) {
    const json record = run_badly(small(params));
    EXPECT_EQ(record["status"], "failed");
    EXPECT_EQ(record["stage"], "setup");
    for (const std::string& part : parts) EXPECT_PRED2(contains, record["reason"].get<std::string>(), part);
    return record;
  }
};

TEST_F(EncoderDecoderData, AreWrittenOnceAndAreWhatIsMadeInMemory) {
  const auto memory = run_well(small("num_samples = 40"));
  const auto first = run_well(small(on_disk));
  EXPECT_PRED2(contains, case_log(), "data: data set written");
  EXPECT_EQ(names_in("data"), whole_data_set);
  const auto written_at = fs::last_write_time(folder() / "data/shard_0001.bin");
  const auto second = run_well(small(on_disk));
  EXPECT_PRED2(contains, case_log(), "data: data set found");
  EXPECT_EQ(fs::last_write_time(folder() / "data/shard_0001.bin"), written_at);
  ASSERT_EQ(memory.size() + first.size() + second.size(), 3u);
  const json losses = memory[0]["step_metrics"]["epoch_loss"]["samples"];
  EXPECT_EQ(first[0]["step_metrics"]["epoch_loss"]["samples"], losses) << "to the bit";
  EXPECT_EQ(second[0]["step_metrics"]["epoch_loss"]["samples"], losses);
  EXPECT_GT(metric(second[0], "data_mb_per_s"), 0);
}

TEST_F(EncoderDecoderData, OfOtherParametersAreRefusedAndKept) {
  run_well(small(on_disk));
  const std::string before = text_of(folder() / "data/_manifest.json") + text_of(folder() / "data/shard_0002.bin");
  expect_refusal("num_samples = 44\nnum_shards = 3\ndata_dir = \"data\"",
                 {"setup: invalid argument: data/_manifest.json", "other parameters: samples 40 (expected 44)",
                  "name another folder"});
  EXPECT_EQ(text_of(folder() / "data/_manifest.json") + text_of(folder() / "data/shard_0002.bin"), before);
  EXPECT_EQ(names_in("data"), whole_data_set);
}

TEST_F(EncoderDecoderData, ThatAreDamagedAreRefused) {
  run_well(small(on_disk));
  const fs::path shard = folder() / "data/shard_0001.bin", manifest = folder() / "data/_manifest.json";
  const std::string content = text_of(shard), manifest_text = text_of(manifest);

  fs::resize_file(shard, content.size() - 1);
  expect_refusal(on_disk, {"data/shard_0001.bin: has " + std::to_string(content.size() - 1) + " bytes",
                           "it was cut short", "remedy: restore the file, or remove the folder"});

  std::string changed = content;
  changed[100] = static_cast<char>(changed[100] ^ 1);
  std::ofstream(shard, std::ios::binary) << changed;
  expect_refusal(on_disk, {"data/shard_0001.bin: has the checksum (crc32c)", "its content was changed"});

  std::ofstream(shard, std::ios::binary) << content;
  std::ofstream(manifest, std::ios::binary) << "{}";
  expect_refusal(on_disk, {"data/_manifest.json: is no manifest", "remedy"});

  std::ofstream(manifest, std::ios::binary) << manifest_text;
  run_well(small(on_disk));  // whole again
}

TEST_F(EncoderDecoderData, WithoutRoomAreNotBegun) {
  const json record = expect_refusal("num_samples = 1000000000000\nnum_shards = 1000\ndata_dir = \"data\"",
                                     {"setup: the workload failed: data: the data set wants 128000.0 GB", "free",
                                      "nothing was written", "Remedy: make room"});
  EXPECT_EQ(names_in("data"), (std::set<std::string>{"_lock"}));
  run_well(small(on_disk));  // in the same folder
}

// A file system of a megabyte or two; needs the right to mount.
class EncoderDecoderSmallDisk : public EncoderDecoderData {
 protected:
  void SetUp() override {
    fs::create_directory(folder() / "data");
    if (mount("assay-test", (folder() / "data").c_str(), "tmpfs", 0, "size=4m") != 0)
      GTEST_SKIP() << "mounting a small file system is not permitted here";
  }
  void TearDown() override { umount2((folder() / "data").c_str(), MNT_DETACH); }
};

TEST_F(EncoderDecoderSmallDisk, IsAskedForItsRoomFirst) {
  expect_refusal("dataset = \"full\"\ndata_dir = \"data\"",
                 {"data: the data set wants 30.0 GB", "its disk has 4.2 MB", "nothing was written"});
  EXPECT_EQ(names_in("data"), (std::set<std::string>{"_lock"}));
  run_well(small(on_disk));
}

}  // namespace
}  // namespace assay::test
