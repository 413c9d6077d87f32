// `assay forecast`: a step on many ranks, from runs on few.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::forecast {

struct ForecastRequest {
  std::vector<std::string> runs;
  std::optional<std::string> ranks, from_ranks, ranks_per_machine;
  std::optional<double> network_gbytes_per_s, network_latency_us;
  bool check = false;
  std::optional<double> within_percent;  // of a check: more is a failure
  bool json = false;
};

// Throws UsageError.
int forecast_steps(const ForecastRequest& request);

}  // namespace assay::host::forecast
