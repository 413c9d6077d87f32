// assay plan EXPERIMENT.toml
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/forecast_of.hpp"
#include "cli/options.hpp"
#include "common/suggest.hpp"
#include "forecast/report.hpp"
#include "results/find_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr const char* about_plan =
    "Says what each case will take, without running it and without its device: the device's memory by kind\n"
    "and whether it fits, the least time of a step by the device's peaks, with --from an expected time, and\n"
    "node-hours and disk of all cases. Exit code 0: some case could be planned, none is refused, and each that\n"
    "does not fit is allowed by [run] allow; 1: otherwise; 2: a wrong command line or experiment.";

po::options_description plan_options() {
  po::options_description visible("Options");
  const auto texts = [] { return po::value<Arguments>()->composing(); };
  visible.add_options()("device", po::value<std::string>(),
                        "the device that is planned for: h200, h100, ..., or auto, cpu, cuda for this machine's "
                        "(default: as [run] device says)")(
      "device-file", po::value<std::string>(), "a file that describes it, which `assay describe-device` writes")(
      "from", texts(), "an earlier run on the same device, by which times are expected; repeatable")(
      "largest", po::value<std::string>(), "a parameter: its largest value that fits, for each case")(
      "set", texts(), "key=value: change a parameter or a setting of the file (dotted names); repeatable")(
      "filter", texts(), "key=value: plan only the cases that match; repeatable")(
      "plugin-path", texts(), "folder with plugins, searched first; repeatable")("json", "print JSON");
  return visible;
}

void require_integer_parameter(const plugin::WorkloadSchema& schema, const std::string& name) {
  std::vector<std::string> names;
  for (const plugin::ParamSpec& p : schema.params)
    if (p.type == plugin::ParamType::integer) names.push_back(p.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const auto near = nearest(name, names);
  throw UsageError(fmt::format("--largest is '{}'; expected an integer parameter of workload '{}': {}{}", name,
                               schema.id, fmt::join(names, ", "),
                               near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

int plan_experiment(const po::variables_map& values) {
  ForecastOptions options;
  if (values.count("device") && values.count("device-file"))
    throw UsageError("--device and --device-file exclude each other");
  if (values.count("device-file")) options.device = forecast::read_device_file(values["device-file"].as<std::string>());
  if (values.count("device")) options.device = device_asked_for(values["device"].as<std::string>());
  options.earlier = earlier_records(list_of(values, "from"));
  LoadResult result =
      load_experiment({values["experiment"].as<Arguments>().front(), std::nullopt, list_of(values, "set"),
                       list_of(values, "filter"), list_of(values, "plugin-path")});
  if (!result.loaded) return report_mistakes(result.mistakes);
  if (values.count("largest")) {
    options.largest = values["largest"].as<std::string>();
    require_integer_parameter(result.loaded->target.schema, options.largest);
  }
  const ForecastOfExperiment planned = forecast_of(*result.loaded, options);
  if (values.count("json"))
    fmt::print("{}\n", forecast::to_json(planned.forecast, result.loaded->experiment.name, options.largest).dump(2));
  else
    fmt::print("{}\n", result.loaded->experiment.name), print_forecast(planned, options.largest);
  for (const experiment::Mistake& mistake : planned.mistakes) fmt::print(stderr, "{}\n", mistake.to_string());
  const bool may_be_oom = allows_oom(result.loaded->experiment);
  const auto& cases = planned.forecast.cases;
  const bool is_fine = std::all_of(cases.begin(), cases.end(), [&](const forecast::CaseForecast& c) {
    return (may_be_oom || c.fits != forecast::Fits::no) && c.walk.state != forecast::WalkState::refused;
  });
  const bool is_any_planned = std::any_of(cases.begin(), cases.end(), [](const forecast::CaseForecast& c) {
    return c.walk.state == forecast::WalkState::walked || c.walk.state == forecast::WalkState::too_large;
  });
  if (!is_any_planned && planned.mistakes.empty())
    fmt::print(stderr, "assay: no case could be planned, for the reasons above\n");
  return is_fine && is_any_planned ? run::exit_ok : run::exit_failed;
}

}  // namespace

int plan_command(const Arguments& arguments) try {
  const ParsedOptions options =
      parse_options(arguments, "assay plan EXPERIMENT.toml [options]", about_plan, plan_options(), "experiment");
  if (options.help) return run::exit_ok;
  if (!options.values.count("experiment")) throw UsageError("plan needs an experiment file");
  return plan_experiment(options.values);
} catch (const forecast::DeviceFileError& e) {
  throw UsageError(e.what());
} catch (const results::NoRunError& e) {
  throw UsageError(e.what());
}

}  // namespace assay::host::cli
