// docs/record.md and the record agree: each field is named there, each column is, and what is called a column is one.
#include "record/columns.hpp"
#include "record/identity_columns.hpp"
#include "record/json_fields.hpp"
#include "record/merge_telemetry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

namespace assay::host::record {
namespace {

using Words = std::set<std::string>;

std::string page() {
  std::ifstream file(RECORD_PAGE);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What stands between backticks, one or three, in order.
std::vector<std::string> code_in(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; (begin = text.find('`', begin)) != std::string::npos;) {
    const std::string fence = text.compare(begin, 3, "```") == 0 ? "```" : "`";
    const std::size_t end = text.find(fence, begin + fence.size());
    if (end == std::string::npos) break;
    parts.push_back(text.substr(begin + fence.size(), end - begin - fence.size()));
    begin = end + fence.size();
  }
  return parts;
}

Words words_in(const std::vector<std::string>& parts) {
  Words words;
  for (const std::string& part : parts) {
    std::string word;
    for (const char c : part + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word += c;
        continue;
      }
      if (!word.empty()) words.insert(word);
      word.clear();
    }
  }
  return words;
}

// Walks through the fields of a record as its writer does, and gathers their keys: "phases.mean_ms".
class KeyCollector {
 public:
  KeyCollector(std::vector<std::string>& keys, std::string prefix) : keys_(keys), prefix_(std::move(prefix)) {}
  template <class T>
  void operator()(const char* key, T& member) {
    const std::string name = prefix_ + key;
    keys_.push_back(name);
    below(name + ".", member);
  }
  void unless_empty(const char* key, auto& member) { (*this)(key, member); }
  void measured(const char* key, auto& member) { (*this)(key, member); }
  void or_null(const char* key, auto& member) { (*this)(key, member); }
  void or_empty(const char* key, auto& member) { (*this)(key, member); }
  void count(const char* key, double& member) { (*this)(key, member); }
  void status(CaseResult&) { keys_.push_back(prefix_ + "status"); }

 private:
  template <class T>
  void below(const std::string& prefix, std::optional<T>&) {
    T inner{};
    below(prefix, inner);
  }
  template <class T>
  void below(const std::string& prefix, std::vector<T>&) {
    T inner{};
    below(prefix, inner);
  }
  template <class T>
  void below(const std::string& prefix, std::pair<std::string, T>& entry) {
    below(prefix, entry.second);
  }
  template <class T>
  void below(const std::string& prefix, T& object) {
    if constexpr (requires { sizeof(Fields<T>); }) Fields<T>::visit(KeyCollector(keys_, prefix), object);
  }

