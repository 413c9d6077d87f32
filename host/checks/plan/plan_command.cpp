#include "plan/plan_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/exit_code.hpp"
#include "common/suggest.hpp"
#include "common/usage_error.hpp"
#include "console/mistakes.hpp"
#include "plan/experiment_plan.hpp"
#include "plan/report.hpp"
#include "results/find_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::plan {
namespace {

namespace fs = std::filesystem;

void require_integer_parameter(const plugin::WorkloadSchema& schema, const std::string& name) {
  std::vector<std::string> names;
  for (const plugin::ParamSpec& p : schema.params)
    if (p.type == plugin::ParamType::integer) names.push_back(p.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string meant = did_you_mean(name, names);
  throw UsageError(fmt::format("--largest is '{}'{}{} an integer parameter of workload '{}': {}", name, meant,
                               meant.empty() ? "; expected" : " Expected", schema.id, fmt::join(names, ", ")));
}

experiment::DeviceDescription device_in_file(const std::string& file) try {
  return experiment::read_device_file(file);
} catch (const experiment::DeviceFileError& e) {
  throw UsageError(fmt::format(
      "--device-file: {}; expected a file that describes a device, as `assay describe-device --output FILE` "
      "writes it",
      e.what()));
}

}  // namespace

int plan_experiment(const PlanRequest& request) {
  PlanOptions options;
  if (request.device && request.device_file) throw UsageError("--device and --device-file exclude each other");
  if (request.device_file) options.device = device_in_file(*request.device_file);
  if (request.device) options.device = device_asked_for(*request.device);
  options.earlier = earlier_records(request.from);
  if (!request.from.empty() && options.earlier.empty())
    throw UsageError(
        fmt::format("--from {}: no record of a finished case, and so no times to expect; name a run that "
                    "has some, or leave out --from",
                    fmt::join(request.from, ", ")));
  run::LoadResult result =
      run::load_experiment({request.experiment, std::nullopt, request.set, request.filter, request.plugin_path});
  if (!result.loaded) return console::report_mistakes(result.mistakes);
  if (request.largest) {
    options.largest = *request.largest;
    require_integer_parameter(result.loaded->target.schema, options.largest);
  }
  const ExperimentPlan planned = plan_of(*result.loaded, options);
  if (request.json)
    fmt::print("{}\n", to_json(planned.plan, result.loaded->experiment.name, options.largest).dump(2));
  else
    fmt::print("{}\n", result.loaded->experiment.name), print_plan(planned, options.largest);
  for (const experiment::Mistake& mistake : planned.mistakes) fmt::print(stderr, "{}\n", mistake.to_string());
  const auto& cases = planned.plan.cases;
  const bool is_any_planned = std::any_of(cases.begin(), cases.end(), [](const PlannedCase& c) {
    return c.walk.state == WalkState::walked || c.walk.state == WalkState::too_large;
  });
  if (!is_any_planned && planned.mistakes.empty())
    fmt::print(stderr, "assay: no case could be planned, for the reasons above\n");
  return is_fine(planned.plan, result.loaded->experiment) && is_any_planned ? exit_ok : exit_failed;
}

}  // namespace assay::host::plan
