// PyTorch's format of benchmark results (its wiki, "PyTorch OSS benchmark infra"): a list, or a line each, of metrics
// with the benchmark, the model and the values. The format says no unit.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

std::vector<Json> entries_of(std::string_view text) {
  const Json root = parsed_or_discarded(text);
  if (root.is_array()) return {root.begin(), root.end()};
  if (root.is_object()) return {root};
  std::vector<Json> entries;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json entry = parsed_or_discarded(line);
    // A file that is one list, and broken somewhere, says where by its whole.
    if (entry.is_discarded() && entries.empty()) parsed(text);
    if (entry.is_discarded()) parsed(line);
    if (entry.is_array())
      entries.insert(entries.end(), entry.begin(), entry.end());
    else
      entries.push_back(entry);
  }
  return entries;
}

const Json& part(const Json& entry, const char* key) {
  static const Json none = Json::object();
  const auto found = entry.find(key);
  return found != entry.end() && found->is_object() ? *found : none;
}

// What distinguishes the cases: the words of benchmark and model, and what is plain of their extra information.
record::Named<Value> params_of(const Json& entry) {
  record::Named<Value> params;
  const auto add = [&params](const std::string& key, const Json& value) {
    if (const auto plain = value_of(value); plain && !record::find(params, key)) params.emplace_back(key, *plain);
  };
  for (const auto& [key, value] : part(entry, "model").items())
    if (key != "extra_info") add(key == "name" ? "model" : "model_" + key, value);
  for (const auto& [key, value] : part(entry, "benchmark").items())
    if (key != "name" && key != "extra_info") add(key, value);
  for (const char* owner : {"model", "benchmark"})
    add_flat_params(part(part(entry, owner), "extra_info"), std::string(owner) + ".", params);
  // The machine is part of what was measured.
  if (const auto runners = entry.find("runners"); runners != entry.end() && runners->is_array())
    for (std::size_t i = 0; i < runners->size(); ++i)
      if ((*runners)[i].is_object())
        add_flat_params({{i == 0 ? "runner" : fmt::format("runner_{}", i), (*runners)[i]}}, "", params);
  return params;
}

// Empty where one of them is no number: the others are not the metric.
std::vector<double> values_of_metric(const Json& metric) {
  std::vector<double> values;
  if (const auto all = metric.find("benchmark_values"); all != metric.end() && all->is_array())
    for (const Json& value : *all) {
      const auto number = number_of(value);
      if (!number) return {};
      values.push_back(*number);
    }
  return values;
}

// A unit that the name itself says: "latency_ms", "latency (us)". In milliseconds; nothing where it says none.
std::optional<double> unit_in(const std::string& name) {
  struct Ending {
    const char* text;
    double ms;
  };
  for (const Ending ending : {Ending{"_ms", 1}, Ending{"(ms)", 1}, Ending{"_us", 1e-3}, Ending{"(us)", 1e-3},
                              Ending{"(s)", 1e3}, Ending{"_seconds", 1e3}})
    if (name.ends_with(ending.text)) return ending.ms;
  return std::nullopt;
}

void add_values(const std::string& name, const std::vector<double>& values, const ImportOptions& options,
                record::CaseRecord& record) {
  const auto asked = options.step_ms.find(name);
  const auto unit = asked != options.step_ms.end() ? std::optional(asked->second)
                    : options.step_ms.empty()      ? unit_in(name)
                                                   : std::nullopt;
  const bool may_have_step = !record.result.phases && record.result.status == record::Status::ok;
  const auto odd = std::find_if_not(values.begin(), values.end(),
                                    [&](double value) { return is_time_ms(value * unit.value_or(1)); });
  // A metric whose name alone says the unit may be something else than the time of a step.
  if (odd != values.end() && asked != options.step_ms.end())
    return fail(record, fmt::format("its {}, the time of a step, has the value {}", name, *odd));
  if (unit && may_have_step && odd == values.end()) {
    std::vector<double> samples_ms;
    for (const double value : values) samples_ms.push_back(value * *unit);
    record.result.phases.emplace();
    record.result.phases->emplace_back(
        "step", samples_ms.size() > 1 ? step_of_samples(samples_ms) : step_of_mean(samples_ms[0], std::nullopt, 1));
    return;
  }
  long double sum = 0;  // which two large values do not make infinite
  for (const double value : values) sum += value;
  // Which direction is the better one the format does not say either.
  add_metric(record, name, static_cast<double>(sum / static_cast<long double>(values.size())), "", Direction::neither);
}

}  // namespace

ImportedRun read_pytorch(std::string_view text, const ImportOptions& options) {
  ImportedRun run;
  std::map<std::string, std::size_t> places, times_seen;
  std::string benchmark;
  std::size_t without_values = 0;
  for (const Json& entry : entries_of(text)) {
    const Json& metric = entry.is_object() ? part(entry, "metric") : entry;
    const std::string name = text_at(metric, "name");
    if (!entry.is_object() || name.empty() || text_at(part(entry, "benchmark"), "name").empty())
      throw ImportError(
          "an entry has no name of a benchmark and of a metric; expected PyTorch's format of benchmark results: "
          "[{\"benchmark\": {\"name\": ...}, \"model\": {\"name\": ...}, \"metric\": {\"name\": ..., "
          "\"benchmark_values\": [...]}}]");
    const std::vector<double> values = values_of_metric(metric);
    if (values.empty()) {
      ++without_values;
      continue;
    }
    benchmark = text_at(part(entry, "benchmark"), "name");
    const record::Named<Value> params = params_of(entry);
    std::string key = benchmark;
    for (const auto& [param, value] : params) key += fmt::format("\n{}={}", param, to_text(value));
    // An entry of a metric that the case has already is one of its next repeat.
    key += fmt::format("\nrepeat {}", times_seen[key + "\nmetric " + name]++);
    const auto [place, is_new] = places.try_emplace(key, run.records.size());
    if (is_new) {
      run.records.push_back(new_record("pytorch:" + benchmark, run.records.size()));
      run.records.back().identity.params = params;
    }
    add_values(name, values, options, run.records[place->second]);
  }
  if (run.records.empty()) throw ImportError("no metric in it has values");
  if (without_values > 0)
    run.notes.push_back(
        fmt::format("metrics left out, since they have no value, or one that is no number: {}", without_values));
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "pytorch-" + benchmark : options.name);
  return run;
}

}  // namespace assay::host::imports
