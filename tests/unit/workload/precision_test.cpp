#include <assay/workload/precision.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <assay/plugin.hpp>
#include <string>
#include <vector>

namespace assay::workload {
namespace {

std::string refusal(const char* name, const char* device) {
  try {
    (void)precision_policy(name, device);
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    return e.what();
  }
  return "";
}

// Products of 8 bits are of the workloads that say so: a remedy must be one that every workload takes.
TEST(Precision, ARefusalOffersWhatEveryWorkloadHas) {
  for (const char* const name : {"tf32", "fp16"}) {
    EXPECT_EQ(refusal(name, "cpu"), "precision '" + std::string(name) +
                                        "' is not available on device 'cpu'; there are fp32, bf16 and bf16_pure");
    EXPECT_EQ(refusal(name, "cuda"), "");
  }
  for (const char* const offered : {"fp32", "bf16", "bf16_pure"}) {
    EXPECT_EQ(refusal(offered, "cpu"), "");
    EXPECT_TRUE(std::any_of(precision_names.begin(), precision_names.end(),
                            [&](const char* name) { return std::string(name) == offered; }));
  }
}

}  // namespace
}  // namespace assay::workload
