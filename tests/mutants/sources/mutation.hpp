// Tables of mutants, and what they make of a source: a text in which each mutant is a choice at run time.
#pragma once
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace assay::mutants {

struct Place {
  std::string row;  // "model.mutants:12"
  [[noreturn]] void fail(const std::string& text) const { throw std::runtime_error(row + ": " + text); }
};

enum class Form { expression, statement, appended, rewritten };

struct Edit {
  Place place;
  std::string mutant, file;
  std::vector<std::string> after;
  std::string text, wrong, when;
  Form form{};
  std::size_t begin = 0, end = 0;  // of the text, in the file
};

struct MutantRow {
  Place place;
  std::string name, what, mutant_class, tried;
};

struct Tables {
  std::vector<MutantRow> mutants;
  std::vector<Edit> edits;
};

// Adds a table, whose class is its file's name. Throws std::runtime_error that begins with the row at fault.
void read_table(Tables& tables, const std::filesystem::path& file);
// Throws for a mutant that changes no source or is tried in no case, and for one of a file that is none of `files`.
void require_complete(const Tables& tables, std::span<const std::string> files);
// A file's text with all of its mutants. Rows that no longer fit it are left out, and named in `mistakes`, a line each.
std::string mutated(const std::string& source, const std::string& file, const Tables& tables, std::string& mistakes);
// A header with the names of all.
std::string list_of(const Tables& tables);

}  // namespace assay::mutants
