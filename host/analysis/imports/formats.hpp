// Results of other programs as records: one row for each format that is understood.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "record/case_record.hpp"

namespace assay::host::imports {

// A text that is not of the format, or lacks what a record needs. The words say what was expected.
class ImportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ImportOptions {
  std::string file_name;                  // of the text, without its folder: some formats say in it what was measured
  std::string name;                       // of what was measured, where the format does not say; ""
  std::map<std::string, double> step_ms;  // by the name of a metric that is the time of a step: its unit in ms
};

struct ImportedRun {
  std::string name;                         // of the experiment: "nccl-tests-all_reduce"
  std::vector<record::CaseRecord> records;  // without time and machine
  std::optional<std::string> started;       // UTC, where the text says it
  std::string host;                         // where it says it; a record may have its own
  std::string revision;                     // of the source that was measured, where it says it
  std::vector<std::string> notes;           // what was left out, for the user
};

struct Format {
  const char* name;  // "nvbench"
  const char* summary;
  bool (*is_it)(std::string_view text);
  ImportedRun (*read)(std::string_view text, const ImportOptions& options);  // throws ImportError
};
std::span<const Format> all_formats();
// By its name, or by what the text looks like. Throws ImportError.
const Format& format_of(std::string_view text, const std::string& name);

}  // namespace assay::host::imports
