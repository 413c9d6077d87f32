#include "wireup/watch.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "wireup/key_value.hpp"

namespace assay::host::wireup {

Watch::Watch(std::string prefix) : prefix_(std::move(prefix)), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_)
    throw WireupError("cannot create an event descriptor: " + std::generic_category().message(errno) +
                      "; raise the limit of open files (ulimit -n)");
}

std::vector<Change> Watch::take() {
  std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(event_.get(), &count, sizeof count);
  keys_set_.clear();
  return std::exchange(changes_, {});
}

void Watch::note(const Change& change) {
  if (!change.name.starts_with(prefix_)) return;
  std::lock_guard lock(mutex_);
  if (change.kind == Change::Kind::set && !keys_set_.insert(change.name).second) return;
  changes_.push_back(change);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(event_.get(), &one, sizeof one);
}

}  // namespace assay::host::wireup
