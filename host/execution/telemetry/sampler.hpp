// Reads a device's telemetry over the measured window, on a separate thread.
//
// The measuring thread meets it before and after the window alone: between begin() and end() the two share nothing, and
// the thread sleeps but for a sample every period. Of a device with clocks that may be held down the first samples come
// faster, so that a short window has some as well.
#pragma once
#include <assay/telemetry.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "telemetry/telemetry_figures.hpp"

namespace assay::host::telemetry {

// How long until the next sample: a sixteenth of the window so far, so that a window has as many samples in its first
// milliseconds as it has later in a doubling of its length; at most a twentieth of the thread's time goes into
// sampling.
std::chrono::nanoseconds next_sample_in(std::chrono::nanoseconds window_so_far,
                                        std::chrono::nanoseconds cost_of_a_sample, std::chrono::nanoseconds shortest,
                                        std::chrono::nanoseconds period);

class TelemetrySampler {
 public:
  // Starts the thread, which inherits the processors that this thread may use: before anything binds it to some of
  // them.
  explicit TelemetrySampler(std::chrono::milliseconds period = std::chrono::milliseconds(50),
                            std::chrono::milliseconds shortest = std::chrono::milliseconds(1));
  TelemetrySampler(const TelemetrySampler&) = delete;
  TelemetrySampler& operator=(const TelemetrySampler&) = delete;
  ~TelemetrySampler();  // before the device is closed

  // Before the first window. A device without the extension reports nothing, and that is no failure.
  void attach(const assay_device_api& api, assay_device* device, PowerReadings power = {});
  // What the device reported while it was attached, for the record of the device; {} if nothing.
  void add_limits(record::Device& device) const;

  // Around the measured window, by the measuring thread. Both wait until the device has answered.
  void begin();
  // Nothing if the device reports nothing.
  std::optional<TelemetryFigures> end();

  // What the device does not report here and why; "" when there is nothing to say. Complete after end().
  const std::string& note() const { return note_; }

 private:
  enum class Wish { none, begin, end, leave };

  void live();  // the thread's
  void fulfil(std::unique_lock<std::mutex>& lock, Wish wish);
  enum class Wait { asleep, awake };
  void ask(Wish wish, Wait how);
  bool sample(assay_telemetry_moment moment, assay_telemetry_sample& out);

  std::chrono::nanoseconds wait_for_next() const;

  const std::chrono::milliseconds period_, shortest_;
  const assay_device_api* api_ = nullptr;
  const assay_telemetry* telemetry_ = nullptr;
  assay_telemetry_reader* reader_ = nullptr;
  PowerReadings power_readings_;
  std::string note_;
  std::optional<TelemetryFigures> figures_;

  std::mutex mutex_;
  std::condition_variable wished_, granted_;
  std::atomic<bool> is_pending_{false};  // a wish: for whoever waits awake
  Wish wish_ = Wish::none;
  bool is_sampling_ = false;
  // The thread's own.
  bool has_clocks_ = false;
  std::chrono::steady_clock::time_point began_;
  std::chrono::nanoseconds cost_{0};  // of the last sample
  std::thread thread_;
};

}  // namespace assay::host::telemetry
