#include "plan/counted_beside_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "plan/experiment_plan.hpp"
#include "profile/counted_kernels.hpp"
#include "profile/kernel_class.hpp"
#include "profile/kernel_rows.hpp"

namespace assay::host::plan {
namespace {

namespace fs = std::filesystem;
using record::CaseRecord;
using record::Cell;
using record::Number;

std::size_t kind_of_kernel(const record::CountedKernel& kernel) {
  if (kernel.kernel_class == profile::class_of_products) return product_kind;
  if (kernel.kernel_class == profile::class_of_attention) return attention_kind;
  return ASSAY_OPERATION_OTHER;
}

experiment::DeviceDescription device_of_record(const CaseRecord& r) {
  const record::Device& recorded = r.result.device.value();
  experiment::DeviceDescription device;
  device.file = "the run's record";
  device.kind = recorded.kind, device.name = recorded.name;
  device.memory_total_mib = recorded.memory_total_mib.value_or(0);
  device.compute_units = recorded.compute_units.value_or(0);
  return device;
}

run::LoadedExperiment experiment_of_run(const fs::path& run, const std::vector<std::string>& plugin_folders) {
  const fs::path file = (fs::is_directory(run) ? run : run.parent_path()) / "experiment.toml";
  if (!fs::exists(file))
    throw UsageError(fmt::format(
        "--by plan needs a run folder, whose experiment.toml says what was run; {} is not there", file.string()));
  run::LoadResult result = run::load_experiment({file, std::nullopt, {}, {}, plugin_folders});
  if (result.loaded) return std::move(*result.loaded);
  throw UsageError(fmt::format("{} cannot be planned: {}", file.string(), result.mistakes.at(0).to_string()));
}

// The walk of the record's case; null, and a line for the user, where it has none.
const Walk* walk_of(const CaseRecord& r, const CasesPlan& planned) {
  for (const PlannedCase& c : planned.cases) {
    if (c.request.values.index != r.identity.index) continue;
    if (c.walk.state == WalkState::walked) return &c.walk;
    fmt::print(stderr, "assay: case {} is not planned: {}\n", r.identity.index + 1, one_line(c.walk.reason));
    return nullptr;
  }
  fmt::print(stderr, "assay: case {} is not planned: the run's experiment has it no more\n", r.identity.index + 1);
  return nullptr;
}

Cell scaled(const Number& value, double scale) { return value ? record::number_cell(*value * scale) : Cell{}; }
Cell ratio_of(const Number& counted, double planned) {
  return counted && planned > 0 ? record::number_cell(*counted / planned) : Cell{};
}

// One kind of operation, or all of them.
std::vector<Cell> row_of_kind(std::vector<Cell> head, const char* kind, const record::CountedKernel& counted,
                              const std::optional<OperationSum>& planned) {
  head.push_back(record::text_cell(kind));
  head.push_back(planned ? record::count_cell(planned->count) : Cell{});
  head.push_back(record::count_cell(counted.count));
  head.push_back(record::number_cell(counted.time_us));
  head.push_back(planned ? record::number_cell(planned->flops * 1e-9) : Cell{});
  head.push_back(scaled(counted.flops, 1e-9));
  head.push_back(planned ? ratio_of(counted.flops, planned->flops) : Cell{});
  head.push_back(planned ? record::number_cell(planned->bytes * 1e-6) : Cell{});
  head.push_back(scaled(counted.dram_bytes, 1e-6));
  head.push_back(planned ? ratio_of(counted.dram_bytes, planned->bytes) : Cell{});
  return head;
}

}  // namespace

results::Table counted_beside_plan(const std::vector<CaseRecord>& records, const fs::path& run,
                                   const std::vector<std::string>& plugin_folders) {
  const run::LoadedExperiment loaded = experiment_of_run(run, plugin_folders);
  const std::vector<std::string> axes = profile::axes_of(records);
  results::Table table{{"case"}, {}};
  table.columns.insert(table.columns.end(), axes.begin(), axes.end());
  for (const char* column : {"operations", "planned", "launches", "time_us", "planned.gflop", "gflop", "gflop.ratio",
                             "planned.mb", "dram_mb", "dram.ratio"})
    table.columns.emplace_back(column);
  std::map<std::string, CasesPlan> by_device;  // by its name
  for (const CaseRecord& r : records) {
    const std::string device = r.result.device.value().name;
    auto planned = by_device.find(device);
    if (planned == by_device.end()) {
      PlanOptions options;
      options.device = device_of_record(r);
      planned = by_device.emplace(device, plan_of(loaded, options).plan).first;
    }
    const Walk* const walk = walk_of(r, planned->second);
    std::optional<OperationSum> all_planned;
    if (walk) all_planned.emplace();
    for (std::size_t kind = 0; kind < operation_kinds.size(); ++kind) {
      if (kind == collective_kind) continue;  // several ranks are refused where kernels are counted
      std::vector<record::CountedKernel> kernels = r.result.ncu.value().kernels;
      std::erase_if(kernels, [kind](const record::CountedKernel& kernel) { return kind_of_kernel(kernel) != kind; });
      const auto operations = walk ? std::optional(walk->operations.at(kind)) : std::nullopt;
      if (operations) {
        all_planned->count += operations->count;
        all_planned->flops += operations->flops, all_planned->bytes += operations->bytes;
      }
      table.rows.push_back(
          row_of_kind(profile::case_head(r, axes), operation_kinds[kind], profile::sum_of(kernels), operations));
    }
    table.rows.push_back(
        row_of_kind(profile::case_head(r, axes), "all", profile::sum_of(r.result.ncu->kernels), all_planned));
  }
  return table;
}

}  // namespace assay::host::plan
