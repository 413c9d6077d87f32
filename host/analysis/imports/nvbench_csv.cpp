// The file of nvbench's --csv: a row for each state, with the values of its axes before the column "Skipped" and its
// summaries behind it, by their names and units. Several summaries have one name: each Noise is of the time before it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/filter.hpp"
#include "imports/csv_text.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

using CsvRow = std::vector<std::string>;

// "CPU-Time-Noise" of a Noise behind "CPU Time (sec)"; a second "Samples" is named by the column before it as well.
std::vector<std::string> names_of_summaries(const CsvRow& columns, std::size_t first) {
  std::vector<std::string> names(columns.size());
  std::set<std::string> taken;
  for (std::size_t i = first; i < columns.size(); ++i) {
    names[i] = columns[i];
    if (columns[i] == "Noise" || taken.contains(columns[i])) {
      std::string owner = i > first ? columns[i - 1] : "";
      if (const std::size_t unit = owner.find(" ("); unit != owner.npos) owner.resize(unit);
      names[i] = owner + " " + columns[i];
    }
    taken.insert(names[i]);
  }
  return names;
}

void add_axes(const CsvRow& columns, const CsvRow& row, std::size_t skipped, record::CaseRecord& record) {
  for (std::size_t i = 3; i < skipped; ++i) {
    const std::string& name = columns[i];
    // "n (pow2)" has as "2^10" what "n" has. An axis of another benchmark of the file is empty.
    const bool is_twin = name.ends_with(" (pow2)") &&
                         std::find(columns.begin(), columns.end(), name.substr(0, name.size() - 7)) != columns.end();
    if (!is_twin && !row[i].empty()) record.identity.params.emplace_back(name, value_of_text(row[i]));
  }
}

void add_summaries(const std::vector<std::string>& names, const CsvRow& row, std::size_t first,
                   record::CaseRecord& record, std::set<std::string>& others) {
  std::map<std::string, double> figures;
  for (std::size_t i = first; i < row.size(); ++i)
    if (const auto number = number_in(row[i]))
      figures.emplace(names[i], *number);
    else if (!row[i].empty())
      others.insert(folder_name(names[i]));
  const auto take = [&figures](const char* name) -> std::optional<double> {
    const auto found = figures.find(name);
    if (found == figures.end()) return std::nullopt;
    const double value = found->second;
    figures.erase(found);
    return value;
  };
  const bool has_gpu_time = figures.contains("GPU Time (sec)");
  const auto mean_s = take(has_gpu_time ? "GPU Time (sec)" : "CPU Time (sec)");
  if (!mean_s || !is_time_ms(*mean_s * 1e3))
    return fail(record, mean_s ? fmt::format("its mean time is {} s", *mean_s)
                               : "it has no mean time that is a number (GPU Time, CPU Time)");
  const auto noise = spread_of(take(has_gpu_time ? "GPU Time Noise" : "CPU Time Noise"));
  record::Phase step = step_of_mean(*mean_s * 1e3, noise ? std::optional(*noise * *mean_s * 1e3) : std::nullopt,
                                    count_of(take("Samples")));
  if (const auto host_s = take("CPU Time (sec)"); host_s && is_time_ms(*host_s * 1e3))
    step.host_mean_ms = *host_s * 1e3;
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", step);
  record::Rates rates;
  if (const auto bytes = take("GlobalMem BW (bytes/sec)")) rates.gbytes_per_s = *bytes / 1e9;
  rates.items_per_s = take("Elem/s (elem/sec)");
  if (rates.gbytes_per_s || rates.items_per_s) record.result.rates = rates;
  for (const auto& [name, value] : figures)
    add_metric(record, folder_name(name), value, name.ends_with("(sec)") ? "s" : "", Direction::neither);
}

}  // namespace

ImportedRun read_nvbench_csv(std::string_view text, const ImportOptions& options) {
  const auto rows = csv_table(text);
  const auto skipped =
      rows.empty() ? std::ptrdiff_t{0} : std::find(rows[0].begin(), rows[0].end(), "Skipped") - rows[0].begin();
  const auto first = static_cast<std::size_t>(skipped) + 1;
  if (rows.size() < 2 || skipped < 3 || first > rows[0].size())
    throw ImportError("there is no row under 'Benchmark,Device,Device Name,...,Skipped,...'; expected nvbench's --csv");
  const std::vector<std::string> names = names_of_summaries(rows[0], first);
  std::set<std::string> devices, others;
  for (std::size_t i = 1; i < rows.size(); ++i) devices.insert(rows[i][1]);
  ImportedRun run;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const CsvRow& row = rows[i];
    record::CaseRecord record = new_record("nvbench:" + row[0], run.records.size());
    add_axes(rows[0], row, first - 1, record);
    record.result.device.emplace();
    record.result.device->kind = row[1].empty() ? "cpu" : "cuda";
    record.result.device->name = row[2];
    if (const auto id = count_of(number_in(row[1])); id && *id < 1 << 20)
      record.result.device->ordinal = static_cast<std::int32_t>(*id);
    if (devices.size() > 1) record.identity.params.emplace_back("device", row[1] + " " + row[2]);
    if (row[first - 1] == "Yes") {
      record.result.status = record::Status::unsupported;
      record.result.reason = "skipped";
    } else {
      add_summaries(names, row, first, record, others);
    }
    run.records.push_back(std::move(record));
  }
  if (!others.empty())
    run.notes.push_back(fmt::format("figures that are no numbers, left out: {}", fmt::join(others, ", ")));
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "nvbench" : options.name);
  return run;
}

}  // namespace assay::host::imports
