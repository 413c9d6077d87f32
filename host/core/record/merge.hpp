// From the results of several ranks to the one result of their case (docs/record.md, "Ranks").
#pragma once
#include "record/case_record.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::host::record {

// What one rank's worker made of the case, or what its supervisor put in its place.
struct RankPart {
  std::int32_t rank = 0;  // in the whole case
  std::string host;       // the machine it ran on, as the record shall name it
  CaseResult result;
  // Distinguishes the devices of a host across processes, as a bus address does. Empty: the ordinal does, which is
  // wrong where each rank sees but its own GPU, as number 0.
  std::string device_id = {};
};

// The result of a case in which every rank is ok. A step takes as long as its slowest rank: those times are the
// record's, with statistics, drift, rates and notes on them anew; `by_rank`, `straggler` and `spread` say how the ranks
// differ. A single part comes back unchanged. When the ranks have not measured the same steps, the result is `failed`
// and says so. `confidence` is that of the intervals. Throws std::invalid_argument for no parts, and for a part that is
// not ok.
CaseResult merge_ranks(const std::vector<RankPart>& parts, double confidence);

// The result of a case that has failed: what `parts[culprit]` says of it, with its rank and host, and an entry for each
// rank in `by_rank`. A single part comes back unchanged. Throws std::invalid_argument when there is no such part, or
// when it is ok.
CaseResult merge_failed_ranks(const std::vector<RankPart>& parts, std::size_t culprit);

}  // namespace assay::host::record
