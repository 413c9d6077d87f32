// The place of `assay run --output PLACE`: the folder for results, or a file for one view of this run's.
#pragma once
#include <filesystem>
#include <string>
#include <variant>

#include "results/view_file.hpp"

namespace assay::host::results {

// A name that ends in .csv, .md or .json is a file, unless it ends in '/' or a folder of the name is there; every other
// name is a folder. Throws UsageError for the name of a kind of file that a run does not write.
std::variant<std::filesystem::path, ViewFile> output_place(const std::string& given);

// Makes the file's folder, and throws UsageError where the file could not be written: before anything runs.
void check_writable(const ViewFile& file);

// Makes `dir`/`name`, and throws UsageError where no run could have a folder there: before anything runs. A disk that
// is full is no mistake of the command line, and is left to the run.
void check_writable_folder(const std::filesystem::path& dir, const std::string& name, bool is_given_by_output);

}  // namespace assay::host::results
