#include "profile/counted_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text_format.hpp"
#include "profile/kernel_class.hpp"
#include "profile/markdown_cell.hpp"
#include "record/device_peaks.hpp"

namespace assay::host::profile {
namespace {

using record::CountedKernel;
using record::Number;

// A sum of numbers, none of which may be missing.
struct WholeSum {
  bool is_whole = true;
  double value = 0;
  void add(const Number& number) {
    is_whole = is_whole && number;
    value += number.value_or(0);
  }
  Number get() const { return is_whole ? Number(value) : Number(); }
};

// What rows of launches, or of kernels, come to together.
struct Together {
  std::int64_t count = 0;
  double time_us = 0;
  WholeSum dram_bytes, flops;
  WholeSum dram_time, sm_time, tensor_time, occupancy_time;  // percent times time

  void add(std::int64_t launches, const auto& one) {
    count += launches;
    time_us += one.time_us;
    dram_bytes.add(one.dram_bytes), flops.add(one.flops);
    const auto weigh = [&](WholeSum& sum, const Number& percent) {
      sum.add(percent ? Number(*percent * one.time_us) : Number());
    };
    weigh(dram_time, one.dram_percent), weigh(sm_time, one.sm_percent);
    weigh(tensor_time, one.tensor_percent), weigh(occupancy_time, one.occupancy_percent);
  }

  CountedKernel kernel(std::string kernel_class, std::string name) const {
    CountedKernel kernel{std::move(kernel_class), std::move(name), count, time_us, dram_bytes.get(), flops.get()};
    const auto mean = [&](const WholeSum& sum) {
      return sum.is_whole && time_us > 0 ? Number(sum.value / time_us) : Number();
    };
    kernel.dram_percent = mean(dram_time), kernel.sm_percent = mean(sm_time);
    kernel.tensor_percent = mean(tensor_time), kernel.occupancy_percent = mean(occupancy_time);
    return kernel;
  }
};

// In the order in which the first of each came; then the longest first.
template <class Key, class Items, class Of, class Count>
std::vector<std::pair<Key, Together>> grouped(const Items& items, Of key_of, Count count_of) {
  std::vector<std::pair<Key, Together>> groups;
  for (const auto& item : items) {
    const Key key = key_of(item);
    auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == key; });
    if (found == groups.end()) found = groups.insert(groups.end(), {key, {}});
    found->second.add(count_of(item), item);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.time_us > b.second.time_us; });
  return groups;
}

Number over(const Number& a, const Number& b) { return a && b && *b > 0 ? Number(*a / *b) : Number(); }

constexpr int shown_digits = 3;
std::string shown(const Number& number, double scale = 1) {
  return number ? significant_digits(*number * scale, shown_digits) : "-";
}
std::string shown_percent(const Number& percent) { return percent ? fmt::format("{:.0f}%", *percent) : "-"; }

// ---- tables ---------------------------------------------------------------------------------------------------------

constexpr std::array heads{"launches", "time, us",  "DRAM, MB",  "GB/s", "of peak",
                           "TFLOP/s",  "FLOP/byte", "occupancy", "bound"};

std::vector<std::string> cells_of(const CountedKernel& kernel, const Number& peak_gbytes_per_s) {
  const Number rate = gbytes_per_s(kernel);
  const Number of_peak = over(rate, peak_gbytes_per_s);
  return {fmt::format("{}", kernel.count),
          fmt::format("{:.1f}", kernel.time_us),
          shown(kernel.dram_bytes, 1e-6),
          shown(rate),
          shown_percent(of_peak ? Number(*of_peak * 100) : Number()),
          shown(gflop_per_s(kernel), 1e-3),
          shown(flops_per_byte(kernel)),
          shown_percent(kernel.occupancy_percent),
          kernel.bound.empty() ? "-" : kernel.bound};
}

Number peak_of(const record::CaseResult& result) {
  const auto peak = result.device ? record::stated_peak(result.device->name, "") : std::nullopt;
  return peak ? peak->gbytes_per_s : Number();
}

constexpr std::size_t name_width = 40;

}  // namespace

std::string bound_of(const Number& dram_percent, const Number& sm_percent, const Number& tensor_percent) {
  if (!dram_percent || !sm_percent) return "";
  if (std::max(*dram_percent, *sm_percent) < bound_from_percent) return "latency";
  if (*dram_percent >= *sm_percent) return "memory";
  return tensor_percent.value_or(0) >= bound_from_percent ? "tensor cores" : "instructions";
}

std::vector<CountedKernel> counted_kernels(const std::vector<CountedLaunch>& launches) {
  using Key = std::pair<std::string, std::string>;  // class, name
  std::vector<CountedKernel> kernels;
  for (const auto& [key, together] : grouped<Key>(
           launches,
           [](const CountedLaunch& launch) { return Key(kernel_class(launch.name), short_kernel_name(launch.name)); },
           [](const CountedLaunch&) { return 1; }))
    kernels.push_back(together.kernel(key.first, key.second));
  // Of one kernel: what kernels of many kinds are on the average bounds none of them.
  for (CountedKernel& kernel : kernels)
    kernel.bound = bound_of(kernel.dram_percent, kernel.sm_percent, kernel.tensor_percent);
  return kernels;
}

