#include "profile/nsys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::host::profile {

namespace fs = std::filesystem;

std::vector<std::string> nsys_arguments(const fs::path& output, const std::vector<std::string>& trace,
                                        std::size_t ranges) {
  return {
      "profile",
      fmt::format("--trace={}", trace.empty() ? "none" : fmt::format("{}", fmt::join(trace, ","))),
      "--capture-range=cudaProfilerApi",
      // The default ends the profiled program with its range; it has yet to verify and to send its record.
      ranges > 1 ? fmt::format("--capture-range-end=repeat:{}", ranges) : "--capture-range-end=stop",
      "--cuda-graph-trace=node",  // the kernels of a step that is one graph
      "--sample=none",
      "--cpuctxsw=none",
      "--wait=primary",
      "--force-overwrite=true",
      "--output=" + output.string(),
  };
}

}  // namespace assay::host::profile
