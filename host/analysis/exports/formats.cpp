#include "exports/formats.hpp"

#include <fmt/format.h>

#include "common/format_choice.hpp"
#include "common/suggest.hpp"
#include "common/usage_error.hpp"

namespace assay::host::exports {
namespace {

constexpr Format formats[] = {
    {"openmetrics", "a text file for Prometheus", openmetrics, nullptr},
    {"google-benchmark", "its JSON, which its compare.py reads", google_benchmark_json, nullptr},
    {"mlperf", "lines of :::MLLOG, which mlperf-logging reads", mlperf_lines, nullptr},
    {"chrome-trace", "JSON that Perfetto and chrome://tracing show", chrome_trace, nullptr},
    {"tensorboard", "a folder of event files, one for each case", nullptr, tensorboard_events},
};

}  // namespace

std::span<const Format> all_formats() { return formats; }

const Format& format_of(const std::string& name) {
  if (const Format* named = format_named(all_formats(), name)) return *named;
  throw UsageError(fmt::format("--format is '{}'{}", name, known_instead(name, format_names(all_formats()))));
}

}  // namespace assay::host::exports
