// A piece of a parameter or gradient arena.
#pragma once
#include <cstdint>

namespace assay::train {

struct ElementRange {
  std::int64_t begin = 0, end = 0;  // elements from the arena's begin; `end` is not part of it
  std::int64_t elements() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

}  // namespace assay::train
