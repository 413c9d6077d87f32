// `assay kernels`: where the time of a step goes on the device.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "record/case_record.hpp"
#include "results/table.hpp"

namespace assay::host::console {

struct KernelsRequest {
  std::string run;
  std::optional<std::string> by;
  std::vector<std::int64_t> cases;  // by their numbers from 1; none: all
  std::optional<std::int64_t> top;
  std::string format = "terminal";
  // Makes the table of --by plan.
  std::function<results::Table(const std::vector<record::CaseRecord>&)> beside_plan;
};

// Prints the table. Returns the exit code. Throws UsageError.
int show_kernels(const KernelsRequest& request);

}  // namespace assay::host::console
