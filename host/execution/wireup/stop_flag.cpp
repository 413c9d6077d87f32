#include "wireup/stop_flag.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "wireup/key_value.hpp"

namespace assay::host::wireup {

StopFlag::StopFlag() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_)
    throw WireupError("cannot create an event descriptor: " + std::generic_category().message(errno) +
                      "; raise the limit of open files (ulimit -n)");
}

void StopFlag::raise() noexcept {
  raised_.store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(event_.get(), &one, sizeof one);
}

}  // namespace assay::host::wireup
