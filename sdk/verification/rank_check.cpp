#include "assay/verification/rank_check.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/text.hpp>
#include <bit>
#include <cmath>

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

void require_loss(const std::string& what, double loss, const std::string& of, double expected, double allowed) {
  if (std::abs(loss - expected) <= allowed * std::max(1.0, std::abs(expected))) return;
  throw Error(ASSAY_WRONG_RESULT, what + " is " + workload::number(loss, "%.9g") + ", " + of + " " +
                                      workload::number(expected, "%.9g") + " (tolerance " + workload::number(allowed) +
                                      ")");
}

std::uint64_t hash_of_weights(const train::Trainer& trainer) {
  const std::uint64_t values = hash_of(trainer.backend(), trainer.parameters().all_values());
  const compute::Tensor copy = trainer.parameters().compute_copy();
  return copy ? values ^ std::rotl(hash_of(trainer.backend(), copy), 1) : values;
}

void require_same(const Host& host, std::string_view name, std::uint64_t hash, const std::string& what) {
  const std::vector<std::uint64_t> hashes = comm::exchange(host, name, hash);
  std::string wrong;
  for (std::size_t rank = 1; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[0]) wrong += (wrong.empty() ? "" : ", ") + std::to_string(rank);
  if (!wrong.empty()) throw Error(ASSAY_WRONG_RESULT, what + " differ from rank 0's on rank " + wrong);
}

std::string check_same_weights(const Host& host, std::string_view name, std::uint64_t hash) {
  const std::string after = "after " + std::to_string(verified_steps) + " steps";
  require_same(host, name, hash, after + " the weights");
  return "weights of " + std::to_string(comm::ranks_of(host).rank_count) + " ranks identical to the bit " + after +
         "; ";
}

std::int64_t first_unlike_its_replica(const std::vector<std::uint64_t>& hashes, std::size_t share) {
  for (std::size_t rank = share; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[rank % share]) return static_cast<std::int64_t>(rank);
  return -1;
}

std::string check_replicas_weights(const Host& host, std::string_view name, std::uint64_t hash, std::size_t share,
                                   const std::string& when) {
  const std::vector<std::uint64_t> hashes = comm::exchange(host, name, hash);
  if (const std::int64_t rank = first_unlike_its_replica(hashes, share); rank >= 0)
    throw Error(ASSAY_WRONG_RESULT, when + " rank " + std::to_string(rank) + " has other weights than rank " +
                                        std::to_string(static_cast<std::size_t>(rank) % share) +
                                        ", at its place in another replica");
  return "weights of " + std::to_string(hashes.size() / share) + " replicas identical to the bit " + when + "; ";
}

std::string check_updates_of_rank(train::Trainer& trainer, const parallel::RankSteps& steps,
                                  const std::function<void()>& step, int count,
                                  const std::function<void(int)>& after_step) {
  const double loss_scale = trainer.scaler().active() ? trainer.scaler().scale(trainer.backend()) : 1;
  int taken = 0;
  const auto take = [&] {
    spoil_gradients(trainer.backend(), trainer.parameters());
    steps.repeat_and_wait(trainer, step);
  };
  const auto take_first = [&](OptimizerCheck& check, int steps) {
    for (int i = 0; i < steps; ++i) {
      take();
      check.after_step();
      check.set_visible_rate();
      if (after_step) after_step(taken++);
    }
  };
  // The late ones come first: what follows is of the weights after the first steps. An optimizer does the same
  // to every element: some of them are enough.
  constexpr std::int64_t few_elements = std::int64_t{1} << 18;
  OptimizerCheck late(trainer, few_elements);
  take_first(late, 1);
  const std::string later = check_late_updates(trainer, late, take);
  trainer.start(loss_scale);
  OptimizerCheck check(trainer);
  take_first(check, count);
  return check.text() + later;
}

bool make_on_all_ranks(const Host& host, std::string_view name, const std::function<void()>& make) {
  std::int32_t is_made = 1;
  try {
    make();
  } catch (const Error& e) {
    if (e.status() != ASSAY_OUT_OF_MEMORY) throw;
    is_made = 0;
  }
  const std::vector<std::int32_t> ranks = comm::exchange(host, name, is_made);
  return std::find(ranks.begin(), ranks.end(), 0) == ranks.end();
}

void GatheredCheck::add(const compute::Tensor& own, const compute::Tensor& gathered) {
  const auto add_to = [&](std::uint64_t& hash, const compute::Tensor& x) {
    hash = std::rotl(hash, 1) ^ hash_of(backend_, x);
  };
  const std::int64_t n = own.elements();
  add_to(hashes_[0], own);
  for (std::size_t rank = 1; rank < hashes_.size(); ++rank)
    add_to(hashes_[rank], gathered.slice(0, static_cast<std::int64_t>(rank - 1) * n, n));
}

std::string GatheredCheck::check(const Host& host, const std::string& name, const std::string& when) const {
  std::int64_t wrong_rank = -1;
  const auto of_ranks = comm::gather<std::uint64_t>(host, name, hashes_);
  const std::size_t sharing = hashes_.size() - 1;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
    for (std::size_t owner = 0; owner < sharing; ++owner)
      if (of_ranks[rank][1 + owner] != of_ranks[rank / sharing * sharing + owner][0])
        wrong_rank = static_cast<std::int64_t>(rank);
  wrong_rank = comm::exchange(host, name + ".verdict", wrong_rank)[0];
  if (wrong_rank >= 0)
    throw Error(ASSAY_WRONG_RESULT, "what rank " + std::to_string(wrong_rank) +
                                        " gathers of the weights is not what their owners have " + when);
  return "what " + std::to_string(sharing) +
         " ranks gather of the weights is identical to the bit with what their owners have " + when + "; ";
}

}  // namespace assay::verification
