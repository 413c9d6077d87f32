// From measurements to the fields of a case's result.
#pragma once
#include <assay/device.h>

#include "experiment/device_description.hpp"
#include "measure/loop.hpp"
#include "measure/memory_ledger.hpp"
#include "plugin/schema.hpp"
#include "record/case_record.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/telemetry_figures.hpp"
#include "worker/case_spec.hpp"

#include <optional>
#include <string>
#include <vector>

namespace assay::host::worker {

record::Device device_of(const assay_device_api& api, std::int32_t ordinal, const assay_device_info& info);
// `step_peaks_mib`: of each measured step.
record::Memory memory_of(const measure::MemoryLedger& ledger, record::Status status,
                         const std::vector<double>& step_peaks_mib);
telemetry::PowerReadings power_readings_of(const experiment::DeviceFacts& facts);
// The most that this process, or one that it has waited for, has had in memory.
double process_peak_mib();
// `told_phases`: the steps that have the workload's phases, which are shares of these steps' mean.
record::Named<record::Phase> phases_of(const measure::Samples& samples, const measure::Samples& told_phases,
                                       const plugin::WorkloadSchema& schema, double confidence);
record::Sampling sampling_of(const measure::LoopResult& result, const measure::MeasurePlan& plan);
record::Named<record::StepMetric> step_metrics_of(const measure::Samples& samples, const plugin::WorkloadSchema& schema,
                                                  double confidence);
record::Named<record::CaseMetric> case_metrics_of(const std::vector<std::optional<double>>& values,
                                                  const plugin::WorkloadSchema& schema);
// Says what is wrong with a value that should be an index into the metric's words; "" when nothing is.
std::string word_mistake(const std::vector<std::optional<double>>& values, const plugin::WorkloadSchema& schema);
record::ProcessorShares processor_shares_of(const telemetry::Contention& contention);

// Notes on metrics that are no finite numbers: a loss that is NaN must not pass in silence.
std::vector<std::string> metric_notes(const record::CaseResult& result);
// `threads`: those of the workload, for the words. `threads_of_case`: busy ones, of all ranks on these processors.
std::vector<std::string> contention_notes(const telemetry::Contention& contention, std::int64_t threads,
                                          std::uint64_t threads_of_case);
// Notes on what a careful reader of the figures should know: a wide spread, a rule that gave up, allocations in the
// window.
// `phases_apart`: phases are timed in separate steps.
std::vector<std::string> notes_on(const measure::LoopResult& result, const CaseSpec& spec,
                                  const measure::Recorder& recorder, std::int64_t allocations_while_measuring,
                                  bool phases_apart);

// A line for each kind of memory that the workload has given up more of than it had taken.
std::vector<std::string> overdrawn_memory(const measure::MemoryLedger& ledger);

}  // namespace assay::host::worker
