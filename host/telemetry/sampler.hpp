// Reads a device's telemetry over the measured window, on a thread of its own.
//
// The measuring thread meets it before and after the window alone: between begin() and end() the two share nothing, and
// the thread sleeps but for a sample every period.
#pragma once
#include <assay/telemetry.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "telemetry/telemetry_figures.hpp"

namespace assay::host::telemetry {

class TelemetrySampler {
 public:
  // Starts the thread, which inherits the processors that this thread may use: before anything binds it to some of
  // them.
  explicit TelemetrySampler(std::chrono::milliseconds period = std::chrono::milliseconds(50));
  TelemetrySampler(const TelemetrySampler&) = delete;
  TelemetrySampler& operator=(const TelemetrySampler&) = delete;
  ~TelemetrySampler();  // before the device is closed

  // Before the first window. A device without the extension tells nothing, and that is no failure.
  void attach(const assay_device_api& api, assay_device* device);
  // What was told by the device while it was attached, for the record of the device; {} where nothing was.
  void add_limits(record::Device& device) const;

  // Around the measured window, by the measuring thread. Both wait until the device has told.
  void begin();
  // Nothing when the device tells nothing.
  std::optional<TelemetryFigures> end();

  // What the device does not tell here and why; "" when there is nothing to say. Complete after end().
  const std::string& note() const { return note_; }

 private:
  enum class Wish { none, begin, end, leave };

  void live();  // the thread's
  void fulfil(std::unique_lock<std::mutex>& lock, Wish wish);
  void ask(Wish wish);
  bool sample(assay_telemetry_moment moment, assay_telemetry_sample& out);

  const std::chrono::milliseconds period_;
  const assay_device_api* api_ = nullptr;
  const assay_telemetry* telemetry_ = nullptr;
  assay_telemetry_reader* reader_ = nullptr;
  std::string note_;
  std::optional<TelemetryFigures> figures_;

  std::mutex mutex_;
  std::condition_variable wished_, granted_;
  Wish wish_ = Wish::none;
  bool is_sampling_ = false;
  std::thread thread_;
};

}  // namespace assay::host::telemetry
