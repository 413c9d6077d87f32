// The processors that a rank's program has.
#pragma once
#include <assay/plugin.hpp>

namespace command {

struct Share {
  double processors = 0;  // that this process may use; the control group's quota may allow a part of them
  int ranks = 1;          // of this machine that may use some of the same, this one included
};

// Every rank calls it, once. Throws assay::Error.
Share share_of_processors(const assay::Host& host);

}  // namespace command
