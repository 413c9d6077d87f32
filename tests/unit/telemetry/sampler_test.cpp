#include "telemetry/sampler.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>
#include "record/json.hpp"

#include "samples.hpp"

using namespace std::chrono_literals;

struct assay_telemetry_reader {
  int unused = 0;
};

namespace assay::host::telemetry {
namespace {

// The device of one test, which its table's functions find here.
struct PlayedDevice {
  assay_status open_status = ASSAY_OK;
  int fail_at = -1;  // the index of the sample that fails
  std::string note;
  std::vector<assay_telemetry_moment> moments;
  std::vector<std::thread::id> threads;
  std::atomic<int> within = 0;
  int open_readers = 0;
  bool signals_are_blocked = false;
};
PlayedDevice* played = nullptr;
assay_telemetry_reader the_reader;

constexpr assay_telemetry telemetry{
    sizeof(assay_telemetry),
    [](assay_device*, assay_telemetry_reader** out) noexcept -> assay_status {
      if (played->open_status != ASSAY_OK) return played->open_status;
      ++played->open_readers;
      *out = &the_reader;
      return ASSAY_OK;
    },
    [](assay_telemetry_reader*) noexcept { --played->open_readers; },
    [](assay_telemetry_reader*) noexcept { return played->note.c_str(); },
    [](assay_telemetry_reader*, assay_telemetry_limits* out) noexcept -> assay_status {
      out->known = ASSAY_LIMIT_MAX_SM_CLOCK | ASSAY_LIMIT_POWER;
      out->max_sm_clock_mhz = 1980;
      out->power_w = 700;
      std::strcpy(out->driver, "580.95.05");
      return ASSAY_OK;
    },
    [](assay_telemetry_reader*, assay_telemetry_moment moment, assay_telemetry_sample* out) noexcept -> assay_status {
      if (static_cast<int>(played->moments.size()) == played->fail_at) return ASSAY_DEVICE_ERROR;
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      played->signals_are_blocked = sigismember(&blocked, SIGTERM) == 1;
      played->moments.push_back(moment);
      played->threads.push_back(std::this_thread::get_id());
      const std::size_t size = out->struct_size;
      *out = test::gpu_sample(75, 0.05);
      out->struct_size = size;
      if (moment == ASSAY_TELEMETRY_WITHIN) ++played->within;
      return ASSAY_OK;
    },
};

assay_device_api table(bool offers) {
  assay_device_api api{};
  api.error_text = []() noexcept { return "the GPU has fallen off the bus"; };
  api.get_extension = offers ? +[](const char* id) noexcept -> const void* {
    return std::strcmp(id, ASSAY_EXT_TELEMETRY) == 0 ? &telemetry : nullptr;
  }
  : +[](const char*) noexcept -> const void* { return nullptr; };
  return api;
}

class Sampling : public testing::Test {
 protected:
  Sampling() { played = &device_; }
  ~Sampling() override { EXPECT_EQ(device_.open_readers, 0) << "a reader was not closed"; }
  void wait_for_samples(int count) const {
    while (device_.within < count) std::this_thread::sleep_for(1ms);
  }
  PlayedDevice device_;
  assay_device_api api_ = table(true);
};

TEST_F(Sampling, HasWhatCameBetweenBeginAndEnd) {
  TelemetrySampler sampler(1ms);
  sampler.attach(api_, nullptr);
  std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(device_.moments.empty()) << "it sleeps before the window";
  sampler.begin();
  wait_for_samples(3);
  const auto figures = sampler.end();
  ASSERT_TRUE(figures);
  const std::size_t asked = device_.moments.size();
  EXPECT_EQ(figures->samples(), asked - 2);
  EXPECT_EQ(device_.moments.front(), ASSAY_TELEMETRY_BEGIN);
  EXPECT_EQ(device_.moments.back(), ASSAY_TELEMETRY_END);
  for (std::size_t i = 1; i + 1 < asked; ++i) EXPECT_EQ(device_.moments[i], ASSAY_TELEMETRY_WITHIN);
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(device_.moments.size(), asked) << "it sleeps after the window";
  EXPECT_EQ(sampler.note(), "");
}

TEST_F(Sampling, AsksOnItsOwnThreadWhichTakesNoSignals) {
  TelemetrySampler sampler(1ms);
  sampler.attach(api_, nullptr);
  sampler.begin();
  sampler.end();
  ASSERT_FALSE(device_.threads.empty());
  for (const std::thread::id thread : device_.threads) {
    EXPECT_NE(thread, std::this_thread::get_id());
    EXPECT_EQ(thread, device_.threads.front());
  }
  EXPECT_TRUE(device_.signals_are_blocked);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0) << "the measuring thread still takes them";
}

TEST_F(Sampling, AWindowShorterThanAPeriodHasTheSampleAtItsEnd) {
  TelemetrySampler sampler(1h, 1h);
  sampler.attach(api_, nullptr);
  sampler.begin();
  const auto figures = sampler.end();
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->samples_within(), 0u);
  EXPECT_EQ(figures->samples(), 1u);
  EXPECT_EQ(device_.moments, (std::vector<assay_telemetry_moment>{ASSAY_TELEMETRY_BEGIN, ASSAY_TELEMETRY_END}));
}

