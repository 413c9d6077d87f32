#include "ab/looks.hpp"

#include <algorithm>

namespace assay::host::ab {

double Looks::confidence_at(std::int64_t runs) const {
  const auto fresh = static_cast<double>(std::max<std::int64_t>(runs - last_, 1));
  const double share = fresh / static_cast<double>(std::max(plan_.max_runs, runs));
  return 1 - (1 - plan_.confidence) * share;
}

void Looks::looked(std::int64_t runs) {
  last_ = runs;
  next_ = std::min(std::max(runs + 1, (runs * 4 + 2) / 3), plan_.max_runs);
}

}  // namespace assay::host::ab
