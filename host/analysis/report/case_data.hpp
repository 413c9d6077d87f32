// A page's data of one case: its figures for the plots, and why it failed. Texts go in as they are; the page shows
// them as text, and page.cpp spells them so that they cannot leave the data.
#pragma once
#include "record/case_record.hpp"
#include "report/rounded.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::host::report {

// Names that stand in many cases; a case holds only their places.
class NameList {
 public:
  std::size_t place_of(const std::string& name);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

struct SharedNames {
  NameList phases, memory_kinds, telemetry, peaks;
  std::vector<record::Peak> peak_figures;  // one per name in `peaks`
  std::vector<bool> peak_is_stated;        // by the maker; else measured
};

// `samples`: how many samples of the step a case may keep.
Json case_json(const record::CaseRecord& record, std::size_t samples, SharedNames& names);

}  // namespace assay::host::report
