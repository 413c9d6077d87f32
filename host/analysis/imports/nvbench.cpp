// The file of nvbench's --json: for each benchmark its states, each with the values of its axes and a list of summaries
// by tag. Times are in seconds. Numbers may be written as texts. Files of before 2022 have summaries by their titles.
#include <fmt/format.h>

#include <utility>

#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

struct Summaries {
  const Json& state;

  // The value of the first that is there.
  std::optional<double> value(std::initializer_list<const char*> tags) const {
    const auto all = state.find("summaries");
    if (all == state.end()) return std::nullopt;
    for (const char* tag : tags)
      if (all->is_object()) {
        if (const auto found = all->find(tag); found != all->end())
          if (const auto number = in(*found, "values")) return number;
      } else if (all->is_array()) {
        for (const Json& summary : *all)
          if (text_at(summary, "tag") == tag)
            if (const auto number = in(summary, "data")) return number;
      }
    return std::nullopt;
  }

 private:
  static std::optional<double> in(const Json& summary, const char* list) {
    if (!summary.is_object()) return std::nullopt;
    const auto values = summary.find(list);
    if (values == summary.end() || !values->is_array()) return std::nullopt;
    for (const Json& value : *values)
      if (text_at(value, "name") == "value") return number_at(value, "value");
    return std::nullopt;
  }
};

std::map<std::int64_t, std::string> devices_in(const Json& root) {
  std::map<std::int64_t, std::string> names;
  if (const auto devices = root.find("devices"); devices != root.end() && devices->is_array())
    for (const Json& device : *devices)
      if (const auto id = count_of(number_at(device, "id"))) names[*id] = text_at(device, "name");
  return names;
}

// A typed value: {"name": ..., "type": "int64", "value": "1024"}.
std::optional<Value> axis_value(const Json& axis) {
  const auto value = axis.find("value");
  if (value == axis.end()) return std::nullopt;
  const std::string type = text_at(axis, "type");
  if (const auto number = number_of(*value); number && value->is_string() && type != "string" && type != "type") {
    if (type == "int64") return record::count_if_whole(*number);
    return Value(*number);
  }
  return value_of(*value);
}

// Figures of one state. An impossible one fails the case: its other figures are not to be trusted either.
class Figures {
 public:
  explicit Figures(const Summaries& summaries) : summaries_(summaries) {}
  std::optional<double> time_ms(std::initializer_list<const char*> tags) {
    const auto s = summaries_.value(tags);
    if (s && !is_time_ms(*s * 1e3)) note(fmt::format("its {} is {} s", *tags.begin(), *s));
    return s ? std::optional(*s * 1e3) : std::nullopt;
  }
  std::optional<double> rate(const char* tag) {
    constexpr double beyond_any = 1e24;
    const auto per_s = summaries_.value({tag});
    if (per_s && !(*per_s >= 0 && *per_s < beyond_any)) note(fmt::format("its {} is {} a second", tag, *per_s));
    return per_s;
  }
  const std::string& problem() const { return problem_; }

 private:
  void note(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
  }
  const Summaries& summaries_;
  std::string problem_;
};

void add_figures(const Summaries& summaries, record::CaseRecord& record) {
  Figures figures(summaries);
  const auto mean_ms =
      figures.time_ms({"nv/cold/time/gpu/mean", "Average GPU Time (Cold)", "nv/cpu_only/time/cpu/mean"});
  if (!mean_ms)
    return fail(record, "it has no mean time that is a number (nv/cold/time/gpu/mean, nv/cpu_only/time/cpu/mean)");
  std::optional<double> std_s =
      spread_of(summaries.value({"nv/cold/time/gpu/stdev/absolute", "nv/cpu_only/time/cpu/stdev/absolute"}));
  if (const auto relative =
          spread_of(summaries.value({"nv/cold/time/gpu/stdev/relative", "nv/cpu_only/time/cpu/stdev/relative"}));
      !std_s && relative)
    std_s = *relative * *mean_ms / 1e3;
  const auto count =
      count_of(summaries.value({"nv/cold/sample_size", "Number of Trials (Cold)", "nv/cpu_only/sample_size"}));
  record::Phase step = step_of_mean(*mean_ms, std_s ? std::optional(*std_s * 1e3) : std::nullopt, count);
  step.min_ms = figures.time_ms({"nv/cold/time/gpu/min", "nv/cpu_only/time/cpu/min"});
  step.max_ms = figures.time_ms({"nv/cold/time/gpu/max", "nv/cpu_only/time/cpu/max"});
  step.p50_ms = figures.time_ms({"nv/cold/time/gpu/median", "nv/cpu_only/time/cpu/median"});
  step.host_mean_ms = figures.time_ms({"nv/cold/time/cpu/mean", "Average CPU Time (Cold)"});
  record::Rates rates;
  if (const auto bytes = figures.rate("nv/cold/bw/global/bytes_per_second")) rates.gbytes_per_s = *bytes / 1e9;
  rates.items_per_s = figures.rate("nv/cold/bw/item_rate");
  if (!figures.problem().empty()) return fail(record, figures.problem());
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", step);
  if (rates.gbytes_per_s || rates.items_per_s) record.result.rates = rates;
}

}  // namespace

ImportedRun read_nvbench(std::string_view text, const ImportOptions& options) {
  const Json root = parsed(text);
  ImportedRun run;
  const auto benchmarks = root.is_object() ? root.find("benchmarks") : root.end();
  if (!root.is_object() || benchmarks == root.end() || !benchmarks->is_array())
    throw ImportError("there is no list \"benchmarks\"; expected the file of nvbench's --json");
  const auto devices = devices_in(root);
  for (const Json& benchmark : *benchmarks) {
    const std::string name = text_at(benchmark, "name");
    const auto states = benchmark.is_object() ? benchmark.find("states") : benchmark.end();
    if (!benchmark.is_object() || states == benchmark.end() || !states->is_array()) continue;
    for (const Json& state : *states) {
      if (!state.is_object()) continue;
      record::CaseRecord record = new_record("nvbench:" + (name.empty() ? "unnamed" : name), run.records.size());
      if (const auto values = state.find("axis_values"); values != state.end() && values->is_array())
        for (const Json& axis : *values)
          if (const auto value = axis.is_object() ? axis_value(axis) : std::nullopt)
            record.identity.params.emplace_back(text_at(axis, "name"), *value);
      record.result.device.emplace();
      const auto id = count_of(number_at(state, "device"));
      const auto without = state.find("device");
      record.result.device->kind = without != state.end() && without->is_null() ? "cpu" : "cuda";
      if (const auto found = id ? devices.find(*id) : devices.end(); found != devices.end()) {
        record.result.device->name = found->second;
        record.result.device->ordinal = static_cast<std::int32_t>(*id);
        // Each of several devices in one file is a separate case.
        if (devices.size() > 1) record.identity.params.emplace_back("device", fmt::format("{} {}", *id, found->second));
      }
      if (const auto skipped = state.find("is_skipped"); skipped != state.end() && *skipped == true) {
        record.result.status = record::Status::unsupported;
        record.result.reason = "skipped: " + text_at(state, "skip_reason");
      } else {
        add_figures({state}, record);
      }
      run.records.push_back(std::move(record));
    }
  }
  if (run.records.empty()) throw ImportError("no benchmark in it has a state");
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "nvbench" : options.name);
  return run;
}

}  // namespace assay::host::imports
