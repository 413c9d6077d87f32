// What tests of imports ask of a run.
#pragma once
#include <functional>
#include <string>

#include "imports/formats.hpp"

namespace assay::host::imports {

inline std::string problem(const std::function<void()>& function) try {
  function();
  return "";
} catch (const ImportError& e) {
  return e.what();
}
inline const record::Phase& step(const record::CaseRecord& record) {
  return *record::find(record.result.phases, "step");
}
inline std::string param(const record::CaseRecord& record, const char* name) {
  const Value* value = record::find(record.identity.params, name);
  return value ? to_text(*value) : "";
}
inline std::string notes(const ImportedRun& run) {
  std::string all;
  for (const std::string& note : run.notes) all += note + "\n";
  return all;
}
inline double metric(const record::CaseRecord& record, const char* name) {
  const record::CaseMetric* found = record::find(record.result.metrics, name);
  return found ? found->value : record::no_number;
}

}  // namespace assay::host::imports