// A period of an hour: without the faster samples of the first milliseconds this would not end.
TEST_F(Sampling, OfADeviceWithClocksAShortWindowHasSamplesAsWell) {
  TelemetrySampler sampler(1h);
  sampler.attach(api_, nullptr);
  sampler.begin();
  wait_for_samples(6);
  const auto figures = sampler.end();
  ASSERT_TRUE(figures);
  EXPECT_GE(figures->samples_within(), 6u);
}

TEST(NextSample, ComesAfterASixteenthOfTheWindowSoFar) {
  EXPECT_EQ(next_sample_in(0s, 0s, 1ms, 50ms), 1ms);
  EXPECT_EQ(next_sample_in(16ms, 0s, 1ms, 50ms), 1ms);
  EXPECT_EQ(next_sample_in(320ms, 0s, 1ms, 50ms), 20ms);
  EXPECT_EQ(next_sample_in(1h, 0s, 1ms, 50ms), 50ms);
  EXPECT_EQ(next_sample_in(2ms, 1ms, 1ms, 50ms), 20ms) << "a device that answers slowly is asked less often";
  EXPECT_EQ(next_sample_in(0s, 10ms, 1ms, 50ms), 50ms);
  EXPECT_EQ(next_sample_in(1h, 0s, 1h, 1h), 1h);
  // A window of 40 ms has readings enough of the clocks where one takes microseconds. With the 2.4 ms of a GPU's energy
  // counter in each it had one.
  const auto samples_in_40ms = [](std::chrono::nanoseconds cost) {
    std::size_t samples = 0;
    std::chrono::nanoseconds at = next_sample_in(0s, 0s, 1ms, 50ms);
    for (; at < 40ms; at += cost + next_sample_in(at + cost, cost, 1ms, 50ms)) ++samples;
    return samples;
  };
  EXPECT_EQ(samples_in_40ms(2400us), 1u);
  EXPECT_GE(samples_in_40ms(4us), fewest_clock_readings);
}

TEST_F(Sampling, EachWindowHasItsOwnFigures) {
  TelemetrySampler sampler(1h, 1h);
  sampler.attach(api_, nullptr);
  for (int window = 0; window < 2; ++window) {
    sampler.begin();
    const auto figures = sampler.end();
    ASSERT_TRUE(figures);
    EXPECT_EQ(figures->samples(), 1u);
  }
}

TEST_F(Sampling, ADeviceWithoutTheExtensionTellsNothing) {
  const assay_device_api silent = table(false);
  TelemetrySampler sampler(1ms);
  sampler.attach(silent, nullptr);
  sampler.begin();
  EXPECT_FALSE(sampler.end());
  EXPECT_EQ(sampler.note(), "");
  record::Device device;
  sampler.add_limits(device);
  EXPECT_TRUE(record::items_of(device).empty());
}

TEST_F(Sampling, ADeviceThatRefusesLeavesOneNote) {
  device_.open_status = ASSAY_UNSUPPORTED;
  TelemetrySampler sampler(1ms);
  sampler.attach(api_, nullptr);
  sampler.begin();
  EXPECT_FALSE(sampler.end());
  EXPECT_EQ(sampler.note(), "the GPU has fallen off the bus");
}

TEST_F(Sampling, WhatTheDeviceDoesNotTellIsTheNote) {
  device_.note = "NVML does not report the power: Not Supported";
  TelemetrySampler sampler(1ms);
  sampler.attach(api_, nullptr);
  EXPECT_EQ(sampler.note(), device_.note);
}

TEST_F(Sampling, FiguresWithAHoleAreNone) {
  device_.fail_at = 2;
  TelemetrySampler sampler(1ms);
  sampler.attach(api_, nullptr);
  sampler.begin();
  wait_for_samples(1);
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(sampler.end());
  EXPECT_EQ(sampler.note(), "the telemetry of this case was lost: the GPU has fallen off the bus");
}

TEST_F(Sampling, ACaseThatFailsInItsWindowEndsTheThread) {
  TelemetrySampler sampler(1ms);
  sampler.attach(api_, nullptr);
  sampler.begin();
  wait_for_samples(1);
}

TEST_F(Sampling, TheLimitsAreForTheRecordOfTheDevice) {
  TelemetrySampler sampler;
  sampler.attach(api_, nullptr);
  record::Device device;
  sampler.add_limits(device);
  EXPECT_EQ(record::to_json(device).dump(),
            R"({"driver":"580.95.05","max_sm_clock_mhz":1980.0,"power_limit_w":700.0})");
}

}  // namespace
}  // namespace assay::host::telemetry
