// Reports to the host that a wait for other ranks has become long. For communicators; not for each wait within a step.
#pragma once
#include <assay/comm.h>

namespace assay::comm {

class [[nodiscard]] LongWait {
 public:
  explicit LongWait(const assay_comm& ranks) : ranks_(ranks) { ranks_.begin_wait(&ranks_); }
  ~LongWait() { ranks_.end_wait(&ranks_); }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

 private:
  const assay_comm& ranks_;
};

}  // namespace assay::comm
