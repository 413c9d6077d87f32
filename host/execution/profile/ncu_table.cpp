#include "profile/ncu_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "profile/ncu.hpp"

namespace assay::host::profile {
namespace {

// A table that cannot be used; the text is the problem.
struct Unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Row = std::vector<std::string>;

// ---- rows of text ---------------------------------------------------------------------------------------------------

// Takes one row of RFC 4180 from the front; a quoted field may hold commas, quotes (doubled) and ends of lines.
Row take_row(std::string_view& rest) {
  Row row(1);
  bool is_quoted = false;
  char c = 0;
  while (!rest.empty()) {
    c = rest.front();
    rest.remove_prefix(1);
    if (is_quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (rest.starts_with('"')) {
        row.back() += '"';
        rest.remove_prefix(1);
      } else {
        is_quoted = false;
      }
    } else if (c == '"') {
      is_quoted = true;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      return row;
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  // ncu quotes every field: the last row may lack the end of its line, but not of its field.
  if (is_quoted || c != '"') throw Unusable("it ends within a row: it was cut");
  return row;
}

// The rows from the header on, without ncu's own lines. Before it a program may have written what it likes.
std::vector<Row> rows_of(std::string_view text) {
  std::vector<Row> rows;
  while (!text.empty()) {
    const bool is_row = text.starts_with('"') && (!rows.empty() || text.starts_with("\"ID\""));
    if (is_row) {
      Row row = take_row(text);
      if (!rows.empty() && row == rows.front()) {  // another process's part has the same head
        if (!text.empty()) take_row(text);         // and its units
        continue;
      }
      rows.push_back(std::move(row));
      continue;
    }
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return rows;
}

// ---- numbers and units ----------------------------------------------------------------------------------------------

// "1,234,567" is a number, "65,77" is none: its comma is another language's point.
std::optional<double> number_of(const std::string& text) {
  std::string digits;
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      digits += text[i];
      continue;
    }
    const std::size_t until_next = std::min(text.find(',', i + 1), point) - (i + 1);
    if (i > point || i == 0 || until_next != 3) throw Unusable(fmt::format("'{}' is no number in English", text));
  }
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;  // "n/a", "nan", ""
  return value;
}

using Scales = std::map<std::string, double, std::less<>>;

// Decimal prefixes before each of the names.
Scales with_prefixes(std::initializer_list<const char*> names) {
  Scales scales;
  for (const char* name : names)
    for (const auto& [prefix, factor] :
         {std::pair("", 1.0), std::pair("K", 1e3), std::pair("M", 1e6), std::pair("G", 1e9), std::pair("T", 1e12)})
      scales[std::string(prefix) + name] = factor;
  return scales;
}

const Scales& to_microseconds() {
  static const Scales scales{{"ns", 1e-3},     {"nsecond", 1e-3}, {"us", 1},    {"usecond", 1}, {"ms", 1e3},
                             {"msecond", 1e3}, {"s", 1e6},        {"sec", 1e6}, {"second", 1e6}};
  return scales;
}
const Scales& to_bytes() {
  static const Scales scales = with_prefixes({"byte", "B"});
  return scales;
}
const Scales& to_percent() {
  static const Scales scales{{"%", 1}, {"", 1}, {"percent", 1}};
  return scales;
}
const Scales& to_count() {
  static const Scales scales = with_prefixes({"", "inst", "op", "ops"});
  return scales;
}
const Scales& to_per_cycle() {
  static const Scales scales = with_prefixes({"", "1/cycle", "inst/cycle", "op/cycle", "ops/cycle", "/cycle"});
  return scales;
}
const Scales& to_hertz() {
  static const Scales scales{
      {"hz", 1},           {"Hz", 1},      {"Khz", 1e3},           {"Mhz", 1e6},      {"Ghz", 1e9},
      {"cycle/second", 1}, {"cycle/s", 1}, {"cycle/usecond", 1e6}, {"cycle/us", 1e6}, {"cycle/nsecond", 1e9},
      {"cycle/ns", 1e9}};
  return scales;
}

// ---- columns --------------------------------------------------------------------------------------------------------

// A column that may be missing; its numbers come in one unit.
class Column {
 public:
  // `is_needed`: a unit that is not known makes the table unusable; otherwise the column is left out, with a note.
  Column(const std::vector<Row>& rows, std::string_view name, const Scales& scales, bool is_needed,
         std::vector<std::string>& notes)
      : name_(name) {
    const auto found = std::find(rows[0].begin(), rows[0].end(), name);
    if (found == rows[0].end()) return;
    const auto place = static_cast<std::size_t>(found - rows[0].begin());
    const auto scale = scales.find(rows[1][place]);
    if (scale != scales.end()) {
      place_ = place, scale_ = scale->second;
      return;
    }
    const std::string said = fmt::format("its column {} is in '{}', a unit that is not known", name, rows[1][place]);
    if (is_needed) throw Unusable(said);
    notes.push_back(said);
  }

  bool is_there() const { return place_.has_value(); }
  const std::string& name() const { return name_; }
  std::optional<double> operator()(const Row& row) const {
    if (!place_) return std::nullopt;
    const std::optional<double> value = number_of(row[*place_]);
    constexpr double most = 1e18;  // that a counter of one launch has, whatever its unit
    if (value && !(*value >= 0 && *value <= most))
      throw Unusable(
          fmt::format("its column {} has {}, which is no count; expected 0 to {:g}", name_, row[*place_], most));
    return value ? std::optional(*value * scale_) : std::nullopt;
  }

 private:
  std::string name_;
  std::optional<std::size_t> place_;
  double scale_ = 1;
};

// ---- operations of tensor cores -------------------------------------------------------------------------------------

// sm__ops_path_tensor_[op_OP_]src_TYPE[_dst_TYPE][_sparsity_on|off].sum[.per_cycle_elapsed]
struct TensorName {
  std::string source, op;
  bool has_result = false, has_sparsity = false, is_per_cycle = false;
  // Names with the same parts count different operations; one with more parts counts some of those of one with fewer.
  int parts() const { return (has_result ? 1 : 0) + (has_sparsity ? 1 : 0); }
  auto kind() const { return std::tuple(source, op, has_result, has_sparsity); }
};

std::optional<TensorName> tensor_name(std::string_view column) {
  if (!column.starts_with(counter::tensor_operations)) return std::nullopt;
  TensorName name;
  const std::size_t dot = std::min(column.find('.'), column.size());
  const std::string_view suffix = column.substr(dot);
  if (suffix == ".sum.per_cycle_elapsed")
    name.is_per_cycle = true;
  else if (suffix != ".sum")
    return std::nullopt;
  std::string_view rest = column.substr(counter::tensor_operations.size(), dot - counter::tensor_operations.size());
  if (rest.starts_with("op_")) {
    const std::size_t end = rest.find("_src_");
    if (end == std::string_view::npos) return std::nullopt;
    name.op = rest.substr(3, end - 3);
    rest.remove_prefix(end + 1);
  }
  if (!rest.starts_with("src_")) return std::nullopt;
  rest.remove_prefix(4);
  if (const std::size_t at = rest.find("_sparsity_"); at != std::string_view::npos) {
    name.has_sparsity = true;
    rest = rest.substr(0, at);
  }
  if (const std::size_t at = rest.find("_dst_"); at != std::string_view::npos) {
    name.has_result = true;
    rest = rest.substr(0, at);
  }
  name.source = rest;
  const bool is_floating = rest.starts_with("fp") || rest.starts_with("bf") || rest.starts_with("tf");
  return is_floating ? std::optional(name) : std::nullopt;
}

// The columns whose sum is all that tensor cores do in floating point, each operation once.
class TensorColumns {
 public:
  TensorColumns(const std::vector<Row>& rows, std::vector<std::string>& notes)
      : clock_(rows, counter::clock, to_hertz(), false, notes) {
    std::vector<std::pair<TensorName, std::string>> all;
    for (const std::string& column : rows[0])
      if (auto name = tensor_name(column)) all.emplace_back(std::move(*name), column);
    for (const auto& [name, column] : all) {
      if (!is_chosen(name, all)) continue;
      Column chosen(rows, column, name.is_per_cycle ? to_per_cycle() : to_count(), false, notes);
      is_whole_ = is_whole_ && chosen.is_there() && (!name.is_per_cycle || clock_.is_there());
      columns_.emplace_back(name.is_per_cycle, std::move(chosen));
    }
  }

  bool is_there() const { return !columns_.empty() && is_whole_; }

  std::optional<double> operator()(const Row& row, double time_us) const {
    if (!is_there()) return std::nullopt;
    double sum = 0;
    for (const auto& [is_per_cycle, column] : columns_) {
      const std::optional<double> value = column(row);
      const std::optional<double> cycles_per_s = is_per_cycle ? clock_(row) : 1;
      if (!value || !cycles_per_s) return std::nullopt;
      sum += is_per_cycle ? *value * *cycles_per_s * time_us * 1e-6 : *value;
    }
    return sum;
  }

 private:
  using Named = std::pair<TensorName, std::string>;
  // Left out is what a wider name counts as well: parts of an operation where its source's sum is there, and a rate
  // where the same sum is there as a count.
  static bool is_chosen(const TensorName& name, const std::vector<Named>& all) {
    return std::none_of(all.begin(), all.end(), [&](const Named& each) {
      const TensorName& other = each.first;
      if (other.source != name.source) return false;
      if (other.op.empty() && !name.op.empty()) return true;
      if (other.op != name.op) return false;
      if (other.parts() != name.parts()) return other.parts() < name.parts();
      if (other.kind() != name.kind()) return other.has_result && !name.has_result;  // of two equal ones, by result
      return name.is_per_cycle && !other.is_per_cycle;
    });
  }

  Column clock_;
  std::vector<std::pair<bool, Column>> columns_;  // is it a rate?
  bool is_whole_ = true;
};

// ---- the table ------------------------------------------------------------------------------------------------------

void check(const std::vector<Row>& rows) {
  if (rows.empty()) throw Unusable("it has no rows: no kernel was counted");
  const Row& names = rows[0];
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  for (const std::string_view needed : {std::string_view("Kernel Name"), counter::time})
    if (!has(needed))
      throw Unusable(fmt::format("it has no column {}: another version's table, or another page", needed));
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].size() != names.size())
      throw Unusable(fmt::format("its row {} has {} fields, and its head {}", i + 1, rows[i].size(), names.size()));
  if (rows.size() < 3) throw Unusable("it has a head and no rows: no kernel was counted");
}

std::vector<CountedLaunch> launches_of(const std::vector<Row>& rows, std::vector<std::string>& notes) {
  const auto column = [&](std::string_view name, const Scales& scales, bool is_needed = false) {
    return Column(rows, name, scales, is_needed, notes);
  };
  const Column time = column(counter::time, to_microseconds(), true),
               dram = column(counter::dram_bytes, to_bytes(), true);
  const Column dram_percent = column(counter::dram_percent, to_percent()),
               sm = column(counter::sm_percent, to_percent()), tensor = column(counter::tensor_percent, to_percent()),
               occupancy = column(counter::occupancy_percent, to_percent());
  const Column adds = column(counter::adds, to_count()), multiplications = column(counter::multiplications, to_count()),
               fused = column(counter::fused, to_count());
  const TensorColumns operations(rows, notes);
  if (!operations.is_there())
    notes.emplace_back("it does not count the operations of tensor cores, so no operations are reported");
  const auto place_of = [&rows](std::string_view name) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin());
  };
  const std::size_t name_place = place_of("Kernel Name"), id = place_of("ID"), process = place_of("Process ID");
  const std::size_t columns = rows[0].size();
  std::set<std::pair<std::string, std::string>> seen;
  for (std::size_t i = 2; id < columns && process < columns && i < rows.size(); ++i)
    if (!seen.emplace(rows[i][process], rows[i][id]).second)
      throw Unusable(
          fmt::format("its row {} has the ID {} of an earlier one: a launch counts once", i + 1, rows[i][id]));
  std::vector<CountedLaunch> launches;
  for (std::size_t i = 2; i < rows.size(); ++i) {
    const Row& row = rows[i];
    CountedLaunch launch;
    launch.name = row[name_place];
    const std::optional<double> time_us = time(row);
    if (!time_us || !(*time_us > 0))
      throw Unusable(fmt::format("it has no time of the kernel {} in row {}", launch.name, i + 1));
    launch.time_us = *time_us;
    launch.dram_bytes = dram(row);
    const auto a = adds(row), m = multiplications(row), f = fused(row), t = operations(row, *time_us);
    if (a && m && f && t) launch.flops = *a + *m + 2 * *f + *t;
    launch.dram_percent = dram_percent(row), launch.sm_percent = sm(row);
    launch.tensor_percent = tensor(row), launch.occupancy_percent = occupancy(row);
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace

NcuTable read_ncu_table(std::string_view text) {
  NcuTable table;
  try {
    if (text.empty()) throw Unusable("it is empty");
    const std::vector<Row> rows = rows_of(text);
    check(rows);
    table.launches = launches_of(rows, table.notes);
  } catch (const Unusable& unusable) {
    table.launches.clear();
    table.problem = unusable.what();
  }
  return table;
}

}  // namespace assay::host::profile
