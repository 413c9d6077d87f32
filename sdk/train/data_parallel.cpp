#include "assay/train/data_parallel.hpp"

#include <assay/comm/exchange.hpp>
#include <assay/train/sampling.hpp>
#include <bit>

namespace assay::train {

void broadcast_parameters(const Trainer& trainer, comm::Communicator& communicator) {
  communicator.wait(communicator.broadcast(trainer.parameters().all_values(), 0));
  trainer.parameters().refresh_compute_copy(trainer.backend());
  communicator.synchronize();
  trainer.backend().synchronize();
}

std::uint64_t hash_of_weights(const Trainer& trainer) {
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

}  // namespace assay::train
