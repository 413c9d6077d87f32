#include "exports/formats.hpp"

#include <fmt/format.h>

#include <utility>

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

// What people call the programs for which there is a format or another way.
constexpr std::pair<const char*, const char*> others[] = {
    {"prometheus", "Prometheus reads openmetrics"},
    {"perfetto", "Perfetto reads chrome-trace"},
    {"mlflow", "for MLflow there is scripts/upload_run in assay's sources (docs/history.md)"},
    {"wandb", "for Weights & Biases there is scripts/upload_run in assay's sources (docs/history.md)"},
};

}  // namespace

std::span<const Format> all_formats() { return formats; }

const Format& format_of(const std::string& name) {
  if (const Format* named = format_named(all_formats(), name)) return *named;
  for (const auto& [program, way] : others)
    if (name == program) throw UsageError(fmt::format("--format is '{}'; {}", name, way));
  throw UsageError(fmt::format("--format is '{}'{}", name, known_instead(name, format_names(all_formats()))));
}

}  // namespace assay::host::exports