  std::vector<std::string>& keys_;
  std::string prefix_;
};

TEST(RecordPage, NamesEachFieldOfTheRecord) {
  CaseRecord record;
  std::vector<std::string> keys;
  Fields<CaseRecord>::visit(KeyCollector(keys, ""), record);
  ASSERT_GT(keys.size(), 150u);
  ASSERT_NE(std::find(keys.begin(), keys.end(), "memory.step_peak_mib.samples"), keys.end());
  const Words reported = words_in(code_in(page()));
  for (const std::string& key : keys) EXPECT_TRUE(reported.contains(key.substr(key.rfind('.') + 1))) << key;
}

// ---- columns ----

// The list of column names, from its heading to the end of its last item.
std::string list_of_columns() {
  const std::string text = page();
  const std::size_t begin = text.find("\n- ", text.find("## Column names"));
  const std::size_t end = text.find("\n\n", begin);
  return begin == std::string::npos || end == std::string::npos ? "" : text.substr(begin, end - begin);
}

// A workload that has everything that the list takes as an example.
WorkloadNames workload_of_the_page() {
  WorkloadNames workload;
  workload.params = {"size", "batch_size"};
  workload.settings = {"measure.warmup"};
  workload.case_metrics = {"parameters"};
  workload.step_metrics = {"loss"};
  workload.phases = {"forward", "optimizer", "parameter_wait"};
  workload.item_unit = "tokens";
  return workload;
}

std::string with_examples(std::string name) {
  const std::vector<std::pair<std::string, std::string>> examples{
      {"<step metric>", "loss"},   {"<phase>", "forward"},  {"<statistic>", "mean_ms"},
      {"<figure>", "power_w"},     {"<kind>", "gradients"}, {"<earlier moment>", "before_step"},
      {"<moment>", "after_setup"}, {"<name>", "gloo"},      {"<parameter>", "weights"}};
  // Two phases of a sum differ.
  if (const std::size_t sum = name.find("+<phase>"); sum != std::string::npos) name.replace(sum, 8, "+optimizer");
  for (const auto& [placeholder, example] : examples)
    if (const std::size_t at = name.find(placeholder); at != std::string::npos)
      name.replace(at, placeholder.size(), example);
  return name;
}

// The names of the list in full: ".min" after "loss.mean" is "loss.min".
std::vector<std::string> told_columns() {
  std::vector<std::string> names;
  for (const std::string& code : code_in(list_of_columns())) {
    std::string name = with_examples(code);
    if (name.starts_with('.') && !names.empty()) {
      const std::string& before = names.back();
      name = before.substr(0, before.rfind('.')) + name;
    }
    names.push_back(std::move(name));
  }
  return names;
}

Words statistics_and_figures() {
  Words words;
  for (const PhaseStatistic& statistic : phase_statistics()) words.emplace(statistic.name);
  for (const TelemetryFigure& figure : telemetry_figures) words.emplace(figure.name);
  return words;
}

TEST(RecordPage, WhatIsCalledAColumnIsOne) {
  std::vector<std::string> names = column_names(workload_of_the_page());
  names.insert(names.end(), run_columns.begin(), run_columns.end());
  const Words parts = statistics_and_figures();
  // Words of the list that explain a column, and are none.
  const Words others{"step", "setup", "files", "power_cap 40%", "busy_ms"};
  const std::vector<std::string> reported = told_columns();
  ASSERT_GT(reported.size(), 120u);
  for (const std::string& name : reported)
    EXPECT_TRUE(is_column(name, names) || parts.contains(name) || others.contains(name))
        << "docs/record.md lists " << name << ", which is no column";
}

TEST(RecordPage, EachColumnIsInTheList) {
  const std::vector<std::string> reported = told_columns();
  const Words all(reported.begin(), reported.end());
  const auto expect_told = [&all](std::string_view name) {
    EXPECT_TRUE(all.contains(std::string(name))) << name << " is missing from \"Column names\" of docs/record.md";
  };
  for (const std::string_view name : run_columns) expect_told(name);
  for (const auto& columns : {first_columns(), later_columns(), identity_columns()})
    for (const Column& column : columns) expect_told(column.name);
  for (const PhaseStatistic& statistic : phase_statistics())
    if (!statistic.of_step_alone) expect_told(statistic.name);
  for (const StepMetricStatistic& statistic : step_metric_statistics())
    expect_told("loss." + std::string(statistic.name));
  for (const TelemetryFigure& figure : telemetry_figures) expect_told(figure.name);
  for (const char* name : {"step.device_mean_ms",
                           "forward.mean_ms",
                           "forward+optimizer.mean_ms",
                           "tokens_per_s",
                           "j_per_token",
                           "tokens_per_j",
                           "memory.gradients.peak_mib",
                           "memory.after_setup.mib",
                           "memory.after_setup.gradients.mib",
                           "memory.after_setup.gradients.peak_mib",
                           "memory.after_setup.other.mib",
                           "memory.after_setup.since.before_step.mib",
                           "files.host",
                           "files.plugin",
                           "files.device",
                           "files.comm.gloo",
                           "files.input.weights",
                           "telemetry.power_w.mean",
                           "telemetry.power_w.min",
                           "telemetry.power_w.max"})
    expect_told(name);
}

}  // namespace
}  // namespace assay::host::record
