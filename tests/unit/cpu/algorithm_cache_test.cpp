// The file of measured algorithms: what survives a run, and that nothing wrong with it is ever an error.
#include <gtest/gtest.h>
#include <unistd.h>
#include <assay/plugin.hpp>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "common/algorithm_cache.hpp"
#include "support/variable.hpp"

namespace assay::compute {
namespace {

namespace fs = std::filesystem;
using assay::test::Variable;

CachedAlgorithm numbered(int n) { return {"engine " + std::to_string(n), 10.5 * n}; }

const TuningConditions conditions{"NVIDIA H200", "cublasLt 13.1.0", "580.95.05", "power 700 W"};

class AlgorithmCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / (std::string("assay_cache_") + test->name() + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file() const { return AlgorithmCache(folder_, "matmul", conditions).file(); }
  std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void overwrite(const std::string& with) const {
    const fs::path path = file();
    fs::create_directories(path.parent_path());
    std::ofstream(path) << with;
  }
  void expect(const std::string& key, int n) const {
    const auto found = AlgorithmCache(folder_, "matmul", conditions).find(key);
    ASSERT_TRUE(found) << key;
    EXPECT_EQ(found->algorithm, numbered(n).algorithm);
    EXPECT_DOUBLE_EQ(found->microseconds, numbered(n).microseconds);
  }

  fs::path folder_;
};

TEST_F(AlgorithmCacheTest, KeepsWhatWasStored) {
  {
    AlgorithmCache cache(folder_, "matmul", conditions);
    EXPECT_FALSE(cache.find("matmul x"));
    cache.store("matmul x", numbered(1));
    cache.store("matmul y", numbered(200));
    EXPECT_TRUE(cache.find("matmul x"));
  }
  expect("matmul x", 1);
  expect("matmul y", 200);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) files += entry.is_regular_file();
  EXPECT_EQ(files, 1u) << "no temporary file is left";
}

// Two hosts that share a home may have processes of one number: one's half-written file must not be the other's.
TEST_F(AlgorithmCacheTest, ItsTemporaryNameIsNoOneElses) {
  const fs::path of_this_number = file().string() + "." + std::to_string(getpid()) + ".new";
  fs::create_directories(of_this_number);
  { AlgorithmCache(folder_, "matmul", conditions).store("k", numbered(1)); }
  expect("k", 1);
  const fs::perms may = fs::status(file()).permissions();
  std::ofstream(folder_ / "usual") << "x";
  EXPECT_EQ(may, fs::status(folder_ / "usual").permissions()) << "as of any other file of this user";
}

TEST_F(AlgorithmCacheTest, WritesNothingWhenNothingIsNew) {
  { const AlgorithmCache cache(folder_, "matmul", conditions); }
  EXPECT_FALSE(fs::exists(folder_));
}

// What was timed under other conditions is timed anew, and what was timed under these is still there.
TEST_F(AlgorithmCacheTest, TellsWhatDecidesApart) {
  { AlgorithmCache(folder_, "matmul", conditions).store("k", numbered(1)); }
  for (auto TuningConditions::*part :
       {&TuningConditions::device, &TuningConditions::library, &TuningConditions::driver, &TuningConditions::limits}) {
    TuningConditions other = conditions;
    other.*part += " and another";
    AlgorithmCache cache(folder_, "matmul", other);
    EXPECT_FALSE(cache.find("k")) << other.*part;
    cache.store("k", numbered(2));
  }
  EXPECT_FALSE(AlgorithmCache(folder_, "attention", conditions).find("k"));
  expect("k", 1);
  // Names that differ only in what a file name cannot show share a file, but not what is in it.
  TuningConditions alike = conditions;
  alike.device = "NVIDIA/H200";
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(AlgorithmCache(folder_, "matmul", alike).find("k"));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("another device"), std::string::npos);
}

TEST_F(AlgorithmCacheTest, FixedReadsAndChangesNothing) {
  { AlgorithmCache(folder_, "matmul", conditions).store("k", numbered(1)); }
  const std::string before = text();
  {
    AlgorithmCache cache(folder_, "matmul", conditions, AlgorithmMode::fixed);
    EXPECT_TRUE(cache.find("k"));
    EXPECT_FALSE(cache.find("other"));
    cache.store("other", numbered(2));
    cache.forget("k");
  }
  EXPECT_EQ(text(), before);
}

