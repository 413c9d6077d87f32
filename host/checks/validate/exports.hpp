// Reads the file of a shared library without loading it: which symbols it offers to others, and whether it is
// whole.
#pragma once
#include <filesystem>
#include <string>

namespace assay::host::validate {

// The names of the first few beside the plugin's entry, "a, b and 3 more"; "" where there are none, or it has no table
// of sections.
std::string other_exports(const std::filesystem::path& file);

// Its table of sections, which comes last, lies beyond its end.
bool is_cut_short(const std::filesystem::path& file);

}  // namespace assay::host::validate
