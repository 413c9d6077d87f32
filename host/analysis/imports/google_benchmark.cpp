// The file of google-benchmark's --benchmark_format=json: a context, and an entry for each repetition or aggregate of a
// benchmark. An aggregate's `iterations` are its repetitions, and its `cv` is a share, though its unit says percent.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

constexpr const char* known_keys[] = {"name",
                                      "family_index",
                                      "per_family_instance_index",
                                      "run_name",
                                      "run_type",
                                      "repetitions",
                                      "threads",
                                      "iterations",
                                      "repetition_index",
                                      "real_time",
                                      "cpu_time",
                                      "time_unit",
                                      "label",
                                      "aggregate_name",
                                      "aggregate_unit",
                                      "big_o",
                                      "rms",
                                      "bytes_per_second",
                                      "items_per_second",
                                      "error_occurred",
                                      "error_message",
                                      "skipped",
                                      "skip_message"};

double unit_ms(const Json& json) {
  const std::string unit = text_at(json, "time_unit");
  for (const auto& [name, ms] : {std::pair{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1.0}, {"s", 1e3}})
    if (unit == name) return ms;
  throw ImportError(fmt::format("'{}' has the time_unit '{}'; expected ns, us, ms or s", text_at(json, "name"), unit));
}

struct Entry {
  const Json& json;
  std::string run_name, aggregate;  // "" of a repetition

  // Distinguishes benchmarks that have one name: a program may register it several times.
  std::string key() const {
    std::string all = run_name;
    for (const char* index : {"family_index", "per_family_instance_index", "threads", "repetitions"})
      all += fmt::format("\n{}", number_at(json, index).value_or(-1));
    return all;
  }
};

// How many benchmarks share a name, and which one of them has a key, in the order of the file.
class Namesakes {
 public:
  void add(const Entry& entry) {
    auto& keys = keys_[entry.run_name + fmt::format("\n{}", number_at(entry.json, "threads").value_or(1))];
    if (const std::string key = entry.key(); std::find(keys.begin(), keys.end(), key) == keys.end())
      keys.push_back(key);
  }
  // From 1; nothing where no other has its name.
  std::optional<std::int64_t> number_of(const Entry& entry) const {
    const auto found = keys_.find(entry.run_name + fmt::format("\n{}", number_at(entry.json, "threads").value_or(1)));
    if (found == keys_.end() || found->second.size() < 2) return std::nullopt;
    return std::find(found->second.begin(), found->second.end(), entry.key()) - found->second.begin() + 1;
  }

 private:
  std::map<std::string, std::vector<std::string>> keys_;
};

Entry entry_of(const Json& json) {
  Entry entry{json, text_at(json, "run_name"), text_at(json, "aggregate_name")};
  const std::string name = text_at(json, "name");
  if (entry.run_name.empty()) entry.run_name = name;
  // Before 1.5 the name alone says it.
  if (!json.contains("run_type"))
    for (const char* aggregate : {"mean", "median", "stddev", "cv", "BigO", "RMS"})
      if (const std::string ending = std::string("_") + aggregate; name.ends_with(ending)) {
        entry.aggregate = aggregate;
        entry.run_name = name.substr(0, name.size() - ending.size());
      }
  return entry;
}

record::CaseRecord record_of(const Entry& entry, const Namesakes& namesakes, std::size_t index) {
  const std::size_t slash = entry.run_name.find('/');
  record::CaseRecord record = new_record("google-benchmark:" + entry.run_name.substr(0, slash), index);
  if (slash != std::string::npos) record.identity.params.emplace_back("arguments", entry.run_name.substr(slash + 1));
  if (const auto threads = count_of(number_at(entry.json, "threads")); threads && *threads != 1)
    record.identity.params.emplace_back("threads", *threads);
  if (const auto number = namesakes.number_of(entry)) record.identity.params.emplace_back("namesake", *number);
  record.result.device.emplace();
  record.result.device->kind = "cpu";
  if (const std::string label = text_at(entry.json, "label"); !label.empty()) record.result.note("label: " + label);
  return record;
}

// Counters that an author has added stand beside the others, by their names.
void add_counters(const Json& json, record::CaseRecord& record) {
  for (const auto& [key, value] : json.items()) {
    if (std::find(std::begin(known_keys), std::end(known_keys), key) != std::end(known_keys)) continue;
    if (const auto number = number_of(value); number && value.is_number())
      add_metric(record, key, *number, "", Direction::neither);
  }
  record::Rates rates;
  if (const auto bytes = number_at(json, "bytes_per_second")) rates.gbytes_per_s = *bytes / 1e9;
  rates.items_per_s = number_at(json, "items_per_second");
  if (rates.gbytes_per_s || rates.items_per_s) record.result.rates = rates;
}

// The figures are a repetition's, or those of the aggregate "mean".
void add_times(const Json& json, std::optional<std::int64_t> count, record::CaseRecord& record) {
  if (const auto skipped = json.find("skipped"); skipped != json.end() && *skipped == true) {
    record.result.status = record::Status::unsupported;
    record.result.reason = "skipped: " + text_at(json, "skip_message");
    return;
  }
  const std::string message = text_at(json, "error_message");
  if (const auto error = json.find("error_occurred"); (error != json.end() && *error == true) || !message.empty())
    return fail(record, message.empty() ? "it reports an error without a message" : message);
  const double ms = unit_ms(json);
  const auto real = number_at(json, "real_time");
  if (!real || !is_time_ms(*real * ms))
    return fail(record, real ? fmt::format("its real_time is {}", *real) : "it has no real_time that is a number");
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", step_of_mean(*real * ms, std::nullopt, count));
  if (const auto cpu = number_at(json, "cpu_time"))
    add_metric(record, "cpu_time_ms", *cpu * ms, "ms", Direction::lower_is_better);
  add_counters(json, record);
}

