// A figure of one case over time: from the index to the records, and from these to points and changes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/direction.hpp"
#include "history/change_points.hpp"
#include "history/index.hpp"

namespace assay::host::history {

struct Point {
  std::string started;  // UTC
  std::filesystem::path run;
  std::string host, revision;
  std::int64_t index = -1;  // of the case in its run
  double value = 0;         // the statistic of the run's steps
  bool disturbed =
      false;  // others used the machine or the GPU meanwhile: it is left out of changes where others are there
};

struct Change {
  std::size_t at = 0;  // the first point after it
  std::string word;    // "slower", "faster", "more", ...
  bool worse = false;
  double ratio = 1;
  std::optional<double> low, high;
  // What is otherwise in the runs after it, five at most, than in those before.
  struct Difference {
    std::string item, before, after;
  };
  std::vector<Difference> differences;
  std::filesystem::path run_before, run_after;  // one and the same where both are its repeats
};

struct Series {
  std::string experiment, workload;
  std::string label;  // "size=small pass=forward", "" where the experiment sweeps nothing
  std::string device;
  int ranks = 1;
  std::string unit;
  Direction better = Direction::lower_is_better;
  std::vector<Point> points;
  std::vector<Change> changes;
};

struct SeriesOptions {
  std::string metric = "step";
  std::string name;   // of experiments or workloads; "": all
  std::string since;  // UTC, as in records; "": all
  // Run folders and summaries, as the index has them: series with a record of one of these alone. Empty: all.
  std::vector<std::filesystem::path> of_runs;
  bool with_ab = false;  // also the turns of `assay ab`; always where one of `of_runs` is of it
  compare::TestOptions test{.threshold = 0.01, .statistic = compare::Statistic::mean};
};

// In the order in which they first stand. `warnings` names what cannot be read; records without the metric are
// left out, and counted.
struct SeriesFound {
  std::vector<Series> series;
  std::size_t without_metric = 0, not_ok = 0, of_ab = 0;
  std::vector<std::string> metrics;  // that the records have, where none has the one asked for
};
SeriesFound find_series(const Index& index, const SeriesOptions& options, std::vector<std::string>& warnings);

}  // namespace assay::host::history
