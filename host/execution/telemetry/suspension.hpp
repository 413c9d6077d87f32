// Whether this process, one that it has started, or the whole machine stood still within a window: then its times are
// not those of the work.
#pragma once
#include <signal.h>

#include <cstdint>
#include <string>

#include "record/case_record.hpp"

namespace assay::host::telemetry {

struct Suspension {
  std::int64_t continued = 0;           // how often the process was continued after a stop (SIGSTOP, Ctrl-Z)
  double asleep_s = 0;                  // of the machine
  std::int64_t children_continued = 0;  // the same as `continued`, of the processes that it has started
};

// One at a time in a process: it counts SIGCONT, and SIGCHLD of children that are continued where nobody else listens
// to it. It gives back their former actions.
class SuspensionProbe {
 public:
  void begin();
  Suspension end();

 private:
  std::int64_t continued_before_ = 0, children_before_ = 0;
  double asleep_before_s_ = 0;
  struct sigaction before_ {
  }, child_before_{};
};

// What stood still; "" where nothing did.
std::string text_of(const Suspension& suspension);
// `validity`, unless something stood still.
record::Validity with_suspension(record::Validity validity, const Suspension& suspension);

}  // namespace assay::host::telemetry
