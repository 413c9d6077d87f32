// The forecast of one family, or why there is none: what it comes from, and what is assumed.
#pragma once
#include "forecast/step_forecast.hpp"
#include "forecast/wires.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::forecast {

inline constexpr double ms_of_a_s = 1e3;

struct FamilyForecast {
  const StepFamily* family = nullptr;
  std::set<int> from;
  std::vector<StepForecast> forecasts;
  Assumptions assumptions;
  const Wires::value_type* wires = nullptr;  // that the assumptions have; nullptr: of one rank none is needed
};

// A command asks the same question of all families.
struct Question {
  std::vector<int> ranks;
  std::set<int> allowed;  // numbers of ranks whose records count; empty: all
  std::string among;      // which those are: " (of those on ...)", or "" where all count
  std::optional<Network> network;
};

struct Answer {
  std::optional<FamilyForecast> forecast;
  // "CASE: why": why there is no forecast, or none on some of the ranks.
  std::vector<std::string> left_out;
};
// The answer points to the family and into the wires.
Answer forecast_of(const StepFamily& family, const Question& question, const Wires& wires);

// " (of those on the 1, 2 ranks of --from-ranks)", or "" where all count.
std::string among_text(const std::set<int>& allowed);
// The command that makes records for a forecast on a CPU or on a GPU: "'assay run configs/all-reduce.toml'". `what`:
// the experiment's name without its device.
std::string command_for(const std::string& what, bool is_cpu);

}  // namespace assay::host::forecast
