#include "telemetry_nvml.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <assay/plugin.hpp>
#include <string>

namespace assay::cuda {
namespace {

constexpr const char* bus_address = "0000:18:00.0";

class NvmlReading : public testing::Test {
 protected:
  ~NvmlReading() override {
    for (const char* name : {"REFUSE", "UTILISATION", "REASONS", "PROCESSES", "CHILD", "LOOKS", "HIDDEN_IDS", "MIG"})
      unsetenv((std::string("FAKE_NVML_") + name).c_str());
  }
  static void say(const char* name, const char* value) { setenv((std::string("FAKE_NVML_") + name).c_str(), value, 1); }
  static NvmlReader reader(Presence presence = Presence::computes) {
    return NvmlReader(bus_address, presence, FAKE_NVML);
  }
  static assay_telemetry_sample sample(NvmlReader& reader, assay_telemetry_moment moment) {
    assay_telemetry_sample out{};
    out.struct_size = sizeof out;
    reader.sample(moment, out);
    return out;
  }
  static bool tells(const assay_telemetry_sample& sample, std::uint64_t bit) { return (sample.known & bit) != 0; }
  static std::string refusal(const char* address, const char* library) {
    try {
      NvmlReader reader(address, Presence::computes, library);
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
      return e.what();
    }
    return "no refusal";
  }
};

TEST_F(NvmlReading, ASampleHasNvmlsFiguresInOurUnits) {
  NvmlReader nvml = reader();
  EXPECT_EQ(nvml.note(), "");
  const auto begin = sample(nvml, ASSAY_TELEMETRY_BEGIN);
  const auto within = sample(nvml, ASSAY_TELEMETRY_WITHIN);
  EXPECT_EQ(within.sm_clock_mhz, 1755);
  EXPECT_EQ(within.memory_clock_mhz, 3201);
  EXPECT_EQ(within.power_w, 650.5);
  EXPECT_EQ(within.temperature_c, 61);
  EXPECT_EQ(within.throttle, 0u);
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_NEAR(end.energy_j - begin.energy_j, 5, 1e-9) << "read at a window's ends alone: the call takes milliseconds";
  EXPECT_EQ(within.known, static_cast<std::uint64_t>(ASSAY_TELEMETRY_GPU_UTILISATION | ASSAY_TELEMETRY_SM_CLOCK |
                                                     ASSAY_TELEMETRY_MEMORY_CLOCK | ASSAY_TELEMETRY_POWER |
                                                     ASSAY_TELEMETRY_TEMPERATURE | ASSAY_TELEMETRY_THROTTLE));
}

TEST_F(NvmlReading, TheLimitsAreThoseOfTheDriver) {
  NvmlReader nvml = reader();
  assay_telemetry_limits limits{};
  nvml.limits(limits);
  EXPECT_STREQ(limits.driver, "580.95.05");
  EXPECT_EQ(limits.max_sm_clock_mhz, 1980);
  EXPECT_EQ(limits.max_memory_clock_mhz, 3202);
  EXPECT_EQ(limits.application_sm_clock_mhz, 1900);
  EXPECT_EQ(limits.application_memory_clock_mhz, 3201);
  EXPECT_EQ(limits.power_w, 600);
  EXPECT_EQ(limits.default_power_w, 700);
  say("REFUSE", "nvmlDeviceGetEnforcedPowerLimit");
  nvml.limits(limits);
  EXPECT_EQ(limits.known & ASSAY_LIMIT_POWER, 0u);
  EXPECT_NE(limits.known & ASSAY_LIMIT_DEFAULT_POWER, 0u);
}

TEST_F(NvmlReading, UtilisationIsOfTheDriversSamplesSinceTheOneBefore) {
  say("UTILISATION", "40,60,80");
  NvmlReader nvml = reader();  // has seen one sample
  EXPECT_FALSE(tells(sample(nvml, ASSAY_TELEMETRY_BEGIN), ASSAY_TELEMETRY_GPU_UTILISATION)) << "that is before";
  const auto first = sample(nvml, ASSAY_TELEMETRY_WITHIN);
  const auto second = sample(nvml, ASSAY_TELEMETRY_END);
  ASSERT_TRUE(tells(first, ASSAY_TELEMETRY_GPU_UTILISATION) && tells(second, ASSAY_TELEMETRY_GPU_UTILISATION));
  EXPECT_NE(first.utilisation_percent, second.utilisation_percent);
  EXPECT_NEAR(first.utilisation_span_s, 0.02, 1e-9);
  EXPECT_NEAR(second.utilisation_span_s, 0.02, 1e-9);
}

// Shorter than the driver's own sampling: its rate, which reaches back to before the window, and says so.
TEST_F(NvmlReading, AWindowWithoutADriversSampleEndsWithItsRate) {
  say("UTILISATION", "frozen,70");
  NvmlReader nvml = reader();
  sample(nvml, ASSAY_TELEMETRY_BEGIN);
  EXPECT_FALSE(tells(sample(nvml, ASSAY_TELEMETRY_WITHIN), ASSAY_TELEMETRY_GPU_UTILISATION));
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  ASSERT_TRUE(tells(end, ASSAY_TELEMETRY_GPU_UTILISATION));
  EXPECT_EQ(end.utilisation_percent, 70);
  EXPECT_EQ(end.utilisation_span_s, 1.0);
}

TEST_F(NvmlReading, WithoutTheDriversSamplesTheRateIsReadEachTime) {
  say("REFUSE", "nvmlDeviceGetSamples");
  say("UTILISATION", "55");
  NvmlReader nvml = reader();
  EXPECT_EQ(nvml.note(), "");
  sample(nvml, ASSAY_TELEMETRY_BEGIN);
  EXPECT_EQ(sample(nvml, ASSAY_TELEMETRY_WITHIN).utilisation_percent, 55);
  EXPECT_EQ(sample(nvml, ASSAY_TELEMETRY_END).utilisation_percent, 55);
}

TEST_F(NvmlReading, WhatHoldsTheClocksDownHasOurBits) {
  NvmlReader nvml = reader();
  say("REASONS", "0x4");
  EXPECT_EQ(sample(nvml, ASSAY_TELEMETRY_WITHIN).throttle, ASSAY_THROTTLE_POWER_CAP);
  say("REASONS", "0x28");
  EXPECT_EQ(sample(nvml, ASSAY_TELEMETRY_WITHIN).throttle, ASSAY_THROTTLE_HW_SLOWDOWN | ASSAY_THROTTLE_THERMAL);
  say("REASONS", "0x1c0");
  EXPECT_EQ(sample(nvml, ASSAY_TELEMETRY_WITHIN).throttle,
            ASSAY_THROTTLE_HW_THERMAL | ASSAY_THROTTLE_POWER_BRAKE | ASSAY_THROTTLE_DISPLAY_CLOCKS);
  say("REASONS", "0x13");
  EXPECT_EQ(sample(nvml, ASSAY_TELEMETRY_WITHIN).throttle,
            ASSAY_THROTTLE_IDLE | ASSAY_THROTTLE_APPLICATION_CLOCKS | ASSAY_THROTTLE_SYNC_BOOST);
}

TEST_F(NvmlReading, OthersOnTheGpuAreThoseBesideThisProcess) {
  say("PROCESSES", "70");  // more than the reader has room for at first
  NvmlReader nvml = reader();
  EXPECT_FALSE(tells(sample(nvml, ASSAY_TELEMETRY_WITHIN), ASSAY_TELEMETRY_FOREIGN_PROCESSES)) << "slow to ask";
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_EQ(end.foreign_processes, 70u);
  EXPECT_EQ(end.foreign_memory_bytes, 70ull << 30);
  say("PROCESSES", "0");
  const auto alone = sample(nvml, ASSAY_TELEMETRY_BEGIN);
  EXPECT_TRUE(tells(alone, ASSAY_TELEMETRY_FOREIGN_PROCESSES));
  EXPECT_EQ(alone.foreign_processes, 0u);
}

TEST_F(NvmlReading, WhatThisProcessHasStartedIsItsOwn) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  say("PROCESSES", "2");
  say("CHILD", std::to_string(child).c_str());
  NvmlReader nvml = reader();
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_EQ(end.foreign_processes, 1u);
  EXPECT_EQ(end.foreign_memory_bytes, 1ull << 30);
  EXPECT_TRUE(tells(end, ASSAY_TELEMETRY_OWN_MEMORY));
  EXPECT_EQ(end.own_memory_bytes, 2ull << 30) << "its own, and the child's";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(NvmlReading, OfAProcessThatLooksItsChildrenAloneAreItsOwn) {
  say("LOOKS", "1");
  say("PROCESSES", "2");
  NvmlReader nvml = reader(Presence::looks);
  EXPECT_EQ(nvml.note(), "");
  const auto before = sample(nvml, ASSAY_TELEMETRY_BEGIN);
  EXPECT_EQ(before.foreign_processes, 2u) << "they were there before";
  EXPECT_FALSE(tells(before, ASSAY_TELEMETRY_OWN_MEMORY));
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  say("CHILD", std::to_string(child).c_str());
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_EQ(end.foreign_processes, 1u);
  EXPECT_EQ(end.foreign_memory_bytes, 1ull << 30);
  EXPECT_TRUE(tells(end, ASSAY_TELEMETRY_OWN_MEMORY));
  EXPECT_EQ(end.own_memory_bytes, 1ull << 30);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(NvmlReading, ToAProcessThatLooksAnEmptyListIsNoRefusalAndTellsNothing) {
  say("LOOKS", "1");
  NvmlReader nvml = reader(Presence::looks);
  EXPECT_EQ(nvml.note(), "");
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_FALSE(tells(end, ASSAY_TELEMETRY_FOREIGN_PROCESSES));
  EXPECT_FALSE(tells(end, ASSAY_TELEMETRY_OWN_MEMORY));
}

// One of two new ids that nobody here has may be the child's: only who was there before is certainly another.
TEST_F(NvmlReading, InAContainerAProcessThatLooksKnowsThoseThatWereThereBefore) {
  say("LOOKS", "1");
  NvmlReader alone = reader(Presence::looks);
  say("PROCESSES", "1");
  EXPECT_FALSE(tells(sample(alone, ASSAY_TELEMETRY_END), ASSAY_TELEMETRY_FOREIGN_PROCESSES));
  NvmlReader beside = reader(Presence::looks);
  say("PROCESSES", "2");
  const auto end = sample(beside, ASSAY_TELEMETRY_END);
  EXPECT_TRUE(tells(end, ASSAY_TELEMETRY_FOREIGN_PROCESSES));
  EXPECT_EQ(end.foreign_processes, 1u);
  EXPECT_FALSE(tells(end, ASSAY_TELEMETRY_FOREIGN_MEMORY));
  EXPECT_FALSE(tells(end, ASSAY_TELEMETRY_OWN_MEMORY));
}

TEST_F(NvmlReading, InAContainerOneOfTheListIsThisProcess) {
  say("PROCESSES", "1");
  say("HIDDEN_IDS", "1");
  NvmlReader nvml = reader();
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_EQ(end.foreign_processes, 1u);
  EXPECT_FALSE(tells(end, ASSAY_TELEMETRY_FOREIGN_MEMORY)) << "which of the two is ours?";
}

TEST_F(NvmlReading, AListWithoutThisProcessTellsNothing) {
  say("PROCESSES", "-1");
  NvmlReader nvml = reader();
  EXPECT_FALSE(tells(sample(nvml, ASSAY_TELEMETRY_END), ASSAY_TELEMETRY_FOREIGN_PROCESSES));
  EXPECT_EQ(nvml.note(), "NVML does not report who else computes on it: No Permission");
}

TEST_F(NvmlReading, WhatIsRefusedIsLeftOutWithOneNote) {
  say("REFUSE", "nvmlDeviceGetPowerUsage,nvmlDeviceGetTotalEnergyConsumption,nvmlDeviceGetComputeRunningProcesses_v3");
  NvmlReader nvml = reader();
  EXPECT_EQ(nvml.note(), "NVML does not report the power, the energy, who else computes on it: Not Supported");
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_EQ(end.known & (ASSAY_TELEMETRY_POWER | ASSAY_TELEMETRY_ENERGY | ASSAY_TELEMETRY_FOREIGN_PROCESSES), 0u);
  EXPECT_TRUE(tells(end, ASSAY_TELEMETRY_SM_CLOCK));
}

TEST_F(NvmlReading, WithMigOnlyWhatIsOfTheInstanceToo) {
  say("MIG", "1");
  NvmlReader nvml = reader();
  EXPECT_TRUE(nvml.note().starts_with("MIG is on: ")) << nvml.note();
  EXPECT_EQ(nvml.note().find("does not report"), std::string::npos) << nvml.note();
  const auto end = sample(nvml, ASSAY_TELEMETRY_END);
  EXPECT_EQ(end.known, static_cast<std::uint64_t>(ASSAY_TELEMETRY_SM_CLOCK | ASSAY_TELEMETRY_MEMORY_CLOCK |
                                                  ASSAY_TELEMETRY_TEMPERATURE | ASSAY_TELEMETRY_THROTTLE));
}

TEST_F(NvmlReading, AMissingLibraryIsNamedWithTheRemedy) {
  const std::string text = refusal(bus_address, "libnvidia-ml-of-nobody.so.1");
  EXPECT_NE(text.find("libnvidia-ml-of-nobody.so.1"), std::string::npos) << text;
  EXPECT_NE(text.find("NVIDIA_DRIVER_CAPABILITIES"), std::string::npos) << text;
}

TEST_F(NvmlReading, AGpuThatNvmlDoesNotKnowIsNamed) {
  const std::string text = refusal("0000:99:00.0", FAKE_NVML);
  EXPECT_NE(text.find("0000:99:00.0: NVML says Not Found"), std::string::npos) << text;
}

TEST_F(NvmlReading, AnNvmlThatDoesNotStartSaysWhy) {
  say("REFUSE", "nvmlInit_v2");
  const std::string text = refusal(bus_address, FAKE_NVML);
  EXPECT_NE(text.find("NVML does not start: Not Supported"), std::string::npos) << text;
}

TEST_F(NvmlReading, EveryStartIsShutDown) {
  void* const library = dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  const auto starts = reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_starts"));
  {
    NvmlReader one = reader(), two = reader();
    EXPECT_EQ(starts(), 2);
    refusal("0000:99:00.0", FAKE_NVML);
    EXPECT_EQ(starts(), 2);
  }
  EXPECT_EQ(starts(), 0);
  dlclose(library);
}

}  // namespace
}  // namespace assay::cuda
