// A contiguous tensor in parts, for work that copies one at a time.
#pragma once
#include <assay/compute/tensor.hpp>

#include <algorithm>
#include <cstdint>

namespace assay::compute {

// `visit(first, part)` for parts of up to `most_elements`, in their order; `first` counts elements of the flat tensor.
template <class Visit>
void for_each_part(const Tensor& t, std::int64_t most_elements, const Visit& visit) {
  const Tensor flat = t.flat();
  for (std::int64_t first = 0; first < flat.elements(); first += most_elements)
    visit(first, flat.slice(0, first, std::min(most_elements, flat.elements() - first)));
}

}  // namespace assay::compute