// Where a file has no repetitions (--benchmark_report_aggregates_only): mean, median and deviation are one case,
// whatever their order.
struct Aggregates {
  std::size_t place = 0;  // of the record
  std::vector<Entry> entries;
};

void add_aggregates(const Aggregates& aggregates, record::CaseRecord& record, std::set<std::string>& others) {
  const auto mean = std::find_if(aggregates.entries.begin(), aggregates.entries.end(),
                                 [](const Entry& entry) { return entry.aggregate == "mean"; });
  if (mean == aggregates.entries.end()) return fail(record, "its aggregates have no mean");
  add_times(mean->json, count_of(number_at(mean->json, "iterations")), record);
  for (const Entry& entry : aggregates.entries) {
    if (entry.aggregate == "mean" || entry.aggregate == "cv") continue;  // cv is the deviation over the mean
    const bool is_time = text_at(entry.json, "aggregate_unit") != "percentage";
    const auto real = number_at(entry.json, "real_time");
    if (!record.result.phases || !real) continue;
    record::Phase& step = record.result.phases->front().second;
    const double ms = *real * (is_time ? unit_ms(entry.json) : 1);
    if (entry.aggregate == "median" && is_time)
      step.p50_ms = ms;
    else if (entry.aggregate == "stddev" && is_time)
      step.std_ms = spread_of(ms), step.cv = ms / *step.mean_ms;
    else if (entry.aggregate == "min" && is_time)
      step.min_ms = ms;
    else if (entry.aggregate == "max" && is_time)
      step.max_ms = ms;
    else
      others.insert(entry.aggregate);
  }
}

std::vector<std::string> context_notes(const Json& context) {
  std::vector<std::string> notes;
  if (text_at(context, "library_build_type") == "debug")
    notes.emplace_back("google-benchmark itself was built without optimisation (library_build_type debug)");
  if (const auto scaling = context.find("cpu_scaling_enabled"); scaling != context.end() && *scaling == true)
    notes.emplace_back("the processors' clocks were free to change (cpu_scaling_enabled)");
  std::vector<std::string> left;
  for (const auto& [key, value] : context.items())
    if (key != "date" && key != "host_name" && key != "library_version" && key != "library_build_type" &&
        key != "cpu_scaling_enabled")
      left.push_back(key);
  if (!left.empty()) notes.push_back(fmt::format("left out of its context: {}", fmt::join(left, ", ")));
  return notes;
}

}  // namespace

ImportedRun read_google_benchmark(std::string_view text, const ImportOptions& options) {
  const Json root = parsed(text);
  const auto entries = root.is_object() ? root.find("benchmarks") : root.end();
  if (!root.is_object() || entries == root.end() || !entries->is_array() || entries->empty())
    throw ImportError("there is no list \"benchmarks\" with entries; expected google-benchmark's JSON");
  std::set<std::string> repeated, others;
  Namesakes namesakes;
  std::vector<Entry> all;
  for (const Json& json : *entries) {
    if (!json.is_object()) continue;
    Entry entry = entry_of(json);
    if (entry.run_name.empty()) throw ImportError("an entry has no name; expected google-benchmark's JSON");
    if (entry.aggregate == "BigO" || entry.aggregate == "RMS") {
      others.insert(entry.aggregate);  // of all sizes of a family together
      continue;
    }
    namesakes.add(entry);
    if (entry.aggregate.empty()) repeated.insert(entry.key());
    all.push_back(std::move(entry));
  }
  ImportedRun run;
  std::map<std::string, Aggregates> by_key;
  std::size_t aggregates = 0;
  for (const Entry& entry : all) {
    if (entry.aggregate.empty()) {
      run.records.push_back(record_of(entry, namesakes, run.records.size()));
      add_times(entry.json, count_of(number_at(entry.json, "iterations")), run.records.back());
    } else if (repeated.contains(entry.key())) {
      ++aggregates;
    } else {
      const auto [group, is_new] = by_key.try_emplace(entry.key());
      if (is_new) group->second.place = run.records.size();
      if (is_new) run.records.push_back(record_of(entry, namesakes, run.records.size()));
      group->second.entries.push_back(entry);
    }
  }
  for (const auto& [key, group] : by_key) add_aggregates(group, run.records[group.place], others);
  if (run.records.empty()) throw ImportError("no entry of \"benchmarks\" has a time");
  if (aggregates > 0)
    run.notes.push_back(fmt::format("aggregates left out, since their repetitions are cases: {}", aggregates));
  if (!by_key.empty()) run.notes.emplace_back("left out of aggregates but the mean: cpu_time, rates and counters");
  if (!others.empty()) run.notes.push_back(fmt::format("aggregates left out: {}", fmt::join(others, ", ")));
  if (const auto context = root.find("context"); context != root.end() && context->is_object()) {
    run.host = text_at(*context, "host_name");
    run.started = text_at(*context, "date");
    if (const std::string version = text_at(*context, "library_version"); !version.empty())
      for (record::CaseRecord& record : run.records) record.result.libraries.emplace_back("google-benchmark", version);
    for (std::string& note : context_notes(*context)) run.notes.push_back(std::move(note));
  }
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "google-benchmark" : options.name);
  return run;
}

}  // namespace assay::host::imports
