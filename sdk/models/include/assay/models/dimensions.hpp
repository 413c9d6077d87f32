// Dimensions that a preset decides where an experiment does not say them.
#pragma once
#include <assay/plugin.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace assay::models {

// Presets have filled in what the experiment does not set, so a 0 here is the experiment's. INVALID_ARGUMENT that names
// the dimension, and the parameter that otherwise decides it.
inline void require_dimensions(const Case& c, const std::string& decided_by,
                               std::initializer_list<const char*> dimensions) {
  for (const char* dimension : dimensions)
    if (c.get<std::int64_t>(dimension) == 0)
      throw Error(ASSAY_INVALID_ARGUMENT, std::string(dimension) + " is 0; leave it out to have what " + decided_by +
                                              " says, or give 1 or more");
}

}  // namespace assay::models
