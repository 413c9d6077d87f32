// Is what was timed the training of the whole model on the whole sequences? whole_model_check.hpp has the questions.
// Each rank holds the model once more, with all tokens of the batch: the sum of the ranks' losses is its loss, and the
// summed gradients, which are the same on all ranks to the bit, are its gradients. So are the weights after the steps.
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/verification/whole_model_check.hpp>

#include "workload.hpp"

namespace context_parallel {

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  asked_.check(trainer_.config());
  assay::models::DecoderConfig whole = trainer_.config().model;
  whole.context = {};
  const assay::verification::SharedModel shared{.all_common = true,
                                                .one_batch = assay::verification::decoder_tolerance(whole),
                                                .compared = "the ranks' sums",
                                                .same = "of all ranks identical to the bit; "};
  return assay::verification::check_whole_model(host_, id, trainer_, shared, steps_, launch,
                                                [&] { enqueue_step(launch); });
}

}  // namespace context_parallel
