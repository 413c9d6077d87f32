// A log of nccl-tests as its parts: each start of a program is a section with its own name, ranks, columns and end.
//
// A log may have several programs one after another, several jobs side by side (a build without MPI under mpirun: each
// process is a separate job), and rows that other output has torn.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "imports/formats.hpp"

namespace assay::host::imports {

// The columns of a table, by its line of names: those of the operation, then twice those of a group, then the rest.
struct NcclColumns {
  std::vector<std::string> operation;  // "size", "count", "type", "redop", "root"
  std::vector<std::string> group;      // "time" or "cputime", "algbw", "busbw", "#wrong"
  std::size_t trailing_words = 0;      // of a row: "timestamp" takes two

  std::size_t words() const { return operation.size() + 2 * group.size() + trailing_words; }
  bool operator==(const NcclColumns&) const = default;
};

struct NcclRank {
  std::int64_t rank = 0, group = 0;
  std::string host, device;
};

struct NcclSection {
  std::string collective;                   // "all_reduce"; "" where the log does not name it
  std::vector<std::vector<NcclRank>> jobs;  // side by side; the ranks of each
  std::size_t lost_jobs = 0;                // that began and never came to their columns
  std::optional<std::int64_t> iterations, aggregated;
  bool is_graph = false;
  NcclColumns columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> torn;              // where each torn row begins, for people
  std::optional<std::int64_t> out_of_bounds;  // by its end; nothing where that is missing
  bool has_failed = false;                    // by its own verdict
  bool is_below_bandwidth = false;            // by its own verdict: NCCL_TESTS_MIN_BW
  std::string error;                          // the first line of a failure that it prints
};

struct NcclLog {
  std::vector<NcclSection> sections;  // that have columns
  std::vector<std::string> begun;     // names of those that have none: they ended before
  std::vector<std::string> errors;    // of processes that print nothing else, the first of each
  std::string started;                // the time before the first line, where a launcher wrote it
};
NcclLog read_nccl_log(std::string_view text);

// The records of all sections. Throws ImportError.
ImportedRun run_of_nccl_log(const NcclLog& log, const ImportOptions& options);

// "all_reduce" of "all_reduce_perf", with whatever stands around it.
std::string nccl_collective_in(std::string_view text);

}  // namespace assay::host::imports
