#include "imports/formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/format_choice.hpp"
#include "common/suggest.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {

// Each is in the file of its format.
ImportedRun read_nccl_tests(std::string_view text, const ImportOptions& options);
ImportedRun read_nvbench(std::string_view text, const ImportOptions& options);
ImportedRun read_hyperfine(std::string_view text, const ImportOptions& options);
ImportedRun read_pytorch(std::string_view text, const ImportOptions& options);
ImportedRun read_nccl_json(std::string_view text, const ImportOptions& options);
ImportedRun read_google_benchmark(std::string_view text, const ImportOptions& options);
ImportedRun read_pytest_benchmark(std::string_view text, const ImportOptions& options);
ImportedRun read_hyperfine_csv(std::string_view text, const ImportOptions& options);
ImportedRun read_nvbench_csv(std::string_view text, const ImportOptions& options);
ImportedRun read_mlperf(std::string_view text, const ImportOptions& options);
ImportedRun read_osu(std::string_view text, const ImportOptions& options);

namespace {

constexpr Format formats[] = {
    {"nccl-tests", "the output of all_reduce_perf and its like",
     [](std::string_view text) { return has(text, "busbw") && has(text, "algbw"); }, read_nccl_tests},
    {"nvbench", "the file of --json",
     [](std::string_view text) { return has(text, "\"benchmarks\"") && has(text, "\"states\""); }, read_nvbench},
    {"hyperfine", "the file of --export-json",
     [](std::string_view text) { return has(text, "\"results\"") && has(text, "\"command\""); }, read_hyperfine},
    {"pytorch", "PyTorch's format of benchmark results",
     [](std::string_view text) { return has(text, "\"benchmark_values\""); }, read_pytorch},
    {"nccl-tests-json", "the file of nccl-tests -J, or rccl-tests' lines of JSON",
     [](std::string_view text) {
       return has(text, "\"out_of_place\"") || (has(text, "\"algBw\"") && has(text, "\"busBw\""));
     },
     read_nccl_json},
    {"google-benchmark", "its JSON, of --benchmark_format or --benchmark_out",
     [](std::string_view text) { return has(text, "\"benchmarks\"") && has(text, "\"time_unit\""); },
     read_google_benchmark},
    {"pytest-benchmark", "the file of --benchmark-json",
     [](std::string_view text) { return has(text, "\"benchmarks\"") && has(text, "\"machine_info\""); },
     read_pytest_benchmark},
    {"hyperfine-csv", "the file of --export-csv",
     [](std::string_view text) { return text.starts_with("command,mean,"); }, read_hyperfine_csv},
    {"nvbench-csv", "the file of --csv", [](std::string_view text) { return text.starts_with("Benchmark,Device,"); },
     read_nvbench_csv},
    {"mlperf", "lines of :::MLLOG", [](std::string_view text) { return has(text, ":::MLLOG "); }, read_mlperf},
    {"osu", "the output of OSU micro-benchmarks", [](std::string_view text) { return has(text, "# OSU "); }, read_osu},
};

}  // namespace

std::span<const Format> all_formats() { return formats; }

const Format& format_of(std::string_view text, const std::string& name) {
  if (!name.empty()) {
    if (const Format* named = format_named(all_formats(), name)) return *named;
    throw ImportError(fmt::format("there is no format '{}'{}", name, known_instead(name, format_names(all_formats()))));
  }
  for (const Format& format : formats)
    if (format.is_it(text)) return format;
  if (is_blank(text)) throw ImportError("the file is empty");
  throw ImportError(fmt::format("its format was not recognised; name it with --format, as one of {}",
                                fmt::join(format_names(all_formats()), ", ")));
}

}  // namespace assay::host::imports
