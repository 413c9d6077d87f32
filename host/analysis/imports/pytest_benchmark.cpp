// The file of pytest-benchmark's --benchmark-json: an entry for each test, with statistics in seconds and, unless they
// were left out, the time of each round.
#include <fmt/format.h>

#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

void add_times(const Json& stats, record::CaseRecord& record) {
  const auto ms = [&stats](const char* key) -> record::Number {
    const auto seconds = number_at(stats, key);
    return seconds ? std::optional(*seconds * 1e3) : std::nullopt;
  };
  std::vector<double> samples_ms;
  if (const auto data = stats.find("data"); data != stats.end() && data->is_array())
    for (const Json& round : *data) {
      const auto seconds = number_of(round);
      if (!seconds || !is_time_ms(*seconds * 1e3))
        return fail(record, "one of its rounds has no time: " + round.dump());
      samples_ms.push_back(*seconds * 1e3);
    }
  record::Phase step;
  if (!samples_ms.empty()) {
    step = step_of_samples(samples_ms);
  } else {
    const auto mean = ms("mean");
    if (!mean || !is_time_ms(*mean)) return fail(record, "it has neither rounds nor a mean that is one");
    step = step_of_mean(*mean, spread_of(ms("stddev")), count_of(number_at(stats, "rounds")));
    step.min_ms = ms("min"), step.max_ms = ms("max"), step.p50_ms = ms("median");
  }
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", step);
  // Calls of the function within a round, whose time is that of one call.
  if (const auto calls = count_of(number_at(stats, "iterations")); calls && *calls != 1) {
    record.result.sampling.emplace();
    record.result.sampling->inner = *calls;
  }
}

// `param` is pytest's name of them all ("10-None"), which counts where the parameters themselves are not there.
void add_parameters(const Json& entry, record::Named<Value>& params) {
  const auto values = entry.find("params"), name = entry.find("param");
  if (values != entry.end() && values->is_object() && !values->empty()) {
    for (const auto& [key, value] : values->items())
      if (value.is_null()) params.emplace_back(key, "None");
    add_flat_params(*values, "", params);
  } else if (const auto plain = name == entry.end() ? std::nullopt : value_of(*name)) {
    params.emplace_back("param", *plain);
  }
  if (const auto more = entry.find("extra_info"); more != entry.end() && more->is_object())
    add_flat_params(*more, "extra_info.", params);
}

}  // namespace

ImportedRun read_pytest_benchmark(std::string_view text, const ImportOptions& options) {
  const Json root = parsed(text);
  const auto entries = root.is_object() ? root.find("benchmarks") : root.end();
  if (!root.is_object() || entries == root.end() || !entries->is_array() || entries->empty())
    throw ImportError("there is no list \"benchmarks\" with entries; expected the file of pytest's --benchmark-json");
  ImportedRun run;
  bool has_samples = true;
  for (const Json& entry : *entries) {
    const auto stats = entry.is_object() ? entry.find("stats") : entry.end();
    if (!entry.is_object() || text_at(entry, "name").empty())
      throw ImportError("an entry has no name; expected the file of pytest's --benchmark-json");
    record::CaseRecord record = new_record("pytest-benchmark", run.records.size());
    const std::string full = text_at(entry, "fullname");
    record.identity.params.emplace_back("test", full.empty() ? text_at(entry, "name") : full);
    if (const std::string group = text_at(entry, "group"); !group.empty())
      record.identity.params.emplace_back("group", group);
    add_parameters(entry, record.identity.params);
    if (const std::string version = text_at(root, "version"); !version.empty())
      record.result.libraries.emplace_back("pytest-benchmark", version);
    record.result.device.emplace();
    record.result.device->kind = "cpu";
    if (stats == entry.end() || !stats->is_object())
      fail(record, "it has no statistics");
    else
      add_times(*stats, record), has_samples = has_samples && stats->contains("data");
    run.records.push_back(std::move(record));
  }
  run.notes.emplace_back(has_samples ? "left out, since the rounds are there: quartiles, outliers, ops, total"
                                     : "left out: quartiles, outliers, ops, total");
  run.notes.emplace_back(
      "left out: options of the benchmarks, the machine's description but its name, the commit's but its id");
  if (const auto machine = root.find("machine_info"); machine != root.end() && machine->is_object())
    run.host = text_at(*machine, "node");
  if (const auto commit = root.find("commit_info"); commit != root.end() && commit->is_object()) {
    run.revision = text_at(*commit, "id");
    if (const auto dirty = commit->find("dirty"); !run.revision.empty() && dirty != commit->end() && *dirty == true)
      run.revision += " with changes";
  }
  run.started = text_at(root, "datetime");
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "pytest-benchmark" : options.name);
  return run;
}

}  // namespace assay::host::imports
