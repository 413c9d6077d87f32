// mutate SOURCES COPIES LIST TABLE... -- FILE...: writes a copy of each FILE, a path below SOURCES, to the same path
// below COPIES, in which every mutant of the tables is a choice at run time (source_switch.hpp), and LIST, a header
// with their names. ../README.md has the format of a table. A file whose text stays as it was is not written again.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "mutation.hpp"

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

// So that what depends on a file is built again only when its text is another.
void write(const fs::path& file, const std::string& text) {
  if (fs::exists(file) && text_of(file) == text) return;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void mutate(std::span<const std::string> arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (end - arguments.begin() < 4) throw std::runtime_error("expected SOURCES COPIES LIST TABLE... -- FILE...");
  const fs::path sources = arguments[0], copies = arguments[1];
  assay::mutants::Tables tables;
  for (auto table = arguments.begin() + 3; table != end; ++table) assay::mutants::read_table(tables, *table);
  const std::span<const std::string> files(end + 1, arguments.end());
  assay::mutants::require_complete(tables, files);
  std::string mistakes;
  for (const std::string& file : files)
    write(copies / file, assay::mutants::mutated(text_of(sources / file), file, tables, mistakes));
  if (!mistakes.empty()) throw std::runtime_error("rows are out of date:\n" + mistakes);
  write(arguments[2], assay::mutants::list_of(tables));
}

}  // namespace

int main(int count, char** values) {
  try {
    const std::vector<std::string> arguments(values + 1, values + count);
    mutate(arguments);
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mutate: %s\n", e.what());
    return EXIT_FAILURE;
  }
}
