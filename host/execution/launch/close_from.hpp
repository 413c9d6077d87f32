// Async-signal-safe: for the time between fork and exec.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace assay::host::launch {

// Closes every descriptor from `first` on.
inline void close_from(int first) {
  if (close_range(static_cast<unsigned>(first), UINT_MAX, 0) == 0) return;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int last = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  for (int fd = first; fd < last; ++fd) close(fd);
}

}  // namespace assay::host::launch
