// When enough has been measured.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace assay::host::measure {

// Measure until the mean is known well enough.
struct StoppingRule {
  double relative_error = 0.01;  // half width of the mean's confidence interval over the mean
  double confidence = 0.95;
  std::int64_t min_steps = 10;
  std::int64_t max_steps = 1000;
};

struct MeasurePlan {
  std::int64_t warmup = 5;  // steps
  std::int64_t steps = 10;  // when `until` is absent
  std::optional<StoppingRule> until;
  bool sync = true;  // wait for the device after every step

  std::int64_t most_steps() const { return until ? until->max_steps : steps; }
  // The confidence of the intervals that go with the figures.
  double confidence() const { return until ? until->confidence : StoppingRule{}.confidence; }
};

enum class Verdict { go_on, enough, gave_up };  // gave_up: max_steps reached with the interval still too wide

Verdict judge(const MeasurePlan& plan, std::span<const double> step_samples);

}  // namespace assay::host::measure
