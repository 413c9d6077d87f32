// Is what was timed the training of the whole model? whole_model_check.hpp has the questions. The averages that each
// rank keeps are the mean of what the whole models of the ranks compute, in every element, and a rank's loss is that of
// its whole model.
#include <assay/verification/unmeasured.hpp>
#include <assay/verification/whole_model_check.hpp>

#include "workload.hpp"

namespace fsdp {

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  asked_.check(trainer_.config());
  return assay::verification::check_whole_model(host_, id, trainer_, {.blocks = &blocks_}, steps_, launch,
                                                [&] { enqueue_step(launch); });
}

}  // namespace fsdp
