#include "imports/formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/suggest.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
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
};

}  // namespace

std::span<const Format> all_formats() { return formats; }

const Format& format_of(std::string_view text, const std::string& name) {
  std::vector<std::string> names;
  for (const Format& format : formats) {
    names.emplace_back(format.name);
    if (name.empty() ? format.is_it(text) : name == format.name) return format;
  }
  if (name.empty())
    throw ImportError(fmt::format("it looks like none of {}; --format says which it is", fmt::join(names, ", ")));
  throw ImportError(fmt::format("there is no format '{}'; expected one of {}{}", name, fmt::join(names, ", "),
                                did_you_mean(name, names)));
}

}  // namespace assay::host::imports
