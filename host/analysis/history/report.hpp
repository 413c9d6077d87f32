// The output of `assay history`.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/palette.hpp"
#include "history/index.hpp"
#include "history/series.hpp"

namespace assay::host::history {

// A line for each experiment: runs, cases that are ok, hosts, revisions, from when to when.
std::string overview_text(const std::vector<IndexedRun>& runs, std::size_t width_columns);

// Each series with its sparkline and its changes, in lines of at most `width_columns`.
std::string history_text(const SeriesFound& found, const SeriesOptions& options, std::size_t width_columns,
                         const Palette& palette = {});

// "3.1% slower since 2026-11-03 14:02 (2.7 to 3.5%); revision ab12cd34ef -> 99ff00aa12". The change's word, which a
// page and a terminal show in colour, stands in it.
std::string change_text(const Series& series, const Change& change);
// A revision or a hash by what people write of it; another text in one line.
std::string shortened(const std::string& text);

// docs/history.md, "JSON".
nlohmann::ordered_json history_json(const std::vector<IndexedRun>& runs, const SeriesFound& found,
                                    const SeriesOptions& options);

}  // namespace assay::host::history
