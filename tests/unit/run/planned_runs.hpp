// Experiments with a few cases, and the machines that they are planned for. No file is read and no process started.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/sha256.hpp"
#include "run/plan.hpp"

namespace assay::host::run::test {

inline plugin::WorkloadSchema small_schema() {
  plugin::WorkloadSchema schema;
  schema.id = "demo";
  plugin::ParamSpec batch_size;
  batch_size.name = "batch_size", batch_size.default_value = std::int64_t{4};
  plugin::ParamSpec weights;
  weights.name = "weights", weights.type = plugin::ParamType::text, weights.default_value = std::string();
  weights.input_path = true;
  plugin::ParamSpec trace;
  trace.name = "trace", trace.type = plugin::ParamType::text, trace.default_value = std::string();
  trace.output_path = true;
  schema.params = {batch_size, weights, trace};
  schema.phases = {"forward", "backward"};
  return schema;
}

inline experiment::Case small_case(std::int64_t index, std::int64_t batch_size = 4) {
  experiment::Case c;
  c.index = index;
  c.params = {{"batch_size", batch_size}, {"weights", std::string()}, {"trace", std::string()}};
  return c;
}

inline experiment::Experiment experiment_of(std::vector<experiment::Case> cases) {
  experiment::Experiment experiment;
  experiment.name = "demo";
  experiment.cases = std::move(cases);
  return experiment;
}

inline worker::FoundDevice device_of(std::string kind, std::int32_t count) {
  worker::FoundDevice found;
  found.status = record::Status::ok;
  found.device.kind = std::move(kind);
  found.device.name = "a device";
  found.device.libraries = "demo 1.0";
  found.count = count;
  return found;
}

inline wireup::LaunchedRank launch_of(std::int32_t size) {
  wireup::LaunchedRank launched;
  launched.launcher = "Slurm";
  launched.size = size;
  return launched;
}

// What a plan is made on; a test changes what it is about. `asked`: what was asked for, in order.
struct Machine {
  plugin::WorkloadSchema schema = small_schema();
  worker::FoundDevice device = device_of("cpu", 1);
  mutable std::vector<std::string> asked;
  PlanBasis basis{schema,
                  std::nullopt,
                  false,
                  {},
                  {},
                  [this](const std::string& wanted) {
                    asked.push_back(wanted);
                    return device;
                  },
                  [](const std::string&, std::int32_t) {
                    return record::Named<std::string>{{"plugin", "00ff"}};
                  },
                  [](const std::string& path) { return sha256_of_file(path); }};

  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
};

}  // namespace assay::host::run::test
