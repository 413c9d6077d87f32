// The decoder's reference: see reference.hpp.
#pragma once
#include <string>

#include "support/reference.hpp"

namespace assay::test {

inline const std::string decoder_data = reference_folder("decoder");

template <class ValuesOf>
double worst_decoder_error(const std::string& prefix, ValuesOf values_of) {
  return worst_reference_error("decoder", prefix, values_of);
}

}  // namespace assay::test
