// Many figures in one short line of text.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace assay::host::history {

// The figures in eight heights, on a logarithmic scale from the least to the largest, which spans 2% at least, so that
// noise does not look like mountains. More than `width` figures are shown as as many means. All are above 0.
std::string sparkline(const std::vector<double>& figures, std::size_t width);

}  // namespace assay::host::history
