// The file that a report goes to.
#pragma once
#include <filesystem>
#include <string>

#include "common/usage_error.hpp"

namespace assay::host::report {

// It cannot go there. The text names the file and the remedy.
class OutputError : public UsageError {
 public:
  using UsageError::UsageError;
};

// Makes the file's folder, and looks whether the file can be written, before any work. A file that is there already is
// replaced if it is a report or a plot that assay has made, or where `replaces_any`. Throws OutputError.
void check_output(const std::filesystem::path& file, bool replaces_any);

}  // namespace assay::host::report
