// Several ranks that share the experts: what they are reached by, what a step is, and whether it was the training of
// the whole model (verification/whole_model_check.hpp has the questions). Each rank holds the whole model with all
// experts beside what it has, on its own tokens: the gradients that ranks keep, those of their experts among them, are
// the mean of what these models compute, and the mean of losses likewise. The whole model's tokens are given the
// experts of the timed step, as two scores may be nearly equal.
#include <assay/device.h>
#include <assay/planning.h>
#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/parallel/bucket_choice.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/experts_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/verification/whole_model_check.hpp>
#include <assay/workload/text.hpp>
#include <bit>
#include <cmath>

#include "workload.hpp"

namespace moe {

namespace op = assay::compute::op;

using assay::compute::Tensor;
using assay::compute::WeightedSum;
using assay::train::ElementRange;
using assay::train::ParameterSet;

namespace {

assay::models::DecoderTrainerConfig whole_config(assay::models::DecoderTrainerConfig config) {
  assay::models::ExpertsConfig& experts = config.model.experts;
  experts.drawn_parts = experts.ranks;
  experts.rank = 0, experts.ranks = 1;
  return config;
}

}  // namespace

// ---- the step ------------------------------------------------------------------------------------------------------

// Before set-up, which walks through a step that reaches nobody yet.
void Workload::share_experts(const Launch&) {
  const assay::models::ExpertsConfig& e = model().experts;
  const std::int64_t rows = model().rows() * e.per_token;
  ranks_.emplace(assay::parallel::ExpertRanksShape{
      .rank = e.rank,
      .ranks = e.ranks,
      .experts = e.count,
      .rows = rows,
      .capacity = assay::models::expert_capacity(model().rows(), e.per_token, e.ranks, e.capacity_factor),
      .layers = static_cast<std::size_t>(model().expert_layers())});
  if (assay::parallel::carries_nothing_out(host_)) ranks_->assume_balanced();
  trainer_.share_experts(*ranks_);
}

void Workload::open_ranks(const Launch& launch) {
  open_communicator(steps_, host_, launch, settings_.collectives, trainer_);
  expert_communicator_ = assay::comm::SilenceableCommunicator(
      assay::comm::open_communicator(host_, launch, settings_.collectives.library, settings_.collectives.options));
  expert_communicator_->register_memory(trainer_.activation_memory().data(), trainer_.activation_memory().bytes());
  ranks_->use(&*expert_communicator_);
  sums_.emplace(trainer_.parameters(), trainer_.own_expert_ranges(), settings_.bucket_bytes);
  sums_->use(steps_.communicator());
  restart(launch);
}

void Workload::silence(bool silent) {
  if (!is_over_ranks()) return;
  steps_.silence(silent);
  ranks_->use(silent ? nullptr : &*expert_communicator_);
  sums_->use(steps_.communicator());
}

void Workload::report_ranks(const Launch& launch) {
  const auto ranks = static_cast<double>(model().experts.ranks);
  launch.report(loss_metric, ranks * assay::comm::mean_of_ranks(host_, "moe.loss", trainer_.last_loss()));
  const assay::parallel::ExpertLoad load = ranks_->take_load();
  report_expert_ranks(launch, load, expert_communicator_->take_totals(), measured_steps_);
  if (load.forwards > 0) {
    launch.report(tokens_min_metric, load.least_rows);
    launch.report(tokens_mean_metric, load.mean_rows);
    launch.report(tokens_max_metric, load.most_rows);
    launch.report(tokens_variation_metric, load.variation);
  }
  if (const auto step = steps_.take_measured()) report_communication(launch, *step);
}

// ---- verification --------------------------------------------------------------------------------------------------

class Workload::WholeModel final : public assay::verification::WholeModelCheck {
 public:
  explicit WholeModel(Workload& shared)
      : WholeModelCheck(shared.host_, id, shared.trainer_, whole_config(shared.settings_.trainer), shared.steps_) {}

 private:
  std::vector<Piece> pieces() const override;
  assay::Verified check_gradients(const std::string& when) override;
  std::string take_weights(const std::string& when) override;
  void after_step(int index) override { take_rate_of_first_rank(index); }

  const assay::models::ExpertsConfig& experts() const { return config().experts; }
  const ParameterSet& own() const { return mine().parameters(); }
  const ParameterSet& all() { return whole().parameters(); }
  bool is_own(ParameterSet::Id id) const {
    const std::int64_t begin = own().all()[id].offset;
    const std::vector<ElementRange> ranges = mine().own_expert_ranges();
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const ElementRange& r) { return begin >= r.begin && begin < r.end; });
  }
  // Where what a rank has of a parameter begins among the whole one's elements.
  std::int64_t first_of(ParameterSet::Id id, std::int64_t rank) const {
    return is_own(id) ? rank * own().all()[id].elements() : 0;
  }
  std::string check_same(const std::string& when, const std::string& what);
};

