// The direction of a figure: whether higher or lower is better.
#pragma once

namespace assay::host {

enum class Direction { lower_is_better = -1, neither = 0, higher_is_better = 1 };

}  // namespace assay::host
