// Ranks that a launcher has started end when it is gone. mpirun that is killed does not inform them, and they would go
// through all cases that are left, on processors that somebody else is given.
#pragma once
#include <sys/types.h>

#include <functional>
#include <thread>
#include <vector>

#include "common/fd.hpp"

namespace assay::host::launch {

// This process's parent, and while it is a shell (mpirun bash -c ...) its own parent, too.
std::vector<pid_t> launcher_processes();

class LauncherWatch {
 public:
  // `end` is called on a separate thread with the first of `processes` that is gone, once at most. A kernel without
  // pidfd_open (before 5.3) watches none.
  LauncherWatch(const std::vector<pid_t>& processes, std::function<void(pid_t)> end);
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;
  LauncherWatch& operator=(const LauncherWatch&) = delete;

 private:
  Fd leave_, write_end_;
  std::vector<Fd> watched_;
  std::thread thread_;
};

// Says that the process is gone, and asks this one to end with SIGTERM.
void end_with_launcher(pid_t launcher);

}  // namespace assay::host::launch
