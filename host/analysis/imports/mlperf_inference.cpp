#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "imports/mlperf_events.hpp"

namespace assay::host::imports {
namespace {

// Which time of a query a result is, in nanoseconds.
record::Number record::Phase::*figure_of_query(const std::string& key) {
  for (const auto& [name, figure] : {std::pair{"result_mean_latency_ns", &record::Phase::mean_ms},
                                     {"result_min_latency_ns", &record::Phase::min_ms},
                                     {"result_max_latency_ns", &record::Phase::max_ms},
                                     {"result_50.00_percentile_latency_ns", &record::Phase::p50_ms},
                                     {"result_90.00_percentile_latency_ns", &record::Phase::p90_ms},
                                     {"result_95.00_percentile_latency_ns", &record::Phase::p95_ms},
                                     {"result_99.00_percentile_latency_ns", &record::Phase::p99_ms}})
    if (key == name) return figure;
  return nullptr;
}

// The time of a query is the step. Verdicts of the load generator say whether it counts.
class Query {
 public:
  explicit Query(record::CaseRecord& record) : record_(record) {}

  void take(const std::string& key, const Json& value, std::set<std::string>& others) {
    const std::string word = value.is_string() ? value.get<std::string>() : "";
    const auto number = value.is_number() ? number_of(value) : std::nullopt;
    const bool is_result = key.starts_with("result_") || key.starts_with("early_stopping_");
    if (key == "loadgen_version") {
      record_.result.libraries.emplace_back("mlperf-loadgen", word);
    } else if (key == "effective_scenario" && !word.empty()) {
      record_.identity.workload = "mlperf-inference:" + word;
    } else if (key.starts_with("effective_") || key == "sut_name" || key.starts_with("qsl_")) {
      if (const auto plain = value_of(value)) record_.identity.params.emplace_back(key, *plain);
    } else if (key == "result_validity") {
      if (validity_.empty() || validity_ == "VALID") validity_ = word.empty() ? value.dump() : word;
    } else if (key == "num_errors") {
      const auto count = number_of(value);  // also of a text
      if (!count || *count != 0) errors_ = count ? fmt::format("{}", *count) : value.dump();
    } else if (const auto figure = number ? figure_of_query(key) : nullptr) {
      step_.*figure = *number / 1e6;
    } else if (key == "result_query_count" && number) {
      step_.n = count_of(number);
    } else if (is_result && number) {
      metrics_.emplace_back(key.starts_with("result_") ? key.substr(7) : key, *number);
    } else if (is_result && value.is_boolean()) {
      record_.result.note(fmt::format("{}: {}", key, value.get<bool>()));
    } else {
      others.insert(key);
    }
  }

  void finish() {
    record::CaseResult& result = record_.result;
    if (validity_ != "VALID")
      return fail(record_,
                  validity_.empty() ? "it has no result_validity: it ended early" : "result_validity is " + validity_);
    if (!errors_.empty()) return fail(record_, fmt::format("num_errors is {}", errors_));
    for (const auto& [name, value] : metrics_)
      add_metric(
          record_, name, value, unit_in_name(name),
          unit_in_name(name) == "1/s" || name.starts_with("qps_") ? Direction::higher_is_better : Direction::neither);
    // Throughput scenarios have no mean time of a query.
    if (!step_.mean_ms) {
      if (step_.n) add_metric(record_, "query_count", static_cast<double>(*step_.n), "", Direction::neither);
      return;
    }
    if (!is_time_ms(*step_.mean_ms)) return fail(record_, fmt::format("its mean latency is {} ms", *step_.mean_ms));
    step_.share = 1;
    result.phases.emplace();
    result.phases->emplace_back("step", step_);
  }

 private:
  record::CaseRecord& record_;
  record::Phase step_;
  std::string validity_, errors_;
  record::Named<double> metrics_;
};

}  // namespace

bool is_of_inference(const MlperfEvents& events) {
  return !events.events.empty() && text_at(events.events.front(), "key") == "loadgen_version";
}

ImportedRun read_mlperf_inference(const MlperfEvents& events, const ImportOptions& options) {
  ImportedRun run;
  std::set<std::string> others;
  // The load generator begins each of its runs with its version; a file may have several.
  const auto begins = [](const Json& event) { return text_at(event, "key") == "loadgen_version"; };
  for (auto event = events.events.begin(); event != events.events.end();) {
    const auto end = std::find_if(event + 1, events.events.end(), begins);
    record::CaseRecord record = new_record("mlperf-inference", run.records.size());
    Query query(record);
    for (; event != end; ++event) {
      const std::string key = text_at(*event, "key");
      const auto found = event->find("value");
      if (key == "test_datetime") {
        if (!run.started) run.started = text_at(*event, "value");
      } else if (found != event->end()) {
        query.take(key, *found, others);
      }
    }
    query.finish();
    run.records.push_back(std::move(record));
  }
  note_lines(events, run);
  if (!others.empty()) run.notes.push_back(fmt::format("left out: {}", fmt::join(others, ", ")));
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? run.records[0].identity.workload : options.name);
  return run;
}

}  // namespace assay::host::imports
