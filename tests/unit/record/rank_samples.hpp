// Parts of a record as workers of several ranks send them, from a few samples.
#pragma once
#include "measure/figures.hpp"
#include "measure/statistics.hpp"
#include "results/merge_ranks.hpp"

#include <string>
#include <vector>

namespace assay::host {

inline Record part_of(const std::vector<double>& step_ms, const std::vector<double>& wait_ms) {
  const double mean_ms = summarize(step_ms).mean;
  Record part = {{"status", "ok"}, {"reason", ""}, {"stage", "done"}, {"phase", ""}, {"notes", Record::array()}};
  part["wall_s"] = {{"setup", 0.5}, {"case", 2.0}};
  part["device"] = {{"kind", "cpu"}, {"ordinal", 0}, {"name", "a processor"}};
  part["work"] = {{"flops", 2'000'000}, {"bytes", 0}, {"items", 10}, {"item_unit", "tokens"}};
  part["verify"] = {{"status", "ok"}, {"text", "equal"}};
  part["phases"] = {{"step", phase_figures(step_ms, mean_ms, mean_ms, 0.95)},
                    {"wait", phase_figures(wait_ms, 0.25, mean_ms, 0.95)}};
  part["phases"]["step"]["device_mean_ms"] = mean_ms / 2;
  part["step_metrics"] = Record::object();
  part["rates"] = rate_figures(2e6, 0, 10, mean_ms);
  part["drift"] = nullptr;
  part["metrics"] = Record::object();
  part["memory"] = {{"moments", Record::array()}, {"peak_mib", Record::object()}, {"process_peak_mib", 10.0}};
  return part;
}

// Rank r on host "n<r>", each with a steady step; change what a test is about.
inline std::vector<RankPart> three_ranks() {
  return {{0, "n0", part_of({20, 20, 22, 20}, {1, 1, 1, 1})},
          {1, "n1", part_of({21, 19, 20, 21}, {2, 2, 2, 5})},
          {2, "n2", part_of({22, 21, 21, 19}, {3, 3, 6, 3})}};
}

}  // namespace assay::host
