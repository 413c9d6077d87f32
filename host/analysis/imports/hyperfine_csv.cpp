// The file of hyperfine's --export-csv: a row for each command, with statistics in seconds and the parameters of a
// scan.
#include <fmt/format.h>

#include "common/filter.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

// Fields of RFC 4180: a quoted one may hold commas, line breaks and doubled quotes.
std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  bool is_quoted = false;
  const auto end_row = [&] {
    row.push_back(std::move(field));
    field.clear();
    if (row.size() > 1 || !row[0].empty()) rows.push_back(std::move(row));
    row.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += c, ++i;
    } else if (c == '"') {
      is_quoted = !is_quoted;
    } else if (is_quoted || (c != ',' && c != '\n' && c != '\r')) {
      field += c;
    } else if (c == ',') {
      row.push_back(std::move(field)), field.clear();
    } else if (c == '\n') {
      end_row();
    }
  }
  if (is_quoted) throw ImportError("its last row is torn: a quote is not closed");
  if (!field.empty() || !row.empty()) end_row();
  return rows;
}

}  // namespace

ImportedRun read_hyperfine_csv(std::string_view text, const ImportOptions& options) {
  const auto rows = csv_rows(text);
  if (rows.size() < 2 || rows[0][0] != "command")
    throw ImportError("there is no row under 'command,mean,...'; expected the file of hyperfine's --export-csv");
  const std::vector<std::string>& names = rows[0];
  ImportedRun run;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string>& row = rows[i];
    if (row.size() != names.size())
      throw ImportError(fmt::format("row {} has {} fields, and there are {} columns; is the file cut off?", i + 1,
                                    row.size(), names.size()));
    record::CaseRecord record = new_record("hyperfine", run.records.size());
    std::map<std::string, std::optional<double>> figures;
    for (std::size_t column = 0; column < names.size(); ++column) {
      const std::string& name = names[column];
      constexpr std::string_view prefix = "parameter_";
      if (name == "command" || name.starts_with(prefix)) {
        record.identity.params.emplace_back(name == "command" ? name : name.substr(prefix.size()),
                                            name == "command" ? Value(row[column]) : value_of_text(row[column]));
      } else {
        figures[name] = number_in(row[column]);
      }
    }
    const auto ms = [&figures](const char* name) -> record::Number {
      const auto& seconds = figures[name];
      return seconds ? std::optional(*seconds * 1e3) : std::nullopt;
    };
    const auto mean = ms("mean");
    if (mean && is_time_ms(*mean)) {
      record::Phase step = step_of_mean(*mean, spread_of(ms("stddev")), std::nullopt);
      step.p50_ms = ms("median"), step.min_ms = ms("min"), step.max_ms = ms("max");
      record.result.phases.emplace();
      record.result.phases->emplace_back("step", step);
      for (const char* name : {"user", "system"})
        if (const auto time = ms(name))
          add_metric(record, std::string(name) + "_ms", *time, "ms", Direction::lower_is_better);
    } else {
      fail(record, mean ? fmt::format("its mean is {} ms", *mean) : "it has no mean that is a number");
    }
    run.records.push_back(std::move(record));
  }
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "hyperfine" : options.name);
  return run;
}

}  // namespace assay::host::imports
