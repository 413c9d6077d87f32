#include "report/report_file.hpp"

#include "common/files.hpp"
#include "report/page.hpp"
#include "report/picture.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string_view>
#include <system_error>

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

bool begins_with(const fs::path& file, std::string_view mark) {
  std::ifstream in(file, std::ios::binary);
  std::string begin(mark.size(), '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return in && begin == mark;
}

void refuse(const fs::path& file, int error_number) {
  if (error_number != 0)
    throw OutputError(fmt::format("{} cannot be written: {}; {}", file.string(),
                                  std::generic_category().message(error_number), storage_remedy(error_number)));
}

}  // namespace

void check_output(const fs::path& file, bool replaces_any) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored))
    throw OutputError(fmt::format("{} is a folder; give the name of a file, such as {}", file.string(),
                                  (file / "report.html").string()));
  const bool is_there = fs::exists(file, ignored);
  if (is_there && !replaces_any && !begins_with(file, page_mark) && !begins_with(file, svg_mark))
    throw OutputError(
        fmt::format("{} is there already, and is no report that could be made again; give another name by -o, or "
                    "--force to replace it",
                    file.string()));
  refuse(file, try_creating_folders(file.has_parent_path() ? file.parent_path() : fs::path(".")));
  refuse(file, try_writing(file));
}

}  // namespace assay::host::report
