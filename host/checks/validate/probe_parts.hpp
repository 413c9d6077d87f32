// Parts that several probes share.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "validate/life.hpp"

namespace assay::host::validate {

inline constexpr int measured_steps = 3;  // of a life that is looked at

// What create, setup and the first steps come to, where another question follows. False: they do not come so far, which
// is a finding of the life, not of this question.
bool begins(Life& life, int steps);
// A failure, and not the answer that nothing or a part alone could be checked.
bool is_failure(const Outcome& outcome);
// A status of create that says no is right where it has a text and no object: "" then, and otherwise what is wrong.
std::string mistake_in_refusal(const Outcome& outcome, bool has_object);
// Its bounds, its choices, both values of a switch.
std::vector<Value> values_to_try(const plugin::ParamSpec& p);
// Grows with all that is printed in this process.
std::string size_of_output();

// What was reported of a metric, in steps or for the case.
std::vector<double> values_of(Stage& stage, const measure::Samples& samples, std::size_t metric);

// Which phases and metrics of the tables have occurred.
class Seen {
 public:
  void add(Stage& stage, const measure::Samples& samples) {
    const plugin::WorkloadSchema& schema = stage.subject().schema;
    for (std::size_t i = 0; i < schema.phases.size(); ++i)
      if (samples.phase_seen[i]) phases_.insert(schema.phases[i]);
    for (std::size_t i = 0; i < schema.metrics.size(); ++i)
      if (!values_of(stage, samples, i).empty()) metrics_.insert(schema.metrics[i].name);
  }
  std::vector<std::string> unseen_phases(const plugin::WorkloadSchema& schema) const {
    std::vector<std::string> unseen;
    for (const std::string& phase : schema.phases)
      if (!phases_.contains(phase)) unseen.push_back(phase);
    return unseen;
  }
  std::vector<std::string> unseen_metrics(const plugin::WorkloadSchema& schema) const {
    std::vector<std::string> unseen;
    for (const plugin::MetricSpec& metric : schema.metrics)
      if (!metrics_.contains(metric.name)) unseen.push_back(metric.name);
    return unseen;
  }

 private:
  std::set<std::string> phases_, metrics_;
};

}  // namespace assay::host::validate
