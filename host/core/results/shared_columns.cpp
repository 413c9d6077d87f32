#include "results/shared_columns.hpp"

#include "record/identity_columns.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

namespace assay::host::results {
namespace {

class NamesInOrder {
 public:
  explicit NamesInOrder(std::vector<std::string> names)
      : names_(std::move(names)), known_(names_.begin(), names_.end()) {}
  void add(std::string_view name) {
    if (known_.contains(name)) return;
    names_.emplace_back(name);
    known_.insert(names_.back());
  }
  template <class Names>
  void add_all(const Names& names) {
    for (const auto& name : names) add(name);
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
  std::set<std::string, std::less<>> known_;
};

constexpr const char* kCaseColumns[] = {"index",       "repeat",      "status",   "reason",  "verify",
                                        "validity",    "device",      "ranks",    "started", "host",
                                        "device.name", "device.uuid", "workload", "hash",    "environment"};

}  // namespace

std::vector<std::string> shared_columns(std::vector<std::string> shown,
                                        const std::vector<record::CaseRecord>& records) {
  NamesInOrder columns(std::move(shown));
  columns.add_all(record::run_columns);
  columns.add_all(kCaseColumns);
  for (const record::Column& column : record::identity_columns()) columns.add(column.name);
  columns.add_all(record::file_columns(records));
  for (const record::CaseRecord& record : records)
    for (const auto& param : record.identity.params) columns.add(param.first);
  for (const record::CaseRecord& record : records)
    for (const auto& setting : record.identity.settings) columns.add(setting.first);
  columns.add("notes");
  return columns.take();
}

Table without_empty_columns(Table table, std::size_t kept) {
  Table result;
  result.rows.resize(table.rows.size());
  for (auto& row : result.rows) row.reserve(table.columns.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const bool is_filled = std::any_of(table.rows.begin(), table.rows.end(),
                                       [i](const auto& row) { return !record::csv_text(row[i]).empty(); });
    if (i >= kept && !is_filled) continue;
    result.columns.push_back(std::move(table.columns[i]));
    for (std::size_t row = 0; row < table.rows.size(); ++row) result.rows[row].push_back(std::move(table.rows[row][i]));
  }
  return result;
}

}  // namespace assay::host::results
