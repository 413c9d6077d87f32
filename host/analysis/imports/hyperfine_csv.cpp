// The file of hyperfine's --export-csv: a row for each command, with statistics in seconds and the parameters of a
// scan.
#include <fmt/format.h>

#include "common/filter.hpp"
#include "imports/csv_text.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
ImportedRun read_hyperfine_csv(std::string_view text, const ImportOptions& options) {
  const auto rows = csv_table(text);
  if (rows.size() < 2 || rows[0][0] != "command")
    throw ImportError("there is no row under 'command,mean,...'; expected the file of hyperfine's --export-csv");
  const std::vector<std::string>& names = rows[0];
  ImportedRun run;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string>& row = rows[i];
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
