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
    throw OutputError(fmt::format("{} cannot be written: {}; give another place by -o FILE", file.string(),
                                  std::generic_category().message(error_number)));
}

}  // namespace

void check_output(const fs::path& file, bool replaces_any) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored) || !file.has_filename())
    throw OutputError(fmt::format("{} is a folder; give the name of a file, such as {}", file.string(),
                                  (file / "report.html").string()));
  const fs::file_status found = fs::symlink_status(file, ignored);
  const bool is_there = fs::exists(found);
  // A pipe would be waited for, and a device's place taken by a page.
  if (is_there && !fs::is_regular_file(file, ignored) && !fs::is_symlink(found))
    throw OutputError(fmt::format("{} is no file but a pipe or a device; give the name of a file", file.string()));
  if (fs::is_symlink(found) && (!replaces_any || (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored))))
    throw OutputError(
        fmt::format("{} is a link; give the name of the file it leads to, or another one", file.string()));
  if (is_there && !replaces_any && !begins_with(file, page_mark) && !begins_with(file, svg_mark))
    throw OutputError(
        fmt::format("{} exists and is not a report; give another name by -o, or --force to replace it", file.string()));
  refuse(file, try_creating_folders(file.has_parent_path() ? file.parent_path() : fs::path(".")));
  refuse(file, try_writing(file));
}

}  // namespace assay::host::report
