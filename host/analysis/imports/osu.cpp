// Reads the OSU micro-benchmarks' output: a line with the test's name, lines of settings, a line of columns, and a row
// for each size. A log may have several tests. osu_mbw_mr may print two tables with a column for each window size, and
// osu_init prints one sentence.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/filter.hpp"
#include "imports/log_text.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

// "# Size          Avg Latency(us)   Min Latency(us)": names stand apart by two blanks or more, or by one behind a unit
// where the next name is as long as its field.
std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> names;
  line.remove_prefix(1);
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return names;
    std::size_t end = std::min({line.find("  ", begin), line.find('\t', begin), line.size()});
    if (const std::size_t unit = line.find(") ", begin); unit < end) end = unit + 1;
    names.emplace_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

bool is_line_of_columns(const std::vector<std::string>& names) {
  if (names.empty()) return false;
  return names[0] == "Size" || names[0] == "Operation" || names[0].ends_with("(us)") || names[0].ends_with("MB/s)") ||
         names[0].ends_with("MB/s");
}

// "#        1      2      4": the window sizes over the columns of one kind of figure; empty where the line is not one.
std::vector<std::string> windows_in(const std::vector<std::string_view>& words) {
  std::vector<std::string> windows;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!count_of(number_in(std::string(words[i])))) return {};
    windows.emplace_back(words[i]);
  }
  return windows;
}

struct Test {
  std::string name, version, datatype;
  std::string settings;  // what else stands before the columns
  std::optional<std::int64_t> pairs, window;
  std::vector<std::string> columns;
  std::vector<std::string> windows;                                       // instead of columns
  std::optional<std::string> last_size;                                   // of the last row behind the heading
  bool is_message_rate = false;                                           // what the columns of windows have
  std::map<std::pair<std::int64_t, std::string>, std::size_t> by_window;  // places of records
};

void add_setting(const std::string& text, Test& test) { test.settings += (test.settings.empty() ? "" : "; ") + text; }

// "# [ pairs: 2 ] [ window size: 64 ]", "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)"
void take_setting(std::string_view line, Test& test) {
  std::string text(line.substr(2));
  while (text.ends_with(' ')) text.pop_back();
  const auto after = [&text](std::string_view name) -> std::optional<std::int64_t> {
    const std::size_t at = text.find(name);
    if (at == text.npos) return std::nullopt;
    const std::size_t begin = at + name.size();
    return count_of(number_in(text.substr(begin, text.find(' ', begin) - begin)));
  };
  if (!text.starts_with("[ pairs: ")) return add_setting(text, test);
  test.pairs = after("pairs: ");
  test.window = after("window size: ");
}

record::CaseRecord record_in(const Test& test, std::size_t index) {
  record::CaseRecord record = new_record("osu:" + test.name, index);
  const auto add = [&record](const char* name, const auto& value) { record.identity.params.emplace_back(name, value); };
  if (!test.datatype.empty()) add("type", test.datatype);
  if (!test.settings.empty()) add("settings", test.settings);
  if (test.pairs) add("pairs", *test.pairs);
  if (test.pairs) record.identity.ranks = static_cast<std::int32_t>(std::min<std::int64_t>(2 * *test.pairs, 1 << 20));
  if (test.window) add("window", *test.window);
  if (!test.version.empty()) record.result.libraries.emplace_back("osu-micro-benchmarks", test.version);
  return record;
}

// The figures of one row. Those of the step are times of a record only beside a mean.
class Row {
 public:
  explicit Row(record::CaseRecord& record) : record_(record) {}

  // The column's name without unit and blanks says which figure it is.
  void take(const std::string& column, const std::string& cell, std::set<std::string>& others) {
    const bool is_us = has(column, "(us)");
    const auto begins = [&column](const char* text) { return column.starts_with(text); };
    const bool is_mean = is_us && !has(column, "Comm") && (begins("Latency") || begins("Avg") || begins("Overall"));
    const auto number = number_in(cell);
    if (!number) {
      if (is_mean)
        fail(record_, fmt::format("its {} is '{}'", column, cell));
      else
        others.insert(column);
    } else if (is_mean) {
      step_.mean_ms = *number / 1e3;
      if (!is_time_ms(*step_.mean_ms)) fail(record_, fmt::format("its {} is {}", column, *number));
    } else if (is_us && has(column, "Comm")) {  // a part of the time
      add(folder_name(column), *number, "us", Direction::neither);
    } else if (const auto figure = is_us ? figure_of_step(column) : nullptr) {
      step_.*figure = *number / 1e3;
    } else if (begins("Iterations")) {
      step_.n = count_of(number);
    } else if (has(column, "MB/s") && begins("P")) {  // "P50 Tail BW(MB/s)"
      add_bandwidth(record_, fmt::format("gbytes_per_s_{}", folder_name(column.substr(0, column.find(' ')))),
                    *number / 1e3);
    } else if (has(column, "MB/s")) {
      add_bandwidth(record_, "gbytes_per_s", *number / 1e3);
    } else if (has(column, "Messages/s")) {
      add("messages_per_s", *number, "1/s", Direction::higher_is_better);
    } else if (has(column, "Million ops/s")) {
      add("ops_per_s", *number * 1e6, "1/s", Direction::higher_is_better);
    } else {
      add(folder_name(column), *number, is_us ? "us" : column.ends_with("(%)") ? "%" : "", Direction::neither);
    }
  }