std::vector<assay::verification::WholeModelCheck::Piece> Workload::WholeModel::pieces() const {
  std::vector<Piece> pieces;
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id) {
    const std::int64_t first = first_of(id, experts().rank), count = own().all()[id].elements();
    pieces.push_back({id, own().value(id).flat(), own().compute_copy() ? own().compute(id).flat() : Tensor(),
                      [first, count](const Tensor& whole) { return whole.flat().slice(0, first, count); }});
  }
  return pieces;
}

assay::Verified Workload::WholeModel::check_gradients(const std::string& when) {
  // A collective that starts before what it sends is there, or leaves out what it should write, finds no number.
  for (const assay::train::BufferPlan::Buffer& buffer : mine().model().plan().buffers())
    if (buffer.bytes > 0 && buffer.tensor.dtype != assay::compute::DType::i32)
      assay::verification::spoil(backend(), buffer.tensor);
  mine().initialize();
  assay::verification::spoil_gradients(backend(), own());
  take_timed_step();
  const std::string routing = assay::verification::check_routing(mine());
  const double loss = mine().last_loss() * static_cast<double>(experts().ranks);

  std::vector<Tensor> chosen(static_cast<std::size_t>(config().layers));
  for (std::int64_t l = 0; l < config().layers; ++l)
    if (config().has_experts(l)) chosen[static_cast<std::size_t>(l)] = mine().model().experts_of(l);
  whole().give_experts(chosen);
  const auto own_step = [&] {
    for (std::int64_t i = 0; i < whole().micro_batches(); ++i) whole().forward_of(i), whole().backward_of(i, nullptr);
  };
  whole().prepare(own_step);
  own_step();
  const double expected_loss = whole().last_loss();
  whole().give_experts(whole().drawn_experts_for(config()));

  std::vector<std::int64_t> cuts;
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id)
    for (std::int64_t rank = 0; rank < experts().ranks; ++rank)
      cuts.push_back(all().all()[id].offset + first_of(id, rank));
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const std::vector<ElementRange> pieces = assay::verification::average_pieces(all(), cuts, experts().ranks);
  assay::verification::RankGradients found;
  found.own_of_another_model = true;
  found.own = assay::verification::sketch_of(whole().backend(), all().all_gradients(), pieces);
  found.averaged.assign(pieces.size(), assay::verification::not_held);
  std::vector<assay::verification::SketchedPiece> held;
  std::vector<std::size_t> places;
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id) {
    const std::int64_t begin = all().all()[id].offset + first_of(id, experts().rank);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].begin < begin || pieces[i].end > begin + own().all()[id].elements()) continue;
      held.push_back({pieces[i], own().all()[id].offset + pieces[i].begin - begin});
      places.push_back(i);
    }
  }
  const std::vector<WeightedSum> sketches = assay::verification::sketch_of(backend(), own().all_gradients(), held);
  for (std::size_t i = 0; i < places.size(); ++i) found.averaged[places[i]] = sketches[i];

  const double allowed = assay::verification::decoder_tolerance(config(), whole().valid_rows()).loss;
  if (!(std::abs(loss - expected_loss) <= allowed * std::max(1.0, std::abs(expected_loss))))
    throw assay::Error(ASSAY_WRONG_RESULT, when + " the loss is " + assay::workload::number(loss, "%.9g") +
                                               ", that of the whole model " +
                                               assay::workload::number(expected_loss, "%.9g") + " (tolerance " +
                                               assay::workload::number(allowed) + ")");
  const assay::Verified average = assay::verification::check_average(host(), "moe.average." + when, all(), pieces,
                                                                     found, assay::verification::own_data(whole()));
  return {when + ": " + routing + "loss of each rank as the whole model's, " + average.text, average.in_part};
}

// Throws WRONG_RESULT where what all ranks have differs between them.
std::string Workload::WholeModel::check_same(const std::string& when, const std::string& what) {
  std::uint64_t hash = 0;
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id)
    if (!is_own(id)) hash = std::rotl(hash, 1) ^ assay::verification::hash_of(backend(), own().value(id));
  assay::verification::require_same(host(), "moe." + what + "." + when, hash, when + " " + what);
  return what + " identical to the bit; ";
}

std::string Workload::WholeModel::take_weights(const std::string& when) {
  assay::verification::GatheredCheck gathered_as_kept(backend(), experts().ranks);
  assay::comm::Communicator& communicator = steps().communicator();
  const auto take = [&](ParameterSet::Id id, const Tensor& mine_of, const Tensor& whole_of) {
    if (!is_own(id)) return backend().run(op::Copy{.to = whole_of, .from = mine_of});
    communicator.wait(communicator.all_gather(mine_of.flat(), whole_of.flat()));
    steps().wait(mine());
    gathered_as_kept.add(mine_of.flat(), whole_of.flat());
  };
  for (ParameterSet::Id id = 0; id < own().all().size(); ++id) {
    take(id, own().value(id), all().value(id));
    if (own().compute_copy()) take(id, own().compute(id), all().compute(id));
  }
  return gathered_as_kept.check(host(), "moe.weights", when) + check_same(when, "weights of what all ranks have");
}

assay::Verified Workload::verify_ranks(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  asked_.check(trainer_.config());
  check_experts_asked();
  return WholeModel(*this).verify(launch, [&] { enqueue_step(launch); });
}

}  // namespace moe
