// One view of a run in a file that the user has named.
#pragma once
#include <filesystem>

namespace assay::host::results {

enum class ViewFormat { csv, markdown, json };

struct ViewFile {
  std::filesystem::path path;
  ViewFormat format = ViewFormat::csv;
};

}  // namespace assay::host::results
