// A wrong request of the user: main() prints it with a pointer to --help, and the exit code is 2.
#pragma once
#include <stdexcept>

namespace assay::host {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace assay::host
