// The file of measured algorithms: what survives a run, and that nothing wrong with it is ever an error.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "cuda/algorithm_cache.hpp"

namespace assay::cuda {
namespace {

namespace fs = std::filesystem;

CachedAlgorithm numbered(int n) {
  CachedAlgorithm a;
  for (std::size_t i = 0; i < a.blob.size(); ++i) a.blob[i] = static_cast<std::byte>(n + 3 * static_cast<int>(i));
  a.microseconds = 10.5 * n;
  return a;
}

class AlgorithmCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / (std::string("assay_cache_") + test->name() + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file() const { return AlgorithmCache(folder_, "NVIDIA H200", "cublasLt 13.1.0").file(); }
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
    const auto found = AlgorithmCache(folder_, "NVIDIA H200", "cublasLt 13.1.0").find(key);
    ASSERT_TRUE(found) << key;
    EXPECT_EQ(found->blob, numbered(n).blob);
    EXPECT_DOUBLE_EQ(found->microseconds, numbered(n).microseconds);
  }

  fs::path folder_;
};

TEST_F(AlgorithmCacheTest, KeepsWhatWasStored) {
  {
    AlgorithmCache cache(folder_, "NVIDIA H200", "cublasLt 13.1.0");
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

TEST_F(AlgorithmCacheTest, WritesNothingWhenNothingIsNew) {
  { const AlgorithmCache cache(folder_, "NVIDIA H200", "cublasLt 13.1.0"); }
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(AlgorithmCacheTest, TellsDevicesAndLibrariesApart) {
  { AlgorithmCache(folder_, "NVIDIA H200", "cublasLt 13.1.0").store("k", numbered(1)); }
  EXPECT_FALSE(AlgorithmCache(folder_, "NVIDIA H100", "cublasLt 13.1.0").find("k"));
  EXPECT_FALSE(AlgorithmCache(folder_, "NVIDIA H200", "cublasLt 13.2.0").find("k"));
  // Names that differ only in what a file name cannot show share a file, but not what is in it.
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(AlgorithmCache(folder_, "NVIDIA/H200", "cublasLt 13.1.0").find("k"));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("another device"), std::string::npos);
}

TEST_F(AlgorithmCacheTest, MergesWithAnotherWriter) {
  AlgorithmCache one(folder_, "NVIDIA H200", "cublasLt 13.1.0"), two(folder_, "NVIDIA H200", "cublasLt 13.1.0");
  one.store("one", numbered(1));
  two.store("two", numbered(2));
  one.save();
  two.save();
  expect("one", 1);
  expect("two", 2);
  one.forget("two");
  one.save();
  expect("one", 1);
  EXPECT_FALSE(AlgorithmCache(folder_, "NVIDIA H200", "cublasLt 13.1.0").find("two"));
}

TEST_F(AlgorithmCacheTest, ReplacesACorruptFileAfterAWarning) {
  const std::string hex(126, '0');
  const auto entry = [&](const std::string& algorithm, const std::string& time) {
    return R"({"format": 1, "device": "NVIDIA H200", "library": "cublasLt 13.1.0", "algorithms": {"k": {"algorithm": ")" +
           algorithm + R"(", "microseconds": )" + time + "}}}";
  };
  for (const std::string& bad :
       {std::string(), std::string("{\"format\": 1,"), std::string("[]"), std::string("{\"format\": 2}"),
        entry(hex, "1.0"), entry(hex + "xy", "1.0"), entry(hex + "00", "-1.0"), entry(hex + "00", "\"fast\"")}) {
    SCOPED_TRACE(bad);
    ::testing::internal::CaptureStderr();
    overwrite(bad);
    ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    {
      AlgorithmCache cache(folder_, "NVIDIA H200", "cublasLt 13.1.0");
      EXPECT_FALSE(cache.find("k"));
      cache.store("fresh", numbered(7));
    }
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("warning: the cache of matrix-product algorithms"),
              std::string::npos);
    expect("fresh", 7);
  }
  overwrite(entry(hex + "0f", "2.5"));
  const auto good = AlgorithmCache(folder_, "NVIDIA H200", "cublasLt 13.1.0").find("k");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->blob[63], std::byte{15});
}

TEST_F(AlgorithmCacheTest, GoesOnWhereItCannotWrite) {
  const fs::path blocked = folder_ / "file";  // a file where a folder would have to be
  fs::create_directories(folder_);
  std::ofstream(blocked) << "x";
  ::testing::internal::CaptureStderr();
  {
    AlgorithmCache cache(blocked, "NVIDIA H200", "cublasLt 13.1.0");
    cache.store("k", numbered(1));
    EXPECT_TRUE(cache.find("k"));
  }
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("was not written"), std::string::npos);
}

TEST_F(AlgorithmCacheTest, WorksWithoutAFolder) {
  AlgorithmCache cache({}, "NVIDIA H200", "cublasLt 13.1.0");
  EXPECT_TRUE(cache.file().empty());
  cache.store("k", numbered(1));
  EXPECT_TRUE(cache.find("k"));
  cache.forget("k");
  EXPECT_FALSE(cache.find("k"));
}

// Sets or, with null, unsets a variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old, was_set_ = true;
    set(value);
  }
  ~Variable() { set(was_set_ ? old_.c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const { value ? setenv(name_, value, 1) : unsetenv(name_); }
  const char* name_;
  std::string old_;
  bool was_set_ = false;
};

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

}  // namespace
}  // namespace assay::cuda
