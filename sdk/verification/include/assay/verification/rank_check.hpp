// What verifications of workloads check alike in which several ranks train one model, whichever way they share the
// work.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/train/trainer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::verification {

inline constexpr int verified_steps = 3;  // after which ranks still have one model

// Makes the state before the first step only on rank 0, and broadcasts it. Throws WRONG_RESULT if a rank then has other
// weights, or rank 0 has lost its weights. Every rank calls it, once per name.
void check_broadcast(const Host& host, std::string_view name, train::Trainer& trainer, comm::Communicator& communicator,
                     double loss_scale = train::LossScaler::start);

// find_finite_gradients (path_check.hpp) on every rank, on what it computes alone: the loss scale that serves them all.
// `step` enqueues work that leaves gradients, without communication. Every rank calls it, once per name.
double find_finite_gradients_of_ranks(const Host& host, std::string_view name, train::Trainer& trainer,
                                      const std::function<void()>& step);

// From the state before the call: compares this rank's updates with float64 (optimizer_check.hpp), in late updates of a
// training, and then, from the start again, in `count` timed steps, from the second one on at a visible rate. `step`
// enqueues one; `after_step`, if any, is called after one has been checked and the rate set, with the number of steps
// before it. Returns the text, or throws WRONG_RESULT. Every rank calls it. Blocks.
std::string check_updates_of_rank(train::Trainer& trainer, const parallel::RankSteps& steps,
                                  const std::function<void()>& step, int count = verified_steps,
                                  const std::function<void(int)>& after_step = nullptr);

// Throws WRONG_RESULT where a loss is not the expected one: "`what` is 5.1, `of` 5.2". `allowed`: relative to the
// expected one, from 1 on.
void require_loss(const std::string& what, double loss, const std::string& of, double expected, double allowed);

// A hash of every bit of the parameters that a step reads: the values, and the compute copy if there is one. Blocks.
std::uint64_t hash_of_weights(const train::Trainer& trainer);

// Every rank calls it, once per name. Throws WRONG_RESULT that names the ranks whose hash is not rank 0's: "`what`
// differ from rank 0's on rank 1, 3".
void require_same(const Host& host, std::string_view name, std::uint64_t hash, const std::string& what);
// The same of the weights after the verified steps; returns what was checked.
std::string check_same_weights(const Host& host, std::string_view name, std::uint64_t hash);

// The first rank that has another hash than the rank at its place among the first `share`; -1 where there is none.
std::int64_t first_unlike_its_replica(const std::vector<std::uint64_t>& hashes, std::size_t share);
// Every rank calls it, once per name: with the hash of its weights, where ranks at one place of every `share` ranks
// that follow one another have the same. Throws WRONG_RESULT that names two ranks. `when`: "after 3 steps".
std::string check_replicas_weights(const Host& host, std::string_view name, std::uint64_t hash, std::size_t share,
                                   const std::string& when);

// Every rank calls it, once per name. False on all of them where `make` throws OUT_OF_MEMORY on one.
bool make_on_all_ranks(const Host& host, std::string_view name, const std::function<void()>& make);

// Is what this rank gathers of the others what these have, to the bit? The hashes meet through the host.
class GatheredCheck {
 public:
  // `ranks`: that gather of one another. They follow one another, and there are as many such groups as the case has
  // ranks for.
  GatheredCheck(compute::Backend& backend, std::int64_t ranks)
      : backend_(backend), hashes_(1 + static_cast<std::size_t>(ranks)) {}
  // `own` is this rank's part, and `gathered` those of all, in their order: flat, and each as large as the others.
  // Blocks.
  void add(const compute::Tensor& own, const compute::Tensor& gathered);
  // Every rank calls it, once per name. Returns what was checked, or throws WRONG_RESULT. `when`: "after 3 steps".
  std::string check(const Host& host, const std::string& name, const std::string& when) const;

 private:
  compute::Backend& backend_;
  std::vector<std::uint64_t> hashes_;  // of this rank's part, and of what it has gathered of each rank
};

}  // namespace assay::verification
