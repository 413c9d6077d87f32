#include "assay/verification/rank_check.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <bit>

namespace assay::verification {

namespace op = compute::op;

void check_broadcast(const Host& host, std::string_view name, train::Trainer& trainer, comm::Communicator& communicator,
                     double loss_scale) {
  trainer.start(loss_scale);
  // The ranks draw the same weights: without this a broadcast that does nothing would look right.
  if (communicator.rank() != 0) trainer.backend().run(op::Fill{.x = trainer.parameters().all_values(), .value = 0.0});
  const std::uint64_t before = hash_of_weights(trainer);
  spoil_compute_copy(trainer.backend(), trainer.parameters());
  parallel::broadcast_parameters(trainer, communicator);
  struct Hashes {
    std::uint64_t before, after;
  };
  const std::vector<Hashes> ranks = comm::exchange(host, name, Hashes{before, hash_of_weights(trainer)});
  std::string wrong;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].after != ranks[0].before) wrong += (wrong.empty() ? "" : ", ") + std::to_string(rank);
  if (!wrong.empty())
    throw Error(ASSAY_WRONG_RESULT,
                "after the broadcast of rank 0's weights they or their copy are not on rank " + wrong);
}

double find_finite_gradients_of_ranks(const Host& host, std::string_view name, train::Trainer& trainer,
                                      const std::function<void()>& step) {
  const std::vector<double> scales = comm::exchange(host, name, find_finite_gradients(trainer, step));
  return *std::min_element(scales.begin(), scales.end());
}

std::uint64_t hash_of_weights(const train::Trainer& trainer) {
  const std::uint64_t values = hash_of(trainer.backend(), trainer.parameters().all_values());
  const compute::Tensor copy = trainer.parameters().compute_copy();
  return copy ? values ^ std::rotl(hash_of(trainer.backend(), copy), 1) : values;
}

std::string check_same_weights(const Host& host, std::string_view name, std::uint64_t hash, int steps) {
  const std::vector<std::uint64_t> hashes = comm::exchange(host, name, hash);
  const std::string after = "after " + std::to_string(steps) + " steps";
  std::string others;
  for (std::size_t rank = 1; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[0]) others += (others.empty() ? "" : ", ") + std::to_string(rank);
  if (!others.empty()) throw Error(ASSAY_WRONG_RESULT, after + " the weights differ from rank 0's on rank " + others);
  return "weights of " + std::to_string(hashes.size()) + " ranks identical to the bit " + after + "; ";
}

}  // namespace assay::verification
