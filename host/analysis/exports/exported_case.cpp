#include "exports/exported_case.hpp"

#include "common/value.hpp"

namespace assay::host::exports {

std::string name_of(const record::CaseRecord& record) {
  std::string name = record.identity.workload;
  for (const auto& [axis, value] : record.identity.axes) name += "/" + axis + ":" + to_text(value);
  return name;
}

}  // namespace assay::host::exports
