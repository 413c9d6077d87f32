// In what the machines, versions and settings of several sides differ.
#pragma once
#include "compare/sides.hpp"

#include <string>
#include <vector>

namespace assay::host::compare {

struct Difference {
  std::string item;                 // "driver and libraries", "cpu.model", "assay.revision", "measure.steps"
  std::vector<std::string> values;  // one per side; "" where the side does not say; "a | b" where its runs differ
};

struct Differences {
  std::vector<Difference> items;                 // those alone that differ between sides that say them
  std::vector<std::vector<std::string>> untold;  // per side: items that another side says and this one does not
};

Differences find_differences(const std::vector<Side>& sides);

}  // namespace assay::host::compare
