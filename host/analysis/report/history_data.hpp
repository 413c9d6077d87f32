// The history of the reported cases, as a page holds it: each figure over the runs before and after, and where it
// changed.
#pragma once
#include "history/series.hpp"
#include "report/rounded.hpp"
#include "report/runs.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::report {

// The folders and summaries of these runs, as an index of history names them.
std::vector<std::filesystem::path> places_of(const ReportedRuns& reported);

// So many points of a series stand on a page, the newest ones; fewer where there are many series.
inline constexpr std::size_t points_of_a_page = 20'000;
inline constexpr std::size_t least_points_of_a_series = 20;

// Series of one run are no history, and are left out. `case_ids` of a series are the places of its cases on the page.
Json history_json(const ReportedRuns& reported, std::size_t most_points = points_of_a_page);

}  // namespace assay::host::report
