// Operations on data that promise the same result for any number of threads (test_training.cpp has the reductions): the
// program runs itself once per number and compares what each run prints. A device without OpenMP ignores the number.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "harness.hpp"

namespace assay::conformance {
namespace {

// A fingerprint of the exact values (FNV-1a over their bytes).
std::uint64_t fingerprint(const Values& values) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (std::size_t i = 0; i < values.size() * sizeof(double); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

void print(const char* operation, const DeviceTensor& result) {
  std::printf("fingerprint %s %s %016" PRIx64 "\n", operation, name_of(result->dtype), fingerprint(result.read()));
}

// Not a test of its own: what the test below runs.
TEST(ThreadCount, DISABLED_PrintFingerprints) {
  for (const DType t : {DType::f32, DType::bf16}) {
    const std::int64_t rows = 1501, width = 333;
    const Values values = random_values(t, rows * width, 1);
    const DeviceTensor x(t, {rows, width}, values), y(t, {rows, width}), columns(t, {width});
    const DeviceTensor ids(DType::i64, {rows}, random_ids(rows, 2, 0, 50)),
        table(t, {50, width}, Values(50 * 333, 0.0));
    const DeviceTensor step(DType::i64, {1}, {1});
    run([&] { backend().bias_backward(x, columns, false); });
    print("bias_backward", columns);
    run([&] { backend().embedding_backward(ids, x, table, true); });
    print("embedding_backward", table);
    run([&] { backend().random_normal(y, 7, 8, 0.0F, 1.0F); });
    print("random_normal", y);
    run([&] { backend().dropout(x, y, 0.1F, 7, 8, step); });
    print("dropout", y);
  }
}

std::string fingerprints(int threads) {
  const std::string command =
      "OMP_NUM_THREADS=" + std::to_string(threads) + " OMP_WAIT_POLICY=passive ASSAY_CONFORMANCE_TABLE= /proc/" +
      std::to_string(getpid()) +
      "/exe --gtest_also_run_disabled_tests --gtest_filter=ThreadCount.DISABLED_PrintFingerprints";
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  std::string lines;
  char line[512];
  while (std::fgets(line, sizeof line, pipe))
    if (std::string(line).rfind("fingerprint ", 0) == 0) lines += line;
  EXPECT_EQ(pclose(pipe), 0) << command;
  return lines;
}

TEST(ThreadCount, ChangesNoResult) {
  const std::string one = fingerprints(1);
  EXPECT_NE(one.find("dropout bf16"), std::string::npos) << one;
  for (const int threads : {2, 3, 7}) EXPECT_EQ(fingerprints(threads), one) << threads << " threads";
}

}  // namespace
}  // namespace assay::conformance
