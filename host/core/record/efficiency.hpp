// A step's efficiency: its rates beside the most that the devices do, and the energy that they took.
#pragma once
#include "record/case_record.hpp"

#include <vector>

namespace assay::host::record {

struct RankPart;

// For a case of one rank, whose work, rates, telemetry and measured peak stand in the result: adds the peak that the
// device's maker states, and fills the figures.
void set_efficiency(CaseResult& result);

// The same of several ranks, for the merged result: their devices' peaks together. Devices that ranks share count once.
// Copies have the rates of one, so their peaks are one copy's part.
void set_efficiency(CaseResult& merged, const std::vector<const RankPart*>& ranks);

// The measured steps' mean over that of the silent ones, less 1, where there are such. Of several ranks the slowest
// one's silent steps count: nobody waits there for anybody, and the slowest would still be what a step takes.
void set_communication_tax(CaseResult& result);
void set_communication_tax(CaseResult& merged, const std::vector<const RankPart*>& ranks);

// Says when the energy by the device's counter and that by its samples of power are more than 5% apart; else "".
std::string energy_note(const Telemetry& telemetry);

}  // namespace assay::host::record
