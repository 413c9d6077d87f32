#include "profile/kernel_rows.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "profile/counted_kernels.hpp"
#include "profile/kernel_class.hpp"
#include "profile/kernel_study.hpp"
#include "record/device_peaks.hpp"

namespace assay::host::profile {
namespace {

using record::CaseRecord;
using record::Cell;
using record::Number;

Cell percent(double share) { return record::number_cell(share * 100); }

// A mean over the traced steps, whole where they launch the same.
Cell launches_cell(double count) {
  const Value value = record::count_if_whole(count);
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole ? record::count_cell(*whole) : record::number_cell(count);
}

// Which case, and which part of its step.
std::vector<Cell> row_head(const CaseRecord& r, const std::vector<std::string>& axes, const KernelPart& part) {
  std::vector<Cell> cells = case_head(r, axes);
  cells.push_back(record::text_cell(part.phase));
  return cells;
}

// The share of a step's time in which a kernel ran. Of the step alone: a phase's kernels may run on beyond its mark.
Cell busy_cell(const CaseRecord& r, const KernelPart& part) {
  const auto& trace = r.result.kernel_trace;
  return part.phase == "step" && trace && trace->step_ms > 0 ? percent(trace->busy_ms / trace->step_ms) : Cell{};
}

// What fused attention spends on its softmax is not known: a word says so, in place of a 0.
Cell softmax_cell(const KernelPart& part) {
  switch (part.softmax()) {
    case Softmax::of_its_own: return percent(part.share_of_class(class_of_softmax));
    case Softmax::fused: return record::text_cell("fused");
    case Softmax::none: break;
  }
  return {};
}

Cell softmax_over_products(const KernelPart& part) {
  const double products_us = part.time_of_class_us(class_of_products);
  return part.softmax() == Softmax::of_its_own && products_us > 0
             ? record::number_cell(part.time_of_class_us(class_of_softmax) / products_us)
             : Cell{};
}

// All FLOPs that the workload counts in a step, over the time of the kernels that do them: products and attention.
Cell product_rate(const CaseRecord& r, const KernelPart& part) {
  const double time_us = part.time_of_class_us(class_of_products) + part.time_of_class_us(class_of_attention);
  if (part.phase != "step" || !r.result.work || r.result.work->flops == 0 || time_us <= 0) return {};
  return record::number_cell(static_cast<double>(r.result.work->flops) / time_us * 1e-6);
}

void add_phase(std::vector<Cell>& row, const CaseRecord& r, const KernelPart& part, const KernelPart& step) {
  row.push_back(launches_cell(part.count));
  row.push_back(record::number_cell(part.time_us));
  row.push_back(step.time_us > 0 ? percent(part.time_us / step.time_us) : Cell{});
  row.push_back(busy_cell(r, part));
  row.push_back(percent(part.share_of_class(class_of_products)));
  row.push_back(percent(part.share_of_class(class_of_attention)));
  row.push_back(softmax_cell(part));
  row.push_back(softmax_over_products(part));
  row.push_back(product_rate(r, part));
  row.push_back(part.time_us > 0 ? percent(part.kernels.at(0).time_us / part.time_us) : Cell{});
  row.push_back(part.kernels.empty() ? Cell{} : record::text_cell(part.kernels[0].name));
}

constexpr std::array phase_columns{
    "launches",          "time_us",         "step.percent",          "busy.percent",         "products.percent",
    "attention.percent", "softmax.percent", "softmax.over_products", "products.tflop_per_s", "longest.percent",
    "longest.kernel"};

void add_work(std::vector<Cell>& row, const KernelWork& work, const KernelPart& part, const KernelPart& step,
              bool with_name) {
  row.push_back(record::text_cell(work.kernel_class));
  if (with_name) row.push_back(record::text_cell(work.name));
  row.push_back(launches_cell(work.count));
  row.push_back(record::number_cell(work.time_us));
  row.push_back(part.time_us > 0 ? percent(work.time_us / part.time_us) : Cell{});
  row.push_back(step.time_us > 0 ? percent(work.time_us / step.time_us) : Cell{});
}

// A kernel that ncu has counted; a step is all of them.
void add_counts(std::vector<Cell>& row, const record::CountedKernel& kernel, double step_us, const Number& peak) {
  const auto number = [](const Number& value, double scale = 1) {
    return value ? record::number_cell(*value * scale) : Cell{};
  };
  const Number rate = gbytes_per_s(kernel);
  row.push_back(record::text_cell(kernel.kernel_class));
  row.push_back(record::text_cell(kernel.name));
  row.push_back(record::count_cell(kernel.count));
  row.push_back(record::number_cell(kernel.time_us));
  row.push_back(step_us > 0 ? percent(kernel.time_us / step_us) : Cell{});
  row.push_back(number(kernel.dram_bytes, 1e-6));
  row.push_back(number(rate));
  row.push_back(rate && peak && *peak > 0 ? percent(*rate / *peak) : Cell{});
  row.push_back(number(gflop_per_s(kernel), 1e-3));
  row.push_back(number(flops_per_byte(kernel)));
  row.push_back(number(kernel.occupancy_percent));
  row.push_back(kernel.bound.empty() ? Cell{} : record::text_cell(kernel.bound));
}

constexpr std::array counter_columns{"launches",          "time_us",      "step.percent", "dram_mb",
                                     "gbytes_per_s",      "peak.percent", "tflop_per_s",  "flops_per_byte",
                                     "occupancy.percent", "bound"};

std::vector<std::string> columns_of(KernelRows rows, const std::vector<std::string>& axes) {
  std::vector<std::string> columns{"case"};
  columns.insert(columns.end(), axes.begin(), axes.end());
  if (rows != KernelRows::counters) columns.push_back("phase");
  if (rows == KernelRows::phases) {
    columns.insert(columns.end(), phase_columns.begin(), phase_columns.end());
    return columns;
  }
  columns.push_back("class");
  if (rows != KernelRows::classes) columns.push_back("kernel");
  if (rows == KernelRows::counters) {
    columns.insert(columns.end(), counter_columns.begin(), counter_columns.end());
    return columns;
  }
  for (const char* figure : {"launches", "time_us", "phase.percent", "step.percent"}) columns.push_back(figure);
  return columns;
}

}  // namespace

std::vector<std::string> axes_of(const std::vector<CaseRecord>& records) {
  std::vector<std::string> axes;
  for (const CaseRecord& r : records)
    for (const auto& [axis, value] : r.identity.axes)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  return axes;
}

std::vector<Cell> case_head(const CaseRecord& r, const std::vector<std::string>& axes) {
  std::vector<Cell> cells{record::input_cell(r.identity.index + 1)};
  for (const std::string& axis : axes) {
    const Value* value = record::find(r.identity.axes, axis);
    cells.push_back(value ? record::input_cell(*value) : Cell{});
  }
  return cells;
}

bool has_rows(const CaseRecord& r, KernelRows rows) {
  if (!r.result.is_ok()) return false;
  if (rows == KernelRows::counters || rows == KernelRows::plan) return r.result.ncu && !r.result.ncu->kernels.empty();
  return r.result.kernels && !r.result.kernels->empty();
}

results::Table kernel_table(const std::vector<CaseRecord>& records, KernelRows rows, std::size_t most_rows) {
  const std::vector<std::string> axes = axes_of(records);
  results::Table table{columns_of(rows, axes), {}};
  for (const CaseRecord& r : records) {
    if (rows == KernelRows::counters) {
      const std::vector<record::CountedKernel>& kernels = r.result.ncu.value().kernels;
      const double step_us = sum_of(kernels).time_us;
      const auto peak = r.result.device ? record::stated_peak(r.result.device->name, "") : std::nullopt;
      for (std::size_t i = 0; i < kernels.size() && (most_rows == 0 || i < most_rows); ++i) {
        table.rows.push_back(case_head(r, axes));
        add_counts(table.rows.back(), kernels[i], step_us, peak ? peak->gbytes_per_s : Number());
      }
      continue;
    }
    const std::vector<KernelPart> parts = kernel_parts(r.result.kernels.value());
    for (const KernelPart& part : parts) {
      if (rows == KernelRows::phases) {
        table.rows.push_back(row_head(r, axes, part));
        add_phase(table.rows.back(), r, part, parts[0]);
        continue;
      }
      const bool with_name = rows == KernelRows::kernels;
      const std::vector<KernelWork>& works = with_name ? part.kernels : part.classes;
      const std::size_t count = most_rows == 0 ? works.size() : std::min(most_rows, works.size());
      for (std::size_t i = 0; i < count; ++i) {
        table.rows.push_back(row_head(r, axes, part));
        add_work(table.rows.back(), works[i], part, parts[0], with_name);
      }
    }
  }
  return table;
}

}  // namespace assay::host::profile