Number gbytes_per_s(const CountedKernel& kernel) {
  return kernel.dram_bytes && kernel.time_us > 0 ? Number(*kernel.dram_bytes / kernel.time_us * 1e-3) : Number();
}
Number gflop_per_s(const CountedKernel& kernel) {
  return kernel.flops && kernel.time_us > 0 ? Number(*kernel.flops / kernel.time_us * 1e-3) : Number();
}
Number flops_per_byte(const CountedKernel& kernel) { return over(kernel.flops, kernel.dram_bytes); }

CountedKernel sum_of(const std::vector<CountedKernel>& kernels) {
  Together all;
  for (const CountedKernel& kernel : kernels) all.add(kernel.count, kernel);
  return all.kernel("", "all");
}

std::vector<std::string> beside_the_workload(const record::CounterProfile& profile,
                                             const std::optional<record::Work>& work) {
  const CountedKernel all = sum_of(profile.kernels);
  std::vector<std::string> lines;
  const auto beside = [&](const Number& counted, std::uint64_t stated, const char* unit, const char* what) {
    if (!counted) return;
    std::string line = fmt::format("{} {} counted", significant_digits(*counted * 1e-9, shown_digits), unit);
    line += stated > 0 ? fmt::format(", {} by the workload's own account of a step ({}): a ratio of {}",
                                     significant_digits(static_cast<double>(stated) * 1e-9, shown_digits), what,
                                     significant_digits(*counted / static_cast<double>(stated), shown_digits))
                       : fmt::format("; the workload states no {} of a step", what);
    lines.push_back(line + ".");
  };
  beside(all.flops, work ? work->flops : 0, "GFLOP", "operations");
  beside(all.dram_bytes, work ? work->bytes : 0, "GB of the device's memory", "bytes");
  if (profile.is_at_limit)
    lines.push_back(
        fmt::format("The {} launches are as many as [profile] ncu_launches allows: the step may have more, "
                    "and the sums may be of a part of it.",
                    profile.launches));
  return lines;
}

std::vector<std::string> counted_lines(const record::CaseResult& result, std::size_t most_rows) {
  const record::CounterProfile& profile = result.ncu.value();
  std::vector<std::vector<std::string>> rows{{"kernel"}};
  rows[0].insert(rows[0].end(), heads.begin(), heads.end());
  const std::size_t shown_count = std::min(most_rows, profile.kernels.size());
  for (std::size_t i = 0; i <= shown_count; ++i) {
    const CountedKernel kernel = i < shown_count ? profile.kernels[i] : sum_of(profile.kernels);
    std::vector<std::string> row{fit_to_width(kernel.name, name_width)};
    for (std::string& cell : cells_of(kernel, peak_of(result))) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line = "  " + pad_to(row[0], widths[0], Align::left);
    for (std::size_t i = 1; i + 1 < row.size(); ++i) line += "  " + pad_to(row[i], widths[i], Align::right);
    lines.push_back(line + "  " + row.back());
  }
  if (shown_count < profile.kernels.size())
    lines.push_back(fmt::format("  {} more kernels are in {}", profile.kernels.size() - shown_count,
                                profile.file.empty() ? "the record" : profile.file));
  for (const std::string& line : beside_the_workload(profile, result.work)) lines.push_back("  " + line);
  return lines;
}

std::string counted_markdown(const record::CaseResult& result) {
  const record::CounterProfile& profile = result.ncu.value();
  std::string out = fmt::format(
      "# Kernels of one step, counted by Nsight Compute {}\n\nEach kernel ran alone, several times, with cold caches: "
      "times are not those of a step. \"Of peak\" is the rate over the maker's bandwidth of the device. A kernel is "
      "bound by what is "
      "busy for at least {:.0f}% of its most; where nothing is, by latency.\n\n",
      profile.version, bound_from_percent);
  for (const std::string& line : beside_the_workload(profile, result.work)) out += line + "\n";
  const auto table = [&](const char* first, const std::vector<CountedKernel>& kernels, bool by_name) {
    out += fmt::format("\n| {} |", first);
    std::string rule = by_name ? "\n| --- | --- |" : "\n| --- |";
    for (const char* head : heads) {
      out += fmt::format(" {} |", head);
      rule += std::string_view(head) == "bound" ? " --- |" : " ---: |";
    }
    out += rule + "\n";
    for (const CountedKernel& kernel : kernels) {
      out += by_name ? fmt::format("| {} | `{}` |", kernel.kernel_class, markdown_cell(kernel.name))
                     : fmt::format("| {} |", kernel.kernel_class);
      for (const std::string& cell : cells_of(kernel, peak_of(result))) out += fmt::format(" {} |", cell);
      out += "\n";
    }
  };
  std::vector<CountedKernel> classes;
  for (const auto& [name, together] : grouped<std::string>(
           profile.kernels, [](const CountedKernel& kernel) { return kernel.kernel_class; },
           [](const CountedKernel& kernel) { return kernel.count; }))
    classes.push_back(together.kernel(name, ""));
  classes.push_back(sum_of(profile.kernels));
  classes.back().kernel_class = "all";
  table("class", classes, false);
  table("class | kernel", profile.kernels, true);
  return out;
}

}  // namespace assay::host::profile
