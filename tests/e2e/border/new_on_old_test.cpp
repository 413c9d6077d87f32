// Plugins and the device backend of this build on hosts of older minors: programs that were compiled against the kept
// headers of a minor alone, and offer no more than it had (kept/host.c).
#include <assay/abi.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

constexpr int asks_for_newer_host = 3;  // of kept/host.c

struct OldHostResult {
  int code = -1;    // of an ordinary exit
  int signal = -1;  // 0: none
  std::string output;
};

OldHostResult run_on_host(unsigned minor, const std::string& plugin, const std::string& workload,
                          const std::string& params = "", const std::string& device = CPU_DEVICE) {
  // What a program leaves behind at its end is not the subject of a sanitized build.
  const std::string command = "exec env ASAN_OPTIONS=detect_leaks=0 '" KEPT_FOLDER "/host_1_" + std::to_string(minor) +
                              "' '" + plugin + "' '" + device + "' " + workload + " " + params + " 2>&1";
  OldHostResult result;
  FILE* const output = popen(command.c_str(), "r");
  if (!output) return result;
  std::array<char, 4096> block;
  for (std::size_t n; (n = fread(block.data(), 1, block.size(), output)) > 0;) result.output.append(block.data(), n);
  const int status = pclose(output);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return result;
}

std::string kept(const std::string& name) { return std::string(KEPT_FOLDER) + "/" + name; }
const std::string c_plugin = kept("plugin_today/border_plugin.so");

class OldHosts : public testing::TestWithParam<unsigned> {
 protected:
  // Wholly carried out.
  void expect_run(const OldHostResult& result) const {
    EXPECT_EQ(result.signal, 0) << result.output;
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_PRED2(contains, result.output, "host 1." + std::to_string(GetParam()) + "\n");
    EXPECT_PRED2(contains, result.output, "\nended\n");
  }
  // As the host is older than `needed`, or wholly carried out.
  void expect_run_from(unsigned needed, const OldHostResult& result) const {
    if (GetParam() >= needed) return expect_run(result);
    EXPECT_EQ(result.code, asks_for_newer_host) << result.output;
    EXPECT_PRED2(contains, result.output, "refused it needs a host with ABI 1." + std::to_string(needed));
  }
};

TEST_P(OldHosts, APluginInCRuns) {
  for (const char* plugin : {"plugin_today", "plugin_newer"}) {
    const OldHostResult result = run_on_host(GetParam(), kept(std::string(plugin) + "/border_plugin.so"),
                                             "border_plugin", "n=100 factor=0.25 how=twice");
    expect_run(result);
    EXPECT_PRED2(contains, result.output, "verify 0 the last element is the sum of all steps");
    EXPECT_PRED2(contains, result.output, "metric last 1.5\n");
    EXPECT_PRED2(contains, result.output, "phase add 3\n");
    EXPECT_PRED2(contains, result.output, "items 100\n");
  }
}

TEST_P(OldHosts, AnOlderHostIsNotToldOfAVerificationInPart) {
  for (const auto& [plugin, workload, params] : {std::array<std::string, 3>{c_plugin, "border_plugin", "in_part=1"},
                                                 {PARTLY_VERIFIED_PLUGIN, "partly_verified", "checks=part"}}) {
    const OldHostResult result = run_on_host(GetParam(), plugin, workload, params);
    expect_run(result);
    const int expected = GetParam() >= 3 ? ASSAY_VERIFIED_IN_PART : ASSAY_UNSUPPORTED;
    EXPECT_PRED2(contains, result.output, "verify " + std::to_string(expected) + " ");
  }
}

TEST_P(OldHosts, APluginOfTheCppLayerRuns) { expect_run(run_on_host(GetParam(), EMPTY_PLUGIN, "empty")); }

TEST_P(OldHosts, AWorkloadWithPresetsAsksForTheHostThatKnowsThem) {
  const OldHostResult result = run_on_host(GetParam(), DECODER_PLUGIN, "decoder",
                                           "size=tiny batch_size=1 context_length=16 vocab_size=64 pass=forward");
  expect_run_from(2, result);
  if (GetParam() >= 2) {
    EXPECT_PRED2(contains, result.output, "\nverify 0 ");
  }
}

TEST_P(OldHosts, APluginThatAsksForTheNewestHostIsRefusedByOlderOnes) {
  expect_run_from(ASSAY_ABI_MINOR,
                  run_on_host(GetParam(), kept("plugin_needs_newest/border_plugin.so"), "border_plugin"));
}

// As long an answer as the host has room for.
TEST_P(OldHosts, TheDeviceBackendTellsWhatTheHostKnows) {
  for (const std::string& device : {std::string(CPU_DEVICE), kept("device_newer/libassay_device_cpu.so")}) {
    const OldHostResult result = run_on_host(GetParam(), c_plugin, "border_plugin", "", device);
    expect_run(result);
    EXPECT_EQ(contains(result.output, "\nbus_address '"), GetParam() >= 1);  // its header is of device.h 1.1 from there
    EXPECT_FALSE(contains(result.output, "ZZZZ")) << "a field was left as it was: " << result.output;
  }
}

// It has no presets, and uses the device's operations.
TEST(OldestHost, AWorkloadOfTheDevicesOperationsRuns) {
  const OldHostResult result = run_on_host(0, ATTENTION_PLUGIN, "attention", "batch_size=1 seq=16 head_dim=16");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, "\nverify 0 ");
}

INSTANTIATE_TEST_SUITE_P(Kept, OldHosts, testing::Values(0u, 1u, 2u, 3u, 4u));

}  // namespace
}  // namespace assay::test
