// A step as one record has it: what a rank computes and what it exchanges. A row for each workload says how its figures
// are to be read, and how they change with the number of ranks.
#pragma once
#include "forecast/measured_steps.hpp"

#include <optional>
#include <string>

namespace assay::host::forecast {

// One of the two: a step, or why nothing can be forecast from the record, with the remedy.
struct RecordedStep {
  std::optional<MeasuredStep> step;
  std::string why_not;
};
RecordedStep recorded_step(const ObservedCase& observed);

// Processors by the threads of a rank, on one machine.
std::optional<double> ranks_at_full_speed(const ObservedCase& observed);
int machines_of(const record::CaseRecord& r);
// The device, the library that carries messages between ranks on it, and whether they leave the machine.
Link link_of(const record::CaseRecord& r, std::string_view library_param);

std::optional<double> metric(const record::CaseRecord& r, std::string_view name);
bool is_amount(const std::optional<double>& x);  // it is known, finite and not below 0

}  // namespace assay::host::forecast
