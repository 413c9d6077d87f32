// The telemetry and validity of several ranks as those of their case (docs/record.md, "Ranks").
#pragma once
#include "record/merge.hpp"

#include <optional>
#include <vector>

namespace assay::host::record {

// Figures: the mean of the ranks' means, the least and the largest. Energy: of all devices, one that ranks share
// counted once. Everything else: the largest. Nothing when no rank has any.
std::optional<Telemetry> merged_telemetry(const std::vector<const RankPart*>& ranks);

// The verdict of the rank that fares worst, with the rank named where the others fare better. Nothing when no rank has
// one.
std::optional<Validity> merged_validity(const std::vector<const RankPart*>& ranks);

// The means of one rank's figures, and its energy, by name: its entry of by_rank. Nothing if it reported none.
std::optional<Named<double>> telemetry_means(const CaseResult& rank);

// The figures of a device's telemetry: their names and where they stand.
struct TelemetryFigure {
  const char* name;
  std::optional<Figure> Telemetry::*member;
  const char* unit;
};
inline constexpr TelemetryFigure telemetry_figures[] = {
    {"gpu_utilisation_percent", &Telemetry::gpu_utilisation_percent, "%"},
    {"cpu_utilisation_percent", &Telemetry::cpu_utilisation_percent, "%"},
    {"sm_clock_mhz", &Telemetry::sm_clock_mhz, "MHz"},
    {"memory_clock_mhz", &Telemetry::memory_clock_mhz, "MHz"},
    {"power_w", &Telemetry::power_w, "W"},
    {"temperature_c", &Telemetry::temperature_c, "°C"}};

}  // namespace assay::host::record
