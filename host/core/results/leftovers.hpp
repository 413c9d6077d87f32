// Files of runs and data sets that can be made again, or are of no use: for `assay clean`.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::results {

// Something that can be removed as a whole: files of one place.
struct Leftover {
  enum class Kind { cache, data, run, old_run } kind = Kind::cache;
  std::filesystem::path place;               // what is shown: a file or a folder
  std::string what;                          // "the index of assay history"
  std::vector<std::filesystem::path> files;  // that would be removed; no folder
  std::uint64_t bytes = 0;
  std::filesystem::path lock;  // the file that its user would hold locked; "": none
};

// Files in the folder of what is remembered ("": there is none): tables of plugins, algorithms, the index.
std::vector<Leftover> leftovers_of_cache(const std::filesystem::path& cache);
// Below a folder, links not followed: generated data sets (known by their manifest), libraries that a run took and that
// stayed when it was killed, unfinished files, and the folders of runs without a record. What a run in progress holds
// is left out.
std::vector<Leftover> leftovers_below(const std::filesystem::path& folder);

// Below a folder, links not followed: whole runs, with their records, in which nothing was written since
// `seconds_since_1970`. A run that is written to, by this machine or by a batch, is not one of them, nor one whose
// batch has cases without a record there, nor one in which a file lies that assay does not write unasked.
std::vector<Leftover> old_runs_below(const std::filesystem::path& folder, double seconds_since_1970);

// Removes its files, and folders that are empty then, with its lock held meanwhile; nothing where somebody has begun to
// use it since it was found. Returns the bytes that are gone; `problems` names what could not be removed.
std::uint64_t remove(const Leftover& leftover, std::vector<std::string>& problems);

}  // namespace assay::host::results
