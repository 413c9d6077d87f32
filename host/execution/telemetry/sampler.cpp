#include "telemetry/sampler.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace assay::host::telemetry {
namespace {

constexpr auto longest_awake = std::chrono::milliseconds(100);

}  // namespace

std::chrono::nanoseconds next_sample_in(std::chrono::nanoseconds window_so_far,
                                        std::chrono::nanoseconds cost_of_a_sample, std::chrono::nanoseconds shortest,
                                        std::chrono::nanoseconds period) {
  constexpr int part_of_the_window = 16, most_of_the_thread = 20;
  const auto wanted = std::max(window_so_far / part_of_the_window, cost_of_a_sample * most_of_the_thread);
  return std::min(std::max(wanted, shortest), period);
}

TelemetrySampler::TelemetrySampler(std::chrono::milliseconds period, std::chrono::milliseconds shortest)
    : period_(period), shortest_(shortest) {
  // Signals are for the thread that measures, whose waits they are to interrupt.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { live(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TelemetrySampler::~TelemetrySampler() {
  ask(Wish::leave, Wait::asleep);
  thread_.join();
  if (reader_) telemetry_->close(reader_);
}

void TelemetrySampler::attach(const assay_device_api& api, assay_device* device, PowerReadings power) {
  api_ = &api;
  power_readings_ = power;
  const auto* telemetry = static_cast<const assay_telemetry*>(api.get_extension(ASSAY_EXT_TELEMETRY));
  if (!telemetry || !ASSAY_HAS(telemetry, assay_telemetry, sample)) return;
  telemetry_ = telemetry;
  if (telemetry->open(device, &reader_) != ASSAY_OK) {
    reader_ = nullptr;
    note_ = api.error_text();
  } else {
    note_ = telemetry->note(reader_);
  }
}

void TelemetrySampler::add_limits(record::Device& device) const {
  assay_telemetry_limits limits{};
  limits.struct_size = sizeof limits;
  if (!reader_ || telemetry_->limits(reader_, &limits) != ASSAY_OK) return;
  device.driver = limits.driver;
  const auto add = [&](std::uint64_t bit, record::Number& field, double value) {
    if (limits.known & bit) field = value;
  };
  add(ASSAY_LIMIT_MAX_SM_CLOCK, device.max_sm_clock_mhz, limits.max_sm_clock_mhz);
  add(ASSAY_LIMIT_MAX_MEMORY_CLOCK, device.max_memory_clock_mhz, limits.max_memory_clock_mhz);
  add(ASSAY_LIMIT_APPLICATION_SM_CLOCK, device.application_sm_clock_mhz, limits.application_sm_clock_mhz);
  add(ASSAY_LIMIT_APPLICATION_MEMORY_CLOCK, device.application_memory_clock_mhz, limits.application_memory_clock_mhz);
  add(ASSAY_LIMIT_POWER, device.power_limit_w, limits.power_w);
  add(ASSAY_LIMIT_DEFAULT_POWER, device.default_power_limit_w, limits.default_power_w);
}

void TelemetrySampler::begin() {
  if (!reader_) return;
  figures_.emplace(std::chrono::duration<double>(period_).count(), power_readings_);
  ask(Wish::begin, Wait::awake);
}

std::optional<TelemetryFigures> TelemetrySampler::end() {
  if (!reader_) return std::nullopt;
  ask(Wish::end, Wait::asleep);
  return std::exchange(figures_, std::nullopt);
}

// The steps begin right after the first sample, and a processor that slept until then is slow for some milliseconds: on
// an H200 eager attention of 0.2 ms a step took 1.2 times as long for 5 ms.
void TelemetrySampler::ask(Wish wish, Wait how) {
  std::unique_lock lock(mutex_);
  wish_ = wish;
  is_pending_ = true;
  wished_.notify_one();
  if (how == Wait::awake) {
    lock.unlock();
    const auto give_up = std::chrono::steady_clock::now() + longest_awake;
    while (is_pending_ && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    lock.lock();
  }
  granted_.wait(lock, [this] { return wish_ == Wish::none; });
}

// A device that fails once is not asked again in this window: its figures would have a hole that nobody sees.
bool TelemetrySampler::sample(assay_telemetry_moment moment, assay_telemetry_sample& out) {
  out = {};
  out.struct_size = sizeof out;
  if (!figures_) return false;
  const auto before = std::chrono::steady_clock::now();
  const bool is_told = telemetry_->sample(reader_, moment, &out) == ASSAY_OK;
  cost_ = std::chrono::steady_clock::now() - before;
  if (is_told) return true;
  note_ = fmt::format("the telemetry of this case was lost: {}", api_->error_text());
  figures_.reset();
  return false;
}

void TelemetrySampler::fulfil(std::unique_lock<std::mutex>& lock, Wish wish) {
  lock.unlock();
  assay_telemetry_sample sample_now;
  if (wish == Wish::begin && sample(ASSAY_TELEMETRY_BEGIN, sample_now)) {
    figures_->begin(sample_now, steady_now_s());
    has_clocks_ = (sample_now.known & (ASSAY_TELEMETRY_THROTTLE | ASSAY_TELEMETRY_SM_CLOCK)) != 0;
    began_ = std::chrono::steady_clock::now();
    cost_ = {};  // the first one of a window looks for more, and may take long
  }
  if (wish == Wish::end && sample(ASSAY_TELEMETRY_END, sample_now)) figures_->end(sample_now, steady_now_s());
  lock.lock();
  is_sampling_ = wish == Wish::begin;
  wish_ = Wish::none;
  is_pending_ = false;
  granted_.notify_one();
}

std::chrono::nanoseconds TelemetrySampler::wait_for_next() const {
  if (!has_clocks_) return period_;
  return next_sample_in(std::chrono::steady_clock::now() - began_, cost_, shortest_, period_);
}

void TelemetrySampler::live() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto is_wished = [this] { return wish_ != Wish::none; };
    const bool called =
        is_sampling_ ? wished_.wait_for(lock, wait_for_next(), is_wished) : (wished_.wait(lock, is_wished), true);
    if (called) {
      const Wish wish = wish_;
      fulfil(lock, wish);
      if (wish == Wish::leave) return;
      continue;
    }
    lock.unlock();
    assay_telemetry_sample sample_now;
    if (sample(ASSAY_TELEMETRY_WITHIN, sample_now)) figures_->within(sample_now, steady_now_s());
    lock.lock();
  }
}

}  // namespace assay::host::telemetry
