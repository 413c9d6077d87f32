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

// So long is measured where neither a count nor a rule is given: short steps are many, long ones few.
struct DefaultLength {
  static constexpr double enough_s = 0.5;
  static constexpr std::int64_t min_steps = 10, max_steps = 50;
};

// What `MeasurePlan::inner` says in place of a number: as many as make the instruments' cost small.
inline constexpr std::int64_t inner_auto = 0;

struct MeasurePlan {
  std::int64_t warmup = 5;            // steps
  std::optional<std::int64_t> steps;  // a count, where there is no rule
  std::optional<StoppingRule> until;
  bool sync = true;         // wait for the device after every sample
  std::int64_t inner = 1;   // steps of a sample, back to back; or inner_auto
  bool cold_cache = false;  // flush the caches before every sample

  bool has_count() const { return steps && !until; }
  std::int64_t fewest_steps() const { return until ? until->min_steps : steps.value_or(DefaultLength::min_steps); }
  std::int64_t most_steps() const { return until ? until->max_steps : steps.value_or(DefaultLength::max_steps); }
  // The confidence of the intervals that go with the figures.
  double confidence() const { return until ? until->confidence : StoppingRule{}.confidence; }
};

enum class Verdict { go_on, enough, gave_up };  // gave_up: max_steps reached with the mean not yet known well enough

// The rule wants as many samples as are worth this many independent ones. Fewer do not show how much
// neighbouring steps resemble each other: the interval of ten slowly wandering steps looks narrow, and is wrong.
inline constexpr double fewest_independent = 20;

// `inner`: the steps of each sample, whose mean time the sample is.
Verdict judge(const MeasurePlan& plan, std::span<const double> step_samples_ns, std::int64_t inner = 1);

// The number of steps at which the plan is judged next, after `done`: each look at the samples is one more occasion to
// stop too early, and on several ranks the steps wait for it.
std::int64_t next_look(const MeasurePlan& plan, std::int64_t done);

}  // namespace assay::host::measure
