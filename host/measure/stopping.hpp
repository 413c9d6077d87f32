// When enough has been measured.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace assay::host {

struct UntilRule {  // stop when the mean's confidence interval is narrow enough
  double relative_error;
  double confidence;
  std::int64_t min_steps, max_steps;
};

struct MeasurePlan {
  std::int64_t warmup = 5;
  std::int64_t steps = 10;  // when `until` is absent
  std::optional<UntilRule> until;
  bool sync = true;

  std::int64_t most_steps() const { return until ? until->max_steps : steps; }
};

enum class Verdict { go_on, enough, gave_up };  // gave_up: max_steps reached with the interval still too wide

Verdict judge(const MeasurePlan& plan, std::span<const double> step_samples);

}  // namespace assay::host
