// What the OSU micro-benchmarks print: a line with the test's name, a line of columns, and a row for each size. A log
// may have several tests.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "common/filter.hpp"
#include "imports/log_text.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

// "# Size          Avg Latency(us)   Min Latency(us)": names stand apart by two blanks or more.
std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> names;
  line.remove_prefix(1);
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return names;
    const std::size_t end = std::min({line.find("  ", begin), line.find('\t', begin), line.size()});
    names.emplace_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

struct Test {
  std::string name, datatype, settings;  // settings: what else stands before the columns
  std::vector<std::string> columns;
};

// Which figure a column is, by its name without unit and blanks.
void add_cell(const std::string& column, double value, record::CaseRecord& record, record::Phase& step) {
  const bool is_us = has(column, "(us)");
  const auto begins = [&column](const char* text) { return column.starts_with(text); };
  if (is_us && has(column, "Comm")) {  // a part of the time
    add_metric(record, folder_name(column), value, "us", Direction::neither);
  } else if (is_us && (begins("Latency") || begins("Avg") || begins("Overall"))) {
    step.mean_ms = value / 1e3;
  } else if (is_us && begins("Min")) {
    step.min_ms = value / 1e3;
  } else if (is_us && begins("Max")) {
    step.max_ms = value / 1e3;
  } else if (is_us && begins("P50")) {
    step.p50_ms = value / 1e3;
  } else if (is_us && begins("P90")) {
    step.p90_ms = value / 1e3;
  } else if (is_us && begins("P95")) {
    step.p95_ms = value / 1e3;
  } else if (is_us && begins("P99")) {
    step.p99_ms = value / 1e3;
  } else if (begins("Iterations")) {
    step.n = count_of(value);
  } else if (has(column, "MB/s") && begins("P")) {  // "P50 Tail BW(MB/s)"
    add_metric(record, fmt::format("gbytes_per_s_{}", folder_name(column.substr(0, column.find(' ')))), value / 1e3,
               "GB/s", Direction::higher_is_better);
  } else if (has(column, "MB/s")) {
    add_metric(record, "gbytes_per_s", value / 1e3, "GB/s", Direction::higher_is_better);
  } else if (has(column, "Messages/s")) {
    add_metric(record, "messages_per_s", value, "1/s", Direction::higher_is_better);
  } else {
    add_metric(record, folder_name(column), value, is_us ? "us" : "", Direction::neither);
  }
}

record::CaseRecord record_of(const Test& test, const std::vector<std::string_view>& words, std::size_t index) {
  record::CaseRecord record = new_record("osu:" + test.name, index);
  if (!test.datatype.empty()) record.identity.params.emplace_back("type", test.datatype);
  if (!test.settings.empty()) record.identity.params.emplace_back("settings", test.settings);
  record::Phase step;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto number = number_in(std::string(words[i]));
    if (i == 0 && test.columns[0] == "Size") {
      record.identity.params.emplace_back("bytes", count_of(number).value_or(0));
    } else if (has(test.columns[i], "Validation")) {
      const bool is_good = words[i] == "Pass";
      record.result.verify = record::VerificationResult{
          is_good ? record::Verification::ok : record::Verification::wrong_result, "by OSU: validation passed"};
      if (!is_good) {
        record.result.status = record::Status::wrong_result;
        record.result.reason = fmt::format("OSU's validation says '{}'", words[i]);
        record.result.verify->text = record.result.reason;
      }
    } else if (number) {
      add_cell(test.columns[i], *number, record, step);
    }
  }
  if (step.mean_ms && !is_time_ms(*step.mean_ms))
    fail(record, fmt::format("its latency is {} us", *step.mean_ms * 1e3));
  if (step.mean_ms && record.result.is_ok()) {
    step.share = 1;
    record.result.phases.emplace();
    record.result.phases->emplace_back("step", step);
  }
  if (!record.result.is_ok()) record.result.metrics.reset();  // a number only if correct
  return record;
}

}  // namespace

ImportedRun read_osu(std::string_view text, const ImportOptions& options) {
  ImportedRun run;
  Test test;
  std::vector<std::string_view> words;
  std::set<std::string> without_rows;
  std::size_t torn = 0;
  for (const LogLine& line : log_lines(text)) {
    if (line.text.starts_with("# OSU ")) {
      // "# OSU MPI Allreduce Latency Test v7.4"
      std::string name(line.text.substr(6));
      if (const std::size_t end = name.find(" Test"); end != name.npos) name.resize(end);
      test = {.name = name, .datatype = {}, .settings = {}, .columns = {}};
      without_rows.insert(name);
    } else if (line.text.starts_with("# Datatype:")) {
      test.datatype = line.text.substr(11);
      while (test.datatype.starts_with(' ')) test.datatype.erase(0, 1);
      while (test.datatype.ends_with('.') || test.datatype.ends_with(' ')) test.datatype.pop_back();
    } else if (line.text.starts_with('#') && (has(line.text, "/s") || has(line.text, "(us)"))) {
      test.columns = columns_of(line.text);
    } else if (line.text.starts_with("# ") && test.columns.empty() && !test.name.empty()) {
      // "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)", "# [ pairs: 2 ] [ window size: 64 ]"
      test.settings += (test.settings.empty() ? "" : "; ") + std::string(line.text.substr(2));
    } else if (!line.text.starts_with('#') && !test.columns.empty()) {
      split_words(line.text, words);
      if (words.empty() || !number_in(std::string(words[0]))) continue;
      if (words.size() != test.columns.size()) {
        ++torn;
        continue;
      }
      without_rows.erase(test.name);
      run.records.push_back(record_of(test, words, run.records.size()));
    }
  }
  if (run.records.empty())
    throw ImportError("there is no row of figures; expected the output of OSU micro-benchmarks, from its first line");
  if (torn > 0) run.notes.push_back(fmt::format("rows torn by other output and left out: {}", torn));
  if (!without_rows.empty()) run.notes.push_back(fmt::format("tests without a row: {}", fmt::join(without_rows, ", ")));
  run.notes.emplace_back("the output does not say how many ranks there were");
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "osu" : options.name);
  return run;
}

}  // namespace assay::host::imports
