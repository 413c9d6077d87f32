#include "profile/kernel_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "profile/kernel_class.hpp"
#include "profile/markdown_cell.hpp"

namespace assay::host::profile {
namespace {

struct Sum {
  std::uint64_t count = 0;
  double time_ns = 0;
};
using ByName = std::map<std::string, Sum>;  // by mangled name: readable ones are made once for each, at the end

std::size_t phase_at(const std::vector<measure::PhaseSpan>& spans, double time_ns, std::size_t outside) {
  std::size_t phase = outside;
  std::optional<double> shortest;
  for (const measure::PhaseSpan& span : spans) {
    const double length = span.end_ns - span.begin_ns;
    if (time_ns < span.begin_ns || time_ns >= span.end_ns || (shortest && length >= *shortest)) continue;
    shortest = length;
    phase = span.phase;
  }
  return phase;
}

std::vector<record::KernelRow> phase_rows(const ByName& sums, double steps) {
  struct Row {
    std::string kind, name;
    Sum sum;
  };
  std::vector<Row> rows;
  double total_ns = 0;
  for (const auto& [mangled, sum] : sums) {
    total_ns += sum.time_ns;
    const std::string name = short_kernel_name(mangled);
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
    if (same != rows.end())  // names that differ beyond what is shown
      same->sum.count += sum.count, same->sum.time_ns += sum.time_ns;
    else
      rows.push_back({kernel_class(mangled), name, sum});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.sum.time_ns > b.sum.time_ns; });
  std::vector<record::KernelRow> out;
  for (const Row& row : rows)
    out.push_back({row.kind, row.name, static_cast<double>(row.sum.count) / steps, row.sum.time_ns * 1e-3 / steps,
                   total_ns > 0 ? row.sum.time_ns / total_ns : 0.0});
  return out;
}

struct ClassSum {
  std::string phase, kind;
  double count = 0, time_us = 0, share = 0;
};

std::vector<ClassSum> by_class(const record::Kernels& kernels) {
  std::vector<ClassSum> all;
  for (const auto& [phase, rows] : kernels) {
    std::vector<ClassSum> sums;
    for (const record::KernelRow& row : rows) {
      auto found =
          std::find_if(sums.begin(), sums.end(), [&](const ClassSum& s) { return s.kind == row.kernel_class; });
      if (found == sums.end()) found = sums.insert(sums.end(), ClassSum{phase, row.kernel_class});
      found->count += row.count;
      found->time_us += row.time_us;
      found->share += row.share;
    }
    std::stable_sort(sums.begin(), sums.end(), [](auto& a, auto& b) { return a.time_us > b.time_us; });
    all.insert(all.end(), sums.begin(), sums.end());
  }
  return all;
}

std::string count_text(double count) {
  return count == static_cast<double>(static_cast<std::int64_t>(count)) ? fmt::format("{:.0f}", count)
                                                                        : fmt::format("{:.1f}", count);
}

}  // namespace

bool place_work(const std::vector<TracedWork>& work, std::vector<TracedStep>& steps) {
  const auto anchors = std::count_if(work.begin(), work.end(), [](const TracedWork& w) { return w.is_anchor; });
  if (static_cast<std::size_t>(anchors) != steps.size()) return false;
  std::size_t begun = 0;
  double origin_ns = 0;
  for (const TracedWork& w : work) {
    if (w.is_anchor) {
      ++begun;
      origin_ns = w.end_ns;
    } else if (begun > 0) {
      steps[begun - 1].work.push_back({w.name, w.start_ns - origin_ns, w.end_ns - origin_ns, false, w.is_copy});
    }
  }
  return true;
}

double misplaced_ns(const TracedStep& step) {
  double most = 0;
  for (const TracedWork& w : step.work)
    if (!w.is_copy) most = std::max({most, -w.start_ns, w.end_ns - step.length_ns});
  return most;
}

double clock_tolerance_ns(double length_ns) { return 10e3 + 1e-4 * length_ns; }

record::Kernels kernels_of(const std::vector<TracedStep>& steps, const std::vector<std::string>& phase_names) {
  const std::size_t outside = phase_names.size();
  std::vector<ByName> phases(phase_names.size() + 1);
  for (const TracedStep& step : steps)
    for (const TracedWork& w : step.work) {
      Sum& sum = phases[phase_at(step.phases, (w.start_ns + w.end_ns) / 2, outside)][w.name];
      ++sum.count;
      sum.time_ns += w.end_ns - w.start_ns;
    }
  record::Kernels out;
  for (std::size_t i = 0; i <= outside; ++i)
    if (!phases[i].empty())
      out.emplace_back(i == outside ? "outside" : phase_names[i],
                       phase_rows(phases[i], static_cast<double>(steps.size())));
  return out;
}

std::vector<std::string> kernel_lines(const record::Kernels& kernels) {
  const std::vector<ClassSum> sums = by_class(kernels);
  if (sums.empty()) return {};
  std::size_t widest = 5;
  for (const ClassSum& s : sums) widest = std::max(widest, s.phase.size());
  std::vector<std::string> lines;
  lines.push_back(fmt::format("  {:<{}}  {:<16}  {:>8}  {:>12}  {:>6}", "phase", widest, "kernels", "launches",
                              "time, us", "share"));
  for (const ClassSum& s : sums)
    lines.push_back(fmt::format("  {:<{}}  {:<16}  {:>8}  {:>12.1f}  {:>5.1f}%", s.phase, widest, s.kind,
                                count_text(s.count), s.time_us, s.share * 100));
  return lines;
}

std::string kernel_markdown(const record::Kernels& kernels, const std::string& title) {
  std::string out = fmt::format("# {}\n\nOf one step. The share is of the phase's kernel time.\n\n", title);
  out += "| phase | class | launches | time, us | share |\n| --- | --- | ---: | ---: | ---: |\n";
  for (const ClassSum& s : by_class(kernels))
    out += fmt::format("| {} | {} | {} | {:.1f} | {:.1f}% |\n", markdown_cell(s.phase), s.kind, count_text(s.count),
                       s.time_us, s.share * 100);
  for (const auto& [phase, rows] : kernels) {
    out += fmt::format(
        "\n## {}\n\n| class | kernel | launches | time, us | share |\n| --- | --- | ---: | ---: | ---: |\n", phase);
    for (const record::KernelRow& row : rows)
      out += fmt::format("| {} | `{}` | {} | {:.1f} | {:.1f}% |\n", row.kernel_class, markdown_cell(row.name),
                         count_text(row.count), row.time_us, row.share * 100);
  }
  return out;
}

}  // namespace assay::host::profile