  void finish() {
    record::CaseResult& result = record_.result;
    if (result.is_ok() && step_.mean_ms) {
      step_.share = 1;
      result.phases.emplace();
      result.phases->emplace_back("step", step_);
    } else if (result.is_ok()) {
      for (const Column& column : of_step)
        if (const record::Number& ms = step_.*column.figure) add(column.metric, *ms * 1e3, "us", Direction::neither);
      if (step_.n) add("iterations", static_cast<double>(*step_.n), "", Direction::neither);
      if (!result.metrics) fail(record_, "it has no figure that is a number");
    }
    if (!result.is_ok()) result.metrics.reset();  // a number only if correct
  }

 private:
  struct Column {
    const char *begin, *metric;
    record::Number record::Phase::*figure;
  };
  static constexpr Column of_step[] = {
      {"Min", "latency_min_us", &record::Phase::min_ms}, {"Max", "latency_max_us", &record::Phase::max_ms},
      {"P50", "latency_p50_us", &record::Phase::p50_ms}, {"P90", "latency_p90_us", &record::Phase::p90_ms},
      {"P95", "latency_p95_us", &record::Phase::p95_ms}, {"P99", "latency_p99_us", &record::Phase::p99_ms}};
  static record::Number record::Phase::*figure_of_step(const std::string& column) {
    for (const Column& each : of_step)
      if (column.starts_with(each.begin)) return each.figure;
    return nullptr;
  }
  void add(const std::string& name, double value, const std::string& unit, Direction direction) {
    add_metric(record_, name, value, unit, direction);
  }

  record::CaseRecord& record_;
  record::Phase step_;
};

void take_validation(std::string_view word, record::CaseRecord& record) {
  if (word == "Pass") {
    record.result.verify = record::VerificationResult{record::Verification::ok, "by OSU: validation passed"};
    return;
  }
  record.result.status = record::Status::wrong_result;
  record.result.reason = fmt::format("OSU's validation says '{}'", word);
  record.result.verify = record::VerificationResult{record::Verification::wrong_result, record.result.reason};
}

// Whether a cell may be of a row: a number, what C prints where there is none, or a word of the columns that have
// words.
bool is_cell(const std::string& column, std::string_view cell) {
  return column == "Operation" || has(column, "Validation") || has(cell, "nan") || has(cell, "inf") ||
         number_in(std::string(cell));
}

class OsuReader {
 public:
  void take(std::string_view line) {
    if (line.starts_with("# OSU ")) return begin_test(line);
    split_words(line, words_);
    if (words_.empty()) return;
    if (line.starts_with('#')) return take_comment(line);
    if (line.starts_with("nprocs: ")) return take_start_up();
    if (!test_.windows.empty()) return take_row_of_windows();
    if (!test_.columns.empty()) take_row();
  }

  ImportedRun finish() {
    if (run_.records.empty())
      throw ImportError("there is no row of figures; expected the output of OSU micro-benchmarks, from its first line");
    if (torn_ > 0) run_.notes.push_back(fmt::format("rows torn by other output and left out: {}", torn_));
    if (!others_.empty())
      run_.notes.push_back(fmt::format("figures that are no numbers, left out: {}", fmt::join(others_, ", ")));
    if (!without_rows_.empty())
      run_.notes.push_back(fmt::format("tests without a row: {}", fmt::join(without_rows_, ", ")));
    if (std::any_of(run_.records.begin(), run_.records.end(), [](const auto& each) { return !each.identity.ranks; }))
      run_.notes.emplace_back("the output does not say how many ranks there were");
    return std::move(run_);
  }

 private:
  // "# OSU MPI Allreduce Latency Test v7.4"
  void begin_test(std::string_view line) {
    std::string name(line.substr(6)), version;
    if (const std::size_t end = name.find(" Test"); end != name.npos) {
      if (const std::size_t at = name.find(" v", end); at != name.npos) version = name.substr(at + 2);
      name.resize(end);
    }
    // A multi-threaded test names its threads before itself.
    std::string settings = test_.name.empty() || !test_.columns.empty() ? std::move(before_) : "";
    before_.clear();
    test_ = Test();
    test_.name = std::move(name), test_.version = std::move(version), test_.settings = std::move(settings);
    without_rows_.insert(test_.name);
  }

