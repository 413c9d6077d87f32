// From measurements to the worker's part of a record.
#pragma once
#include <assay/device.h>

#include <nlohmann/json_fwd.hpp>

#include "measure/loop.hpp"
#include "measure/memory_ledger.hpp"
#include "plugin/schema.hpp"
#include "telemetry/contention.hpp"
#include "worker/case_spec.hpp"

#include <optional>
#include <string>
#include <vector>

namespace assay::host {

nlohmann::ordered_json device_record(const char* kind, std::int32_t ordinal, const assay_device_info& info);
nlohmann::ordered_json memory_record(const MemoryLedger& ledger);
nlohmann::ordered_json phases_record(const Samples& samples, const WorkloadSchema& schema, double confidence);
nlohmann::ordered_json step_metrics_record(const Samples& samples, const WorkloadSchema& schema, double confidence);
nlohmann::ordered_json case_metrics_record(const std::vector<std::optional<double>>& values,
                                           const WorkloadSchema& schema);
// What is wrong with a value that should be an index into the metric's words; "" when nothing is.
std::string word_mistake(const std::vector<std::optional<double>>& values, const WorkloadSchema& schema);
nlohmann::ordered_json work_record(const assay_work& work, const std::string& item_unit);
// Work over the mean step time.
nlohmann::ordered_json rates_record(const assay_work& work, double step_mean_ms);

// Of case_metrics_record and step_metrics_record: a loss that is NaN must not pass in silence.
std::vector<std::string> metric_notes(const nlohmann::ordered_json& metrics,
                                      const nlohmann::ordered_json& step_metrics);

// The processor over the measured window.
nlohmann::ordered_json contention_record(const Contention& contention);
std::vector<std::string> contention_notes(const Contention& contention);

// What a careful reader of the figures should know: a wide spread, a rule that gave up, allocations in the window.
std::vector<std::string> notes_on(const LoopResult& result, const CaseSpec& spec, const Recorder& recorder,
                                  std::int64_t allocations_while_measuring);

}  // namespace assay::host
