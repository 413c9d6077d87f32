// Reads the table that ncu writes with `--csv --page raw`: a row of names, a row of units, and a row for each launch of
// a kernel. Before, between and after them stand ncu's own lines ("==PROF== ...").
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::profile {

// One launch of a kernel, as the device counted it.
struct CountedLaunch {
  std::string name;    // as the compiler mangled it
  double time_us = 0;  // of one run of the kernel, its caches cold
  std::optional<double> dram_bytes;
  // Additions, multiplications and fused ones (2) in fp32, and what the tensor cores do in floating point. Nothing
  // where the table does not have them all. Packed arithmetic in 16 bits and fp64 outside of tensor cores are not
  // counted.
  std::optional<double> flops;
  std::optional<double> dram_percent, sm_percent, tensor_percent;  // of the most that ncu knows of the device
  std::optional<double> occupancy_percent;                         // warps that were active, of those that there may be
};

struct NcuTable {
  std::vector<CountedLaunch> launches;  // in the order in which they ran
  std::string problem;                  // why it cannot be used, in words; "": it was read to its end
  std::vector<std::string> notes;       // on columns that could not be used
};

// Numbers may have commas for thousands, units any decimal prefix. Another language's numbers (a comma for the
// decimals), a unit of time or bytes that is not known, a table that ends in the middle of a row: problems, never
// guesses.
NcuTable read_ncu_table(std::string_view text);

}  // namespace assay::host::profile