TEST_F(AlgorithmCacheTest, FixedRefusesWhatIsNotThereWithTheRemedy) {
  const AlgorithmCache cache(folder_, "matmul", conditions, AlgorithmMode::fixed);
  try {
    cache.refuse_to_choose("matmul x");
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    for (const std::string& part : {std::string("matmul x: ASSAY_ALGORITHMS=fixed"), file().string(),
                                    std::string("580.95.05"), std::string("run the case once")})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
  for (const AlgorithmMode mode : {AlgorithmMode::kept, AlgorithmMode::anew})
    EXPECT_NO_THROW(AlgorithmCache(folder_, "matmul", conditions, mode).refuse_to_choose("matmul x"));
}

TEST_F(AlgorithmCacheTest, AnewReplacesWhatWasTimedAndKeepsTheRest) {
  {
    AlgorithmCache cache(folder_, "matmul", conditions);
    cache.store("k", numbered(1));
    cache.store("rest", numbered(3));
  }
  {
    AlgorithmCache cache(folder_, "matmul", conditions, AlgorithmMode::anew);
    EXPECT_FALSE(cache.find("k"));
    cache.store("k", numbered(2));
    EXPECT_TRUE(cache.find("k"));
  }
  expect("k", 2);
  expect("rest", 3);
}

TEST(AlgorithmBlob, GoesThroughText) {
  std::array<std::byte, 64> blob{};
  for (std::size_t i = 0; i < blob.size(); ++i) blob[i] = static_cast<std::byte>(200 + 3 * i);
  EXPECT_EQ(from_hex(to_hex(blob)), blob);
  const std::string good = to_hex(blob);
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", good.substr(2) + "xy", good.substr(2) + "AB"})
    EXPECT_FALSE(from_hex(bad)) << bad;
}

TEST_F(AlgorithmCacheTest, MergesWithAnotherWriter) {
  AlgorithmCache one(folder_, "matmul", conditions), two(folder_, "matmul", conditions);
  one.store("one", numbered(1));
  two.store("two", numbered(2));
  one.save();
  two.save();
  expect("one", 1);
  expect("two", 2);
  one.forget("two");
  one.save();
  expect("one", 1);
  EXPECT_FALSE(AlgorithmCache(folder_, "matmul", conditions).find("two"));
}

TEST_F(AlgorithmCacheTest, ReplacesACorruptFileAfterAWarning) {
  const auto entry = [&](const std::string& algorithm, const std::string& time, const std::string& driver) {
    return R"({"format": 2, "device": "NVIDIA H200", "library": "cublasLt 13.1.0", "driver": ")" + driver +
           R"(", "limits": "power 700 W", "algorithms": {"k": {"algorithm": )" + algorithm + R"(, "microseconds": )" +
           time + "}}}";
  };
  for (const std::string& bad :
       {std::string(), std::string("{\"format\": 2,"), std::string("[]"), std::string("{\"format\": 1}"),
        entry("1", "1.0", "580.95.05"), entry("\"\"", "1.0", "580.95.05"), entry("\"x\"", "-1.0", "580.95.05"),
        entry("\"x\"", "\"fast\"", "580.95.05"), entry("\"x\"", "1.0", "570.0")}) {
    SCOPED_TRACE(bad);
    ::testing::internal::CaptureStderr();
    overwrite(bad);
    ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    {
      AlgorithmCache cache(folder_, "matmul", conditions);
      EXPECT_FALSE(cache.find("k"));
      cache.store("fresh", numbered(7));
    }
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("warning: the cache of algorithms"), std::string::npos);
    expect("fresh", 7);
  }
  overwrite(entry("\"x\"", "2.5", "580.95.05"));
  const auto good = AlgorithmCache(folder_, "matmul", conditions).find("k");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->algorithm, "x");
}

TEST_F(AlgorithmCacheTest, GoesOnWhereItCannotWrite) {
  const fs::path blocked = folder_ / "file";  // a file where a folder would have to be
  fs::create_directories(folder_);
  std::ofstream(blocked) << "x";
  ::testing::internal::CaptureStderr();
  {
    AlgorithmCache cache(blocked, "matmul", conditions);
    cache.store("k", numbered(1));
    EXPECT_TRUE(cache.find("k"));
  }
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("was not written"), std::string::npos);
}

TEST_F(AlgorithmCacheTest, WorksWithoutAFolder) {
  AlgorithmCache cache({}, "matmul", conditions);
  EXPECT_TRUE(cache.file().empty());
  cache.store("k", numbered(1));
  EXPECT_TRUE(cache.find("k"));
  cache.forget("k");
  EXPECT_FALSE(cache.find("k"));
}

TEST(AlgorithmCacheFolder, FollowsTheEnvironment) {
  const Variable home("HOME", "/home/someone");
  {
    const Variable own("ASSAY_CACHE_DIR", nullptr), caches("XDG_CACHE_HOME", nullptr);
    EXPECT_EQ(AlgorithmCache::default_folder(), "/home/someone/.cache/assay");
  }
  const Variable caches("XDG_CACHE_HOME", "/caches");
  {
    const Variable own("ASSAY_CACHE_DIR", nullptr);
    EXPECT_EQ(AlgorithmCache::default_folder(), "/caches/assay");
  }
  {
    const Variable own("ASSAY_CACHE_DIR", "/mine");
    EXPECT_EQ(AlgorithmCache::default_folder(), "/mine");
  }
  const Variable own("ASSAY_CACHE_DIR", "");
  EXPECT_TRUE(AlgorithmCache::default_folder().empty());
}

TEST(AlgorithmsWanted, FollowTheEnvironment) {
  {
    const Variable variable("ASSAY_ALGORITHMS", nullptr);
    EXPECT_EQ(algorithm_mode(), AlgorithmMode::kept);
  }
  for (const auto& [word, mode] : {std::pair("", AlgorithmMode::kept), std::pair("fixed", AlgorithmMode::fixed),
                                   std::pair("anew", AlgorithmMode::anew)}) {
    const Variable variable("ASSAY_ALGORITHMS", word);
    EXPECT_EQ(algorithm_mode(), mode) << word;
  }
  const Variable variable("ASSAY_ALGORITHMS", "fix");
  try {
    algorithm_mode();
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("\"fix\"; expected \"fixed\""), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace assay::compute
