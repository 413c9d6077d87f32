#include "exports/formats.hpp"

#include <fmt/format.h>

#include "common/suggest.hpp"
#include "common/usage_error.hpp"

namespace assay::host::exports {
namespace {

constexpr Format formats[] = {
    {"openmetrics", "a text file for Prometheus", openmetrics},
    {"google-benchmark", "its JSON, which its compare.py reads", google_benchmark_json},
    {"mlperf", "lines of :::MLLOG, which mlperf-logging reads", mlperf_lines},
};

}  // namespace

std::span<const Format> all_formats() { return formats; }

const Format& format_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Format& format : formats) {
    names.emplace_back(format.name);
    if (name == format.name) return format;
  }
  throw UsageError(fmt::format("--format is '{}'{}", name, known_instead(name, names)));
}

}  // namespace assay::host::exports
