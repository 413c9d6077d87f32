// Are the gradients that ranks have averaged the mean of the ranks' own? Each rank computes its own from its own data
// without communication, then the timed way averages them. Both are sketched (sketch.hpp), every element of them, the
// sketches meet on rank 0 through the host, and the mean is made there in fp64: nothing of it passes through the
// communicator that is under test. So it shows when gradients are summed, sent from one rank, left as they were, or
// averaged in part or in the wrong place.
//
// Of ranks with the same data the mean is any rank's own, and a broadcast would pass: hence their data are compared
// too.
#pragma once
#include <assay/train/trainer.hpp>
#include <assay/verification/sketch.hpp>
#include <assay/workload/precision.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::verification {

// What one rank contributes; sketches by piece, the same pieces on every rank.
struct RankGradients {
  std::vector<compute::WeightedSum> own, averaged;
  bool own_of_another_model = false;  // whose products may sum in another order than the averaged ones
  std::int64_t layers = 1;            // of the model, through which a backward pass rounds
  bool repeats_to_the_bit = true;     // what the device computes again
  bool travels_in_16_bits = false;    // to be averaged, whatever the gradients' own format is
};
// Of a piece whose average this rank does not hold (a reduce-scatter leaves it to another one).
inline constexpr compute::WeightedSum not_held{0, -1};

// What one rank trains on: a hash of its tokens, how many there are, and of how large a vocabulary.
struct OwnData {
  std::uint64_t hash = 0;
  std::int64_t tokens = 0, vocabulary = 0;
  // Two draws of so little may be the same.
  bool may_repeat() const;
};

struct AverageFindings {
  // The largest distance of an average from the mean, in units of a sum of random signs over the ranks' gradients; NaN
  // if one of them is NaN.
  double worst = 0;
  std::int64_t worst_rank = 0, worst_piece = 0;
  std::int64_t missing = -1;  // a piece whose average no rank holds
  // The factor by which all averages of a rank together are too large or too small, where it is nearest to its limit,
  // and that limit, in roundings of the gradients' format. Roundings cancel in it, so it shows a factor that could be
  // rounding in one piece.
  double factor = 0, allowed_roundings = 0;
  // How far the mean is from the gradients of the rank nearest to it, where that rank is farthest from it. Below that
  // distance a broadcast of that rank's gradients cannot be distinguished from an average.
  double nearest = 0;
};
AverageFindings compare_with_mean(const std::vector<RankGradients>& ranks);

// Each average is rounded to the gradients' dtype; a library that rounds at each hop also rounds sums of fewer ranks,
// with about the same result. Seen on 2 and 4 ranks with Gloo, which rounds once: 1 unit of rounding in fp32, 2 in
// bf16. In fp32 different algorithms of products differ more: by 25 units between two GPUs. In 16 bits two passes that
// do not sum in the same order, by a device that does not repeat itself to the bit or by another model, differ the more
// the more layers they go through.
double average_tolerance(const workload::PrecisionPolicy& policy, const RankGradients& mine);
// The same for the factor by which all of them are too large or too small.
double factor_tolerance(const workload::PrecisionPolicy& policy, const AverageFindings& found,
                        bool travels_in_16_bits = false);

// The pieces in which gradients are compared, cut at `cuts` (where collectives begin): as many as the sketches of all
// ranks have room on rank 0.
std::vector<train::ElementRange> average_pieces(const train::ParameterSet& set, std::vector<std::int64_t> cuts,
                                                std::int64_t ranks);

// What this rank contributes: the sketches of its gradients, of a forward and a backward without communication, and
// those of the averages that `step` leaves: a timed step with its update, which moves no gradient; it waits. `layers`
// as in RankGradients. In between NaN fills every gradient, so a step that leaves out its backward, or a collective
// that starts before backward has written it, finds nothing of the first pass. Blocks.
RankGradients gradients_of_rank(const train::Trainer& trainer, const std::vector<train::ElementRange>& pieces,
                                std::int64_t layers, const std::function<void()>& step);

// Every rank calls it, once per name. Throws WRONG_RESULT on every rank. In part if ranks have too few tokens to
// distinguish an average from the gradients of one of them.
Verified check_average(const Host& host, std::string_view name, const train::ParameterSet& set,
                       const std::vector<train::ElementRange>& pieces, const RankGradients& mine, const OwnData& data);

}  // namespace assay::verification
