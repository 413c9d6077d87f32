// Records of runs whose steps have a known time and a noise as machines have it.
#pragma once
#include "compare/comparison.hpp"
#include "unit/record/sample_record.hpp"

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace assay::host::compare {

struct Noise {
  double of_run = 0;       // relative: one draw for the whole run
  double of_step = 0.01;   // relative: each step
  double resemblance = 0;  // of a step's noise to that of the one before it
  double stall_share = 0;  // steps that take half as long again
};

class NoisyRuns {
 public:
  explicit NoisyRuns(unsigned seed) : random_(seed) {}
  std::vector<double> steps(double time_ms, std::size_t n, const Noise& noise) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0, 1);
    const double run = 1 + noise.of_run * normal(random_);
    double before = normal(random_);
    std::vector<double> result;
    for (std::size_t i = 0; i < n; ++i) {
      before = noise.resemblance * before + std::sqrt(1 - noise.resemblance * noise.resemblance) * normal(random_);
      const double stall = uniform(random_) < noise.stall_share ? 1.5 : 1.0;
      result.push_back(time_ms * run * stall * (1 + noise.of_step * before));
    }
    return result;
  }

 private:
  std::mt19937 random_;
};

// Of a machine that is known to have one state, so that a single run a side has a verdict.
inline ComparisonOptions one_state() {
  ComparisonOptions options;
  options.test.states = 0;
  return options;
}

inline Json record_of(const Json& params, const std::vector<double>& step_ms, const Json& axes = Json::object()) {
  double sum = 0;
  for (const double ms : step_ms) sum += ms;
  const double mean = sum / static_cast<double>(step_ms.size());
  return {{"schema", 1},
          {"index", 0},
          {"axes", axes},
          {"status", "ok"},
          {"reason", ""},
          {"ranks", 1},
          {"workload", "decoder"},
          {"device", {{"kind", "cpu"}, {"name", "AMD EPYC"}, {"libraries", "oneDNN 2.6.3; OpenMP 4.5, 2 threads"}}},
          {"params", params},
          {"settings", {{"measure.steps", step_ms.size()}, {"measure.sync", true}, {"measure.warmup", 5}}},
          {"phases", {{"step", {{"mean_ms", mean}, {"n", step_ms.size()}, {"samples_ms", step_ms}}}}},
          {"work", {{"items", 2048}, {"item_unit", "tokens"}}},
          {"rates", {{"items_per_s", 2048 * 1e3 / mean}}},
          {"memory", {{"peak_total_mib", 790.5}}}};
}

inline ComparedRun run_of(const std::vector<Json>& records, const Json& environment = nullptr) {
  ComparedRun run{"run", {}, record::Environment::parse(environment.dump())};
  for (const Json& json : records) run.records.push_back(typed(json));
  return run;
}

inline Side side_of(std::size_t index, std::vector<ComparedRun> runs) {
  return {side_label(index), "path/" + side_label(index), std::move(runs)};
}

}  // namespace assay::host::compare
