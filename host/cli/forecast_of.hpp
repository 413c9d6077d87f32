// The forecast of an experiment, as `assay plan` and the dry runs of `run` and `submit` show it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/load_experiment.hpp"
#include "forecast/forecast.hpp"
#include "results/find_runs.hpp"

namespace assay::host::cli {

struct ForecastOptions {
  std::optional<forecast::DeviceDescription> device;  // nothing: this machine's, as [run] device says
  std::vector<record::CaseRecord> earlier;
  std::string largest;
};

// One for each device that the experiment's cases run on: one, unless [run] device is swept.
struct ForecastOfExperiment {
  // The cases that the forecast's refer to.
  std::vector<forecast::WalkRequest> cases;
  forecast::Forecast forecast;
  // What the plugin itself refuses, where the file says it.
  std::vector<experiment::Mistake> mistakes;
};
ForecastOfExperiment forecast_of(const LoadedExperiment& loaded, const ForecastOptions& options);

// Prints the table of it, and what belongs below.
void print_forecast(const ForecastOfExperiment& planned, const std::string& largest = "");
// What a dry run adds to its list of cases: the forecast, and the mistakes that the plugin alone can tell. Returns the
// exit code. A device that cannot be asked is told, and no mistake.
int show_forecast_of_dry_run(const LoadedExperiment& loaded, const ForecastOptions& options);

// The device of this machine that [run] device means, with the peaks that its maker states. Opens it in a process of
// its own. Throws forecast::DeviceFileError where it cannot be used.
forecast::DeviceDescription device_of_this_machine(const std::string& wanted);

// "h200" and its like, or "auto", "cpu", "cuda" of this machine. Throws forecast::DeviceFileError.
forecast::DeviceDescription device_asked_for(const std::string& given);

// Of all runs that are named: run folders, cases.jsonl, summaries, folders with several of these. Throws NoRunError.
std::vector<record::CaseRecord> earlier_records(const Arguments& given);

}  // namespace assay::host::cli
