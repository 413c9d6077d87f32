// What tests of imports ask of a run.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "imports/formats.hpp"

namespace assay::host::imports {

inline ImportedRun detected(const std::string& text) { return format_of(text, "").read(text, {}); }

inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

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
