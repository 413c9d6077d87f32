// Data sets that are not what they should be: each is refused with its reason, and left as it was.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "dataset_fixture.hpp"

namespace assay::data {
namespace {

class DamagedShards : public DatasetTest {
 protected:
  DamagedShards() { open(); }
  void flip_a_bit(const std::string& name, std::streamoff at) const {
    std::fstream shard(file(name), std::ios::in | std::ios::out | std::ios::binary);
    shard.seekg(at);
    const auto byte = static_cast<char>(shard.get() ^ 4);
    shard.seekp(at);
    shard.put(byte);
  }
};

// Refused files are refused to root, too, when it acts as nobody.
class AsNobody {
 public:
  AsNobody() : root_(::geteuid() == 0) {
    if (root_ && ::seteuid(65534) != 0) ADD_FAILURE() << "cannot act as nobody";
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    if (root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool root_;
};

TEST_F(DamagedShards, CutShort) {
  std::filesystem::resize_file(file("shard_0001.bin"), 1000);
  const std::string text = refusal();
  EXPECT_SAYS(text, file("shard_0001.bin").string() + ": has 1000 bytes; the manifest says 85248: it was cut short");
  EXPECT_SAYS(text, "remedy: restore the file, or remove the folder");
  EXPECT_EQ(std::filesystem::file_size(file("shard_0001.bin")), 1000u);
}

TEST_F(DamagedShards, TooLong) {
  std::filesystem::resize_file(file("shard_0001.bin"), 90000);
  EXPECT_SAYS(refusal(), "has 90000 bytes; the manifest says 85248;");
}

TEST_F(DamagedShards, Missing) {
  std::filesystem::remove(file("shard_0002.bin"));
  EXPECT_SAYS(refusal(), "shard_0002.bin: is missing");
}

TEST_F(DamagedShards, AFolderInTheirPlace) {
  std::filesystem::remove(file("shard_0002.bin"));
  std::filesystem::create_directory(file("shard_0002.bin"));
  EXPECT_SAYS(refusal(), "shard_0002.bin: is no regular file");
}

TEST_F(DamagedShards, OneBitFlipped) {
  for (const std::streamoff at : {0, 85247, 40001}) {
    flip_a_bit("shard_0001.bin", at);
    const std::string text = refusal();
    EXPECT_SAYS(text, "shard_0001.bin: has the checksum (crc32c) ");
    EXPECT_SAYS(text, "its content was changed");
    flip_a_bit("shard_0001.bin", at);
    EXPECT_FALSE(open()->generated());
  }
}

// The check is remembered by more than what a tool for copying can restore.
TEST_F(DamagedShards, OneBitFlippedAndTheTimeSetBack) {
  struct stat before = {};
  ASSERT_EQ(::stat(file("shard_0000.bin").c_str(), &before), 0);
  // The kernel's clock of files ticks some hundred times a second.
  while (std::filesystem::last_write_time(file("shard_0000.bin")) ==
         (write(temporary_ / "clock", "x"), std::filesystem::last_write_time(temporary_ / "clock"))) {
  }
  flip_a_bit("shard_0000.bin", 77);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file("shard_0000.bin").c_str(), times, 0), 0);
  EXPECT_SAYS(refusal(), "its content was changed");
}

TEST_F(DamagedShards, CheckedAgainWhenTheMemoryOfItIsLostOrMadeUp) {
  for (const char* content : {"", "made up"}) {
    write(file("_verified"), content);
    std::uint64_t checked = 0;
    open(parameters, [&](std::uint64_t done, std::uint64_t) { checked = done; });
    EXPECT_EQ(checked, 256000u);
    EXPECT_SAYS(text(file("_verified")), "shard_0002.bin bytes 85248 mtime");
  }
}

TEST_F(DamagedShards, Unreadable) {
  std::filesystem::permissions(temporary_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(file("shard_0001.bin"), std::filesystem::perms::none);
  const AsNobody nobody;
  const std::string text = refusal(ASSAY_INTERNAL);
  EXPECT_SAYS(text, "shard_0001.bin: opening it to read: Permission denied; it must be readable to this user");
}

TEST_F(DamagedShards, ReadOnlyFolderIsReadAllTheSame) {
  std::filesystem::permissions(temporary_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder(), static_cast<std::filesystem::perms>(0555));
  {
    const AsNobody nobody;
    expect_sound(*open(), parameters);
  }
  flip_a_bit("shard_0001.bin", 5);
  const AsNobody nobody;
  EXPECT_SAYS(refusal(), "its content was changed");
}

TEST_F(DamagedShards, CutShortWhileInUse) {
  const auto set = open();
  std::filesystem::resize_file(file("shard_0002.bin"), 256 * 100);
  std::vector<std::int64_t> sample(32);
  set->read(667 + 99, sample);
  try {
    set->read(667 + 100, sample);
    ADD_FAILURE() << "was read";
  } catch (const Error& e) {
    EXPECT_SAYS(std::string(e.what()), "shard_0002.bin: ends at byte 25600, 256 bytes before it should");
  }
}

TEST_F(DamagedShards, ManifestOfOtherParameters) {
  DatasetParameters other = parameters;
  other.samples = 2000;
  other.seed = 43;
  const std::string before = text(file("_manifest.json"));
  const std::string said = refusal(ASSAY_INVALID_ARGUMENT, other);
  EXPECT_SAYS(said,
              "_manifest.json: is of a data set with other parameters: samples 1000 (expected 2000), seed 42 "
              "(expected 43)");
  EXPECT_SAYS(said, "remedy: name another folder");
  EXPECT_EQ(text(file("_manifest.json")), before);
  expect_sound(*open(), parameters);

  other = parameters;
  other.shape = {8, 101};
  other.shards = 0;
  EXPECT_SAYS(refusal(ASSAY_INVALID_ARGUMENT, other),
              "sequence_length 16 (expected 8), shards 3 (expected 1), vocab_size 100 (expected 101)");
}

TEST_F(DamagedShards, ManifestThatIsNone) {
  for (const char* content : {"", "{", "[]", "{}", R"({"format": 3})", "\xff\xfe"}) {
    write(file("_manifest.json"), content);
    EXPECT_SAYS(refusal(), "_manifest.json: is no manifest of a data set");
  }
  std::filesystem::remove(file("_manifest.json"));
  std::filesystem::create_directory(file("_manifest.json"));
  EXPECT_SAYS(refusal(ASSAY_INTERNAL), "_manifest.json: reading: Is a directory");
}

TEST_F(DamagedShards, ManifestOfAnotherVersion) {
  replace_in_manifest("\"version\": 1", "\"version\": 2");
  EXPECT_SAYS(refusal(), "has format version 2; expected 1");
}

TEST_F(DamagedShards, ManifestThatContradictsItself) {
  const std::string right = text(file("_manifest.json"));
  const auto said_with = [&](const char* what, const char* by) {
    write(file("_manifest.json"), right);
    replace_in_manifest(what, by);
    return refusal();
  };
  EXPECT_SAYS(said_with("85504", "85500"), "the entry of shard 0 is");
  EXPECT_SAYS(said_with("shard_0001.bin", "../shard.bin"), "the entry of shard 1 is");
  EXPECT_SAYS(said_with("\"crc32c\": \"", "\"crc32c\": \"xx"), "eight hexadecimal digits");
  EXPECT_SAYS(said_with("\"crc32c\"", "\"crc\""), "the entry of shard 0 is");
  EXPECT_SAYS(said_with("\"shards\": [", "\"shards\": [7,"), "lists 4 shards; expected 3");
  EXPECT_SAYS(said_with("\"parameters\": {", "\"parameters\": 5, \"other\": {"), "seed null (expected 42)");
  write(file("_manifest.json"), right);
  EXPECT_FALSE(open()->generated());
}

TEST_F(DamagedShards, ChecksumInTheManifestChanged) {
  std::string content = text(file("_manifest.json"));
  const std::size_t at = content.find("\"crc32c\": \"") + 11;
  content[at] = content[at] == '0' ? '1' : '0';
  write(file("_manifest.json"), content);
  EXPECT_SAYS(refusal(), "shard_0000.bin: has the checksum");
}

TEST_F(DamagedShards, AFileInTheFoldersPlace) {
  std::filesystem::remove_all(folder());
  write(folder(), "text");
  EXPECT_SAYS(refusal(), folder().string() + ": is a file; a data set needs a folder");
  EXPECT_EQ(text(folder()), "text");
}

TEST_F(DamagedShards, ShardsOfUnknownOriginAreNotTouched) {
  std::filesystem::remove(file("_manifest.json"));
  EXPECT_SAYS(refusal(), "but no _manifest.json, so it is unknown whose it is; remedy: name another folder");
  EXPECT_EQ(std::filesystem::file_size(file("shard_0001.bin")), 85248u);
}

TEST_F(DamagedShards, OtherFilesInTheFolderAreLeftAlone) {
  std::filesystem::remove_all(folder());
  std::filesystem::create_directory(folder());
  write(file("notes.txt"), "mine");
  EXPECT_TRUE(open()->generated());
  EXPECT_EQ(text(file("notes.txt")), "mine");
}

}  // namespace
}  // namespace assay::data
