#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "exports/exported_case.hpp"
#include "exports/formats.hpp"

namespace assay::host::exports {
namespace {

using Json = nlohmann::ordered_json;

// compare.py pools all entries of one name: a name is that of one case of one run.
class Names {
 public:
  explicit Names(const std::vector<results::TabledRun>& runs) : has_several_runs_(runs.size() > 1) {
    for (const results::TabledRun& run : runs)
      for (const record::CaseRecord& record : run.records) ++seen_[short_name(run, record)];
  }
  std::string of(const results::TabledRun& run, const record::CaseRecord& record) const {
    const std::string name = short_name(run, record);
    return seen_.at(name) == 1 ? name : fmt::format("{}/case:{}", name, record.identity.index + 1);
  }

 private:
  std::string short_name(const results::TabledRun& run, const record::CaseRecord& record) const {
    std::string name = name_of(record);
    if (record.identity.repeat) name += fmt::format("/repeat:{}", *record.identity.repeat);
    if (has_several_runs_) name += fmt::format("/run:{}/{}", run.source.experiment, run.source.run);
    return name;
  }

  bool has_several_runs_;
  std::map<std::string, int> seen_;
};

Json entry_of(const std::string& name, std::int64_t repetitions, std::int64_t index) {
  return {{"name", name},
          {"run_name", name},
          {"run_type", "iteration"},
          {"repetitions", repetitions},
          {"repetition_index", index},
          {"threads", 1}};
}

void add_time(double ms, std::int64_t iterations, Json& entry) {
  entry["iterations"] = iterations;
  // compare.py prints times as whole numbers.
  entry["real_time"] = ms * 1e6;
  // The format has no file without it: see the context.
  entry["cpu_time"] = ms * 1e6;
  entry["time_unit"] = "ns";
}

void add_counters(const record::CaseRecord& record, Json& entry) {
  if (const auto& rates = record.result.rates) {
    if (rates->items_per_s) entry["items_per_second"] = *rates->items_per_s;
    if (rates->gbytes_per_s) entry["bytes_per_second"] = *rates->gbytes_per_s * 1e9;
    if (rates->gflop_per_s) entry["gflop_per_s"] = *rates->gflop_per_s;
  }
  if (record.result.metrics)
    for (const auto& [name, metric] : *record.result.metrics)
      if (!metric.word && metric.value == metric.value && !entry.contains(name)) entry[name] = metric.value;
}

}  // namespace

std::string google_benchmark_json(const std::vector<results::TabledRun>& runs) {
  Json all{{"context",
            {{"executable", "assay"}, {"note", "cpu_time is real_time: a record has no processor time of a step"}}},
           {"benchmarks", Json::array()}};
  const Names names(runs);
  for (const results::TabledRun& run : runs)
    for (const record::CaseRecord& record : run.records) {
      const std::string name = names.of(run, record);
      Json& context = all["context"];
      if (!context.contains("date")) context["date"] = record.started, context["host_name"] = record.host;
      const record::Phase* step = record::step_of(record.result);
      if (!step || !step->mean_ms) {
        Json entry = entry_of(name, 1, 0);
        entry["error_occurred"] = true;
        entry["error_message"] = record.result.status_text() + ": " + record.result.reason;
        add_time(0, 0, entry);
        all["benchmarks"].push_back(std::move(entry));
        continue;
      }
      const std::int64_t inner = record.result.sampling ? record.result.sampling->inner.value_or(1) : 1;
      const auto count = static_cast<std::int64_t>(step->samples_ms.size());
      for (std::int64_t i = 0; i < std::max<std::int64_t>(count, 1); ++i) {
        Json entry = entry_of(name, std::max<std::int64_t>(count, 1), i);
        if (count > 0)
          add_time(step->samples_ms[static_cast<std::size_t>(i)], inner, entry);
        else
          add_time(*step->mean_ms, step->n.value_or(1), entry);
        add_counters(record, entry);
        all["benchmarks"].push_back(std::move(entry));
      }
    }
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::host::exports
