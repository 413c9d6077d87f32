// A worker that could not be started, or a channel to it that could not be made. The text names the thing and the
// remedy.
#pragma once
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace assay::host::launch {

class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // `what`: the system's words for the current errno.
  static LaunchError from_errno(const std::string& what, int error = errno) {
    return LaunchError(what + ": " + std::generic_category().message(error));
  }
};

}  // namespace assay::host::launch
