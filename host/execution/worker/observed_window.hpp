// The measured window's surroundings: the device's telemetry, and who else used the processors.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/case_record.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/suspension.hpp"
#include "worker/case_spec.hpp"
#include "worker/rank_services.hpp"

namespace assay::host::worker {

// "NAME=value" in the environment of all that this worker starts, by which the host knows them as well; "" in the
// host's process.
std::string tag_of_descendants();

class ObservedWindow {
 public:
  // Starts the sampling thread: before a library binds this thread to a processor.
  ObservedWindow() = default;
  telemetry::TelemetrySampler& sampler() { return sampler_; }

  // Around the window, by the measuring thread. Both take long against a short step.
  void begin();
  void end();
  // After end(): of the device, by its own account, what this process and those that it has started then held.
  std::optional<std::uint64_t> own_memory_bytes() const {
    return telemetry_ ? telemetry_->own_memory_bytes() : std::nullopt;
  }
  // After end(): what was found, for the record. All ranks call it. `step_bounds_s`: MeasuredSteps::bounds_s().
  void tell(record::CaseResult& result, const CaseSpec& spec, RankServices& ranks, double window_s,
            const std::vector<double>& step_bounds_s);

 private:
  telemetry::TelemetrySampler sampler_;
  telemetry::ContentionProbe probe_{tag_of_descendants()};
  std::chrono::steady_clock::time_point begin_;
  double telemetry_s_ = 0;
  std::optional<telemetry::TelemetryFigures> telemetry_;
  telemetry::Contention contention_;
  telemetry::SuspensionProbe suspension_probe_;
  telemetry::Suspension suspension_;
};

}  // namespace assay::host::worker
