// One run of assay as a separate process.
#pragma once
#include "launch/signals.hpp"

#include <string>
#include <utility>
#include <vector>

namespace assay::host::ab {

struct ChildEnd {
  int exit_code = 0;  // 128 + the signal that ended it; 127: it could not be started
  std::string said;   // the end of its standard output and error
};

class ChildRunner {
 public:
  // Blocks until it has ended. A signal that reaches this process is passed on to it, as an interrupt: it ends its
  // case, and leaves what has finished. `environment` is set for it beside what this process has.
  ChildEnd run(const std::vector<std::string>& command,
               const std::vector<std::pair<std::string, std::string>>& environment) const;
  // By a signal, since this object is there.
  bool is_interrupted() const { return interrupts_.count()->load() > 0; }

 private:
  launch::InterruptHandler interrupts_;
};

}  // namespace assay::host::ab
