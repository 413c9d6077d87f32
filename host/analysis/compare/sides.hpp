// From the arguments of a comparison to the runs of each side.
#pragma once
#include "record/environment.hpp"
#include "results/environments.hpp"
#include "results/find_runs.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::compare {

using results::NoRunError;
using results::runs_below;

struct ComparedRun {
  std::string path;                                // as given, or below what was given
  std::vector<record::CaseRecord> records;         // the last one of each case, in the order of the file
  std::optional<record::Environment> environment;  // nothing where the run has none
  std::string experiment = "";                     // of a run folder by its place, of a summary by its text
  results::Environments environments = {};         // by the ids that records name

  // What the record ran in. That of the run where the record names none, or one that is not there; null without one.
  const record::Environment* environment_of(const record::CaseRecord& record) const;
};

// One side of a comparison: a run, or several of the same thing.
struct Side {
  std::string label;  // "A", "B", ...
  std::string name;   // the path as given
  std::vector<ComparedRun> runs;
};

struct Sides {
  std::vector<Side> sides;
  std::vector<std::string> warnings;  // torn lines and the like, for the user
};

enum class FolderOfRuns {
  sides,    // each run in it is a separate side, sorted by name
  one_side  // they are several runs of one side
};

// One of runs_below(). Throws as read_sides() does.
ComparedRun read_run(const std::filesystem::path& path, std::vector<std::string>& warnings);

// Each argument is a run folder, a cases.jsonl, a summary (bench_*.json), a folder with several of these below it, or
// several of these separated by commas, which are one side. Throws NoRunError, also of a run that is in two sides, and
// StorageError when a file cannot be read.
Sides read_sides(const std::vector<std::string>& arguments, FolderOfRuns folders);

// "A" ... "Z", "AA", ...
std::string side_label(std::size_t index);

}  // namespace assay::host::compare
