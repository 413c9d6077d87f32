// What `assay run --output PLACE` names: the folder for results, or a file for one view of this run's.
#pragma once
#include <filesystem>
#include <string>
#include <variant>

#include "results/view_file.hpp"

namespace assay::host::cli {

// A name that ends in .csv, .md or .json is a file, unless it ends in '/' or a folder of the name is there; every other
// name is a folder. Throws UsageError for the name of a kind of file that a run does not write.
std::variant<std::filesystem::path, results::ViewFile> output_place(const std::string& given);

// Makes the file's folder, and throws UsageError where the file could not be written: before anything runs.
void check_writable(const results::ViewFile& file);

}  // namespace assay::host::cli