  void take_comment(std::string_view line) {
    std::vector<std::string> columns = columns_of(line);
    if (line.starts_with("# Datatype:")) {
      test_.datatype = line.substr(11);
      while (test_.datatype.starts_with(' ')) test_.datatype.erase(0, 1);
      while (test_.datatype.ends_with('.') || test_.datatype.ends_with(' ')) test_.datatype.pop_back();
    } else if (line.starts_with("# Uni-directional Bandwidth") || line.starts_with("# Message Rate Profile")) {
      test_.is_message_rate = line.starts_with("# Message");
    } else if (auto windows = windows_in(words_); !windows.empty()) {
      test_.windows = std::move(windows);
      test_.last_size.reset();
    } else if (is_line_of_columns(columns)) {
      test_.columns = std::move(columns);
      test_.last_size.reset();
    } else if (line.starts_with("# ") && !test_.name.empty() && test_.columns.empty()) {
      take_setting(line, test_);
    } else if (line.starts_with("# Number of ")) {
      Test next;
      next.settings = std::move(before_);
      take_setting(line, next);
      before_ = std::move(next.settings);
    }
  }

  // Sizes double from row to row, but for rows that were torn; without sizes a table has one row. Other lines of
  // numbers behind a table are of other programs.
  bool is_next_row() {
    const std::string size(words_[0]);
    const bool has_sizes = !test_.windows.empty() || test_.columns[0] == "Size";
    if (test_.last_size && !has_sizes) return test_.columns[0] == "Operation";
    const auto last = test_.last_size ? number_in(*test_.last_size) : std::nullopt, now = number_in(size);
    if (last && *last > 0 && !(now && *now > *last && std::exp2(std::round(std::log2(*now / *last))) == *now / *last))
      return false;
    test_.last_size = size;
    return true;
  }

  record::CaseRecord& new_row() {
    without_rows_.erase(test_.name);
    run_.records.push_back(record_in(test_, run_.records.size()));
    return run_.records.back();
  }

  void take_row() {
    const bool has_operations = test_.columns[0] == "Operation";
    if (!has_operations && !number_in(std::string(words_[0])) && !has(words_[0], "nan")) return;
    bool is_row = words_.size() == test_.columns.size();
    for (std::size_t i = 0; is_row && i < words_.size(); ++i) is_row = is_cell(test_.columns[i], words_[i]);
    if (!is_row || !is_next_row()) {
      torn_ += has_operations ? 0 : 1;
      return;
    }
    record::CaseRecord& record = new_row();
    Row row(record);
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::string& column = test_.columns[i];
      const std::string cell(words_[i]);
      if (column == "Size")
        record.identity.params.emplace_back("bytes", size_of(cell));
      else if (column == "Operation")
        record.identity.params.emplace_back("operation", cell);
      else if (has(column, "Validation"))
        take_validation(cell, record);
      else
        row.take(column, cell, others_);
    }
    row.finish();
  }

  // The second of two tables has another figure of the same cases.
  void take_row_of_windows() {
    const auto bytes = count_of(number_in(std::string(words_[0])));
    if (!bytes) return;
    if (words_.size() != 1 + test_.windows.size() || !is_next_row()) {
      ++torn_;
      return;
    }
    for (std::size_t i = 0; i < test_.windows.size(); ++i) {
      const auto [place, is_new] = test_.by_window.try_emplace({*bytes, test_.windows[i]}, run_.records.size());
      if (is_new) {
        record::CaseRecord& record = new_row();
        record.identity.params.emplace_back("bytes", *bytes);
        record.identity.params.emplace_back("window", count_of(number_in(test_.windows[i])).value_or(0));
      }
      Row row(run_.records[place->second]);
      row.take(test_.is_message_rate ? "Messages/s" : "MB/s", std::string(words_[i + 1]), others_);
      row.finish();
    }
  }

  // "nprocs: 2, min: 242 ms, max: 244 ms, avg: 243 ms"
  void take_start_up() {
    record::CaseRecord& record = new_row();
    record::Phase start;
    start.share = 1;
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      std::string value(words_[i + 1]);
      if (value.ends_with(',')) value.pop_back();
      if (words_[i] == "nprocs:")
        if (const auto ranks = count_of(number_in(value)))
          record.identity.ranks = static_cast<std::int32_t>(std::min<std::int64_t>(*ranks, 1 << 20));
      const bool is_ms = i + 2 < words_.size() && words_[i + 2].starts_with("ms");
      if (words_[i] == "min:" && is_ms) start.min_ms = number_in(value);
      if (words_[i] == "max:" && is_ms) start.max_ms = number_in(value);
      if (words_[i] == "avg:" && is_ms) start.mean_ms = number_in(value);
    }
    if (!start.mean_ms || !is_time_ms(*start.mean_ms)) return fail(record, "it has no mean time in ms");
    record.result.phases.emplace();
    record.result.phases->emplace_back("step", start);
  }

  ImportedRun run_;
  Test test_;
  std::string before_;  // settings of the test that comes
  std::vector<std::string_view> words_;
  std::set<std::string> without_rows_, others_;
  std::size_t torn_ = 0;
};

}  // namespace

ImportedRun read_osu(std::string_view text, const ImportOptions& options) {
  OsuReader reader;
  for (const LogLine& line : log_lines(text)) reader.take(line.text);
  ImportedRun run = reader.finish();
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "osu" : options.name);
  return run;
}

}  // namespace assay::host::imports
