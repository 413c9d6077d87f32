// A device backend of a kind that the host has no row of: it is listed, described and asked for by its file alone, runs
// what needs no more than the device's table, and says of all else what it lacks.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class HipSkeleton : public Sandbox {
 protected:
  HipSkeleton() {
    set_variable("ASSAY_DEVICE_PATH", HIP_DEVICE_FOLDER);
    set_variable("CUDA_VISIBLE_DEVICES", "-1");
  }
  json record_of(const ExperimentText& text, int expected_code) {
    const auto records = records_of(text, expected_code);
    EXPECT_EQ(records.size(), 1u) << output();
    return records.empty() ? json::object() : records[0];
  }
};

TEST_F(HipSkeleton, IsListedAndDescribed) {
  const RunResult listed = run({"list"});
  EXPECT_EQ(listed.exit.code, 0);
  EXPECT_TRUE(contains(listed.output, "hip    backend installed; opened when a case asks for it")) << listed.output;
  const RunResult examined = run({"doctor"});
  for (const char* part : {"AMD Instinct of a stub, 1.0 GiB of 1.0 GiB free", "HIP runtime 6.2, driver 6.2, gfx942"})
    EXPECT_TRUE(contains(examined.output, part)) << examined.output;
  const RunResult described = run({"describe-device", "--device", "hip"});
  EXPECT_EQ(described.exit.code, 2);
  EXPECT_TRUE(contains(described.output, "the bandwidth of AMD Instinct of a stub is unknown")) << described.output;
  EXPECT_TRUE(contains(run({"describe-device", "--device", "hip", "--probe"}).output,
                       "the backend of the device 'hip' has no probes (assay.probe/1); leave out --probe"));
}

TEST_F(HipSkeleton, RunsAWorkloadOfAnyDevice) {
  for (const char* device : {"hip", "auto"}) {
    const json record = record_of({.plugin = EMPTY_PLUGIN, .device = device}, 0);
    ASSERT_EQ(record["status"], "ok") << record;
    EXPECT_EQ(record["device"]["kind"], "hip") << "auto: before this machine's processors";
    EXPECT_EQ(record["device"]["name"], "AMD Instinct of a stub");
    EXPECT_EQ(record["device"]["uuid"], "GPU-0000000000000000");
    EXPECT_EQ(record["phases"]["step"]["n"], 3);
  }
}

TEST_F(HipSkeleton, SaysWhatItLacks) {
  const json decoder = record_of({.plugin = "decoder",
                                  .params = "size = \"tiny\"\nbatch_size = 1\ncontext_length = 16",
                                  .measure = "warmup = 0\nsteps = 1",
                                  .device = "hip"},
                                 1);
  EXPECT_EQ(decoder["status"], "unsupported") << decoder;
  EXPECT_TRUE(contains(decoder.value("reason", ""), "device 'hip' offers no compute operations")) << decoder;
  const json cold = record_of({.plugin = EMPTY_PLUGIN, .measure = "steps = 1\ncold_cache = true", .device = "hip"}, 1);
  EXPECT_EQ(cold["status"], "unsupported") << cold;
  EXPECT_TRUE(contains(cold.value("reason", ""), "assay.cache/1")) << cold;
}

TEST_F(HipSkeleton, WithoutAGpuSaysSo) {
  set_variable("ASSAY_STUB_HIP_DEVICES", "0");
  const json record = record_of({.plugin = EMPTY_PLUGIN, .device = "hip"}, 1);
  EXPECT_EQ(record["status"], "unsupported") << record;
  EXPECT_TRUE(contains(record.value("reason", ""), "no usable HIP device: hipErrorNoDevice")) << record;
}

TEST_F(HipSkeleton, IsAWordOnlyWhereItsBackendIs) {
  set_variable("ASSAY_DEVICE_PATH", "");
  const RunResult refused = run_experiment({.plugin = EMPTY_PLUGIN, .device = "hip"});
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_TRUE(contains(refused.output, "expected one of auto, cpu, cuda (default auto); AMD GPUs are not supported"))
      << refused.output;
  const RunResult described = run({"describe-device", "--device", "hip"});
  EXPECT_EQ(described.exit.code, 2);
  EXPECT_TRUE(contains(described.output, "--device is 'hip'; expected auto, cpu or cuda")) << described.output;
}

}  // namespace
}  // namespace assay::test
