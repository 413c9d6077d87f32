// Hosts could not be used: a line for each, with the host, what is wrong with it, and the remedy.
#pragma once
#include <stdexcept>
#include <string>

namespace assay::host::hosts {

class HostError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace assay::host::hosts
