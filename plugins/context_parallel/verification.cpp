// Is what was timed the training of the whole model on the whole sequences? whole_model_check.hpp has the questions.
// Each rank holds the model once more, with all tokens of the batch: the sum of the ranks' losses is its loss, and the
// summed gradients, which are the same on all ranks to the bit, are its gradients. So are the weights after the steps.
#include <assay/comm/exchange.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/verification/whole_model_check.hpp>
#include <bit>
#include <functional>

#include "workload.hpp"

namespace context_parallel {

namespace op = assay::compute::op;

using assay::compute::Tensor;
using assay::train::ParameterSet;

namespace {

assay::models::DecoderTrainerConfig whole_config(assay::models::DecoderTrainerConfig config) {
  config.model.context = {};
  return config;
}

}  // namespace

class Workload::WholeModel final : public assay::verification::WholeModelCheck {
 public:
  explicit WholeModel(Workload& shared)
      : WholeModelCheck(shared.host_, id, shared.trainer_, whole_config(shared.settings_.trainer), shared.steps_) {}

 private:
  std::vector<Piece> pieces() const override;
  assay::Verified check_gradients(const std::string& when) override;
  std::string take_weights(const std::string& when) override;
  void after_step(int index) override { take_rate_of_first_rank(index); }

  const ParameterSet& own() const { return mine().parameters(); }
  const ParameterSet& all() { return whole().parameters(); }
  std::string check_same(const std::string& when, const std::string& what,
                         const std::function<Tensor(ParameterSet::Id)>& of) const;
};

std::vector<assay::verification::WholeModelCheck::Piece> Workload::WholeModel::pieces() const {
  std::vector<Piece> pieces;
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id)
    pieces.push_back({id, own().value(id).flat(), own().compute_copy() ? own().compute(id).flat() : Tensor(),
                      [](const Tensor& whole) { return whole.flat(); }});
  return pieces;
}

// Throws WRONG_RESULT where the ranks differ.
std::string Workload::WholeModel::check_same(const std::string& when, const std::string& what,
                                             const std::function<Tensor(ParameterSet::Id)>& of) const {
  std::uint64_t hash = 0;
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id)
    hash = std::rotl(hash, 1) ^ assay::verification::hash_of(backend(), of(id));
  assay::verification::require_same(host(), "context_parallel." + what + "." + when, hash, when + " " + what);
  return what + " of all ranks identical to the bit; ";
}

assay::Verified Workload::WholeModel::check_gradients(const std::string& when) {
  whole().forward();
  whole().backward();
  const double expected_loss = whole().last_loss();

  // A collective that starts before what it sends is there, or leaves out what it should write, finds no number.
  for (const assay::train::BufferPlan::Buffer& buffer : mine().model().plan().buffers())
    if (buffer.bytes > 0) assay::verification::spoil(backend(), buffer.tensor);
  mine().initialize();
  assay::verification::spoil_gradients(backend(), own());
  take_timed_step();
  const auto ranks = static_cast<double>(config().context.ranks);
  const double loss = ranks * assay::comm::mean_of_ranks(host(), "context_parallel.loss." + when, mine().last_loss());
  const assay::verification::Outcome found = assay::verification::outcome_of_gradients(backend(), own(), loss);
  const std::string text = assay::verification::compare_paths(
      when + ", the ranks' sums against the whole model", backend(), found, expected_loss,
      [&](std::size_t id) { return all().gradient(id); },
      assay::verification::decoder_tolerance(whole().config().model), own(), own().all()[mine().ids().embeddings].name);
  return text + ", of " + assay::verification::share_of(found, own()) + "; " +
         check_same(when, "gradients", [&](ParameterSet::Id id) { return own().gradient(id); });
}

std::string Workload::WholeModel::take_weights(const std::string& when) {
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id) {
    backend().run(op::Copy{.to = all().value(id), .from = own().value(id)});
    if (own().compute_copy()) backend().run(op::Copy{.to = all().compute(id), .from = own().compute(id)});
  }
  return check_same(when, "weights", [&](ParameterSet::Id id) { return own().value(id); });
}

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  asked_.check(trainer_.config());
  return WholeModel(*this).verify(launch, [&] { enqueue_step(launch); });
}

}  // namespace context_parallel
