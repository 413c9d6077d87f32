#include "assay/verification/whole_model_check.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/experts_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <utility>

#include "shared_parameters.hpp"

namespace assay::verification {

namespace op = compute::op;

using compute::Tensor;
using train::ElementRange;
using train::ParameterSet;

namespace {

// The whole model of a rank's, on one rank. Where ranks share a batch, it trains on those of all replicas: the gradient
// of their mean loss is the mean of their gradients, as each has as many labels.
models::DecoderTrainerConfig whole_config(models::DecoderTrainerConfig config, bool shares_batch) {
  if (shares_batch) {
    config.model.accumulation_steps *= config.data_ranks;
    config.data_rank = 0, config.data_ranks = 1;
    config.is_term = false;
  }
  config.model.split = {};
  config.model.context = {};
  config.model.stages = {};
  models::ExpertsConfig& experts = config.model.experts;
  experts.drawn_parts = experts.ranks;
  experts.rank = 0, experts.ranks = 1;
  config.train_step = false;
  config.tuning = compute::Tuning::first_choice;
  return config;
}

class WholeModelCheck {
 public:
  WholeModelCheck(const Host& host, const std::string& name, models::DecoderTrainer& mine, const SharedModel& shared,
                  const parallel::RankSteps& steps, const std::function<void()>& step)
      : host_(host), name_(name), mine_(mine), shared_(shared), steps_(steps), step_(step) {}

  Verified verify(const Launch& launch);

 private:
  void check_start();
  void spread_norms();
  std::string check_updates();
  void take_unseen_labels();
  // `when`: "after 3 steps". Returns a text on the result, with "; " behind it, or throws WRONG_RESULT on every rank.
  Verified check_gradients(const std::string& when);
  Verified compare_parts(const std::string& when);
  Verified compare_averages(const std::string& when, const std::string& routing);
  std::string check_common(const std::string& what, const std::string& when,
                           const std::function<Tensor(ParameterSet::Id)>& tensor) const;
  void spoil_step() const;
  void take_whole_step(const std::vector<Tensor>& experts_by_layer);
  void take_common_rate(int index);

  compute::Backend& backend() const { return mine_.backend(); }
  // Of a model that some of the ranks share.
  std::int64_t replicas() const {
    if (shared_.blocks) return comm::ranks_of(host_).rank_count / shared_.blocks->ranks();
    return shared_.one_batch ? mine_.config().data_ranks : 1;
  }
  std::int64_t ranks_of_replica() const { return comm::ranks_of(host_).rank_count / replicas(); }
  const models::DecoderConfig& config() const { return mine_.config().model; }
  const ParameterSet& own() const { return mine_.parameters(); }
  const ParameterSet& all() const { return whole_->parameters(); }

  const Host& host_;
  const std::string& name_;
  models::DecoderTrainer& mine_;
  const SharedModel& shared_;
  const parallel::RankSteps& steps_;
  const std::function<void()>& step_;
  std::optional<models::DecoderTrainer> whole_;
  std::optional<SharedParameters> parameters_;
};

void WholeModelCheck::check_start() {
  spoil_compute_copy(backend(), own());
  mine_.start();
  whole_->start();
  const auto same = [&](const Tensor& found, const Tensor& expected) {
    return hash_of(backend(), found) == hash_of(backend(), expected);
  };
  for (const SharedParameters::Piece& piece : parameters_->pieces())
    if (!same(piece.value, piece.of(all().value(piece.whole))) ||
        (piece.compute && !same(piece.compute, piece.of(all().compute(piece.whole)))))
      throw Error(ASSAY_WRONG_RESULT, "before the first step rank " + std::to_string(comm::ranks_of(host_).rank) +
                                          "'s part of " + all().all()[piece.whole].name +
                                          " is not that of the whole model");
}

// A norm whose weights are all 1 may be wrong without a trace.
void WholeModelCheck::spread_norms() {
  spread_constants(backend(), all());
  for (const SharedParameters::Piece& piece : parameters_->pieces())
    if (all().all()[piece.whole].init_std == 0)
      backend().run(op::Copy{.to = piece.value, .from = piece.of(all().value(piece.whole))});
  mine_.parameters().refresh_compute_copy(backend());
}

// Where ranks have weights in common: the visible rate of one rank's gradients becomes that of all, so that these
// weights stay the same. Of blocks and stages those have that are at one place of their replicas.
void WholeModelCheck::take_common_rate(int index) {
  const bool are_own = shared_.blocks || shared_.in_stages;
  if (are_own && replicas() == 1) return;
  const std::int64_t first = are_own ? comm::ranks_of(host_).rank % ranks_of_replica() : 0;
  const Tensor rate_of_rank = mine_.optimizer().learning_rate();
  float rate = 0;
  backend().download(&rate, rate_of_rank);
  rate = comm::exchange(host_, name_ + ".rate." + std::to_string(index), rate)[static_cast<std::size_t>(first)];
  backend().run(op::Fill{.x = rate_of_rank, .value = double{rate}});
}

std::string WholeModelCheck::check_updates() {
  begin_part(host_, "optimizer");
  mine_.start();
  return "each rank's part: " +
         check_updates_of_rank(mine_, steps_, step_, verified_steps, [&](int index) { take_common_rate(index); });
}

// Steps of a visible size have learnt a small batch by heart: probabilities are then nearly those of its labels, and
// their difference, all that gradients are made of, is little but rounding.
void WholeModelCheck::take_unseen_labels() {
  const std::int64_t words = config().vocab_size;
  for (const models::DecoderTrainer* trainer : {&mine_, &*whole_}) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(trainer->labels().elements()));
    backend().download(labels.data(), trainer->labels());
    for (std::int64_t& label : labels)
      if (label >= 0) label = (label + (words + 1) / 2) % words;  // others are ignored, and remain so
    backend().upload(trainer->labels(), labels.data());
  }
}

// A collective that starts before what it sends is there, or leaves out what it should write, finds no number.
void WholeModelCheck::spoil_step() const {
  if (shared_.blocks) {
    spoil(backend(), own().all_gradients());
    const Tensor messages = shared_.blocks->messages();
    return spoil(backend(), Tensor(messages.data, compute::DType::f32, {messages.elements() / 4}));
  }
  for (const train::BufferPlan::Buffer& buffer : mine_.model_of_step().plan().buffers())
    if (buffer.bytes > 0 && buffer.tensor.dtype != compute::DType::i32) spoil(backend(), buffer.tensor);
  mine_.initialize();
  spoil_gradients(backend(), own());
}

// With experts the whole model's tokens go to those of the timed step, as two scores may be nearly equal.
void WholeModelCheck::take_whole_step(const std::vector<Tensor>& experts_by_layer) {
  const auto step = [&] { forward_and_backward(*whole_, train::UnmarkedLaunch()); };
  if (experts_by_layer.empty()) return step();
  whole_->give_experts(experts_by_layer);
  whole_->prepare(step);
  step();
}

Verified WholeModelCheck::check_gradients(const std::string& when) {
  spoil_step();
  steps_.repeat_and_wait(mine_, step_);
  if (shared_.one_batch) {
    take_whole_step({});
    return compare_parts(when);
  }
  std::string routing;
  std::vector<Tensor> experts;
  if (config().experts.is_over_ranks()) {
    routing = check_routing(mine_);
    for (std::int64_t l = 0; l < config().layers; ++l)
      experts.push_back(config().has_experts(l) ? mine_.model().experts_of(l) : Tensor());
  }
  take_whole_step(experts);
  return compare_averages(when, routing);
}

Verified WholeModelCheck::compare_parts(const std::string& when) {
  const Outcome found = outcome_of_gradients(backend(), own(), shared_.reported_loss(name_ + ".loss." + when));
  const auto expected = [&](std::size_t id) {
    return parameters_->part_of(id, all().gradient(parameters_->whole_id(id)));
  };
  const std::string text = compare_paths(when + ", " + shared_.compared + " against the whole model", backend(), found,
                                         whole_->last_loss(), expected, *shared_.one_batch, own(), "");
  const std::string compared = text + ", of " + share_of(found, own()) + "; ";
  if (shared_.in_stages) return compared;
  return compared + check_common("gradients", when, [&](ParameterSet::Id id) { return own().gradient(id); });
}

// Sketches of the elements that this rank has, in pieces cut where what a rank has begins, are held against the mean of
// the whole models' of all ranks.
Verified WholeModelCheck::compare_averages(const std::string& when, const std::string& routing) {
  const auto& ranks = comm::ranks_of(host_);
  std::vector<std::int64_t> cuts;
  for (std::int32_t rank = 0; rank < ranks.rank_count; ++rank)
    for (const SharedParameters::Range& range : parameters_->held_by(rank)) cuts.push_back(range.whole);
  const std::vector<ElementRange> pieces = average_pieces(all(), std::move(cuts), ranks.rank_count);
  RankGradients found;
  found.own_of_another_model = true;
  found.travels_in_16_bits = shared_.blocks && shared_.blocks->reduction_type() != compute::DType::f32;
  found.layers = config().layers;
  found.own = sketch_of(whole_->backend(), all().all_gradients(), pieces);
  std::vector<SketchedPiece> held;
  std::vector<std::size_t> places;  // of the pieces that are held
  for (const SharedParameters::Range& range : parameters_->held_by(ranks.rank)) {
    auto piece = std::lower_bound(pieces.begin(), pieces.end(), range.whole,
                                  [](const ElementRange& p, std::int64_t at) { return p.begin < at; });
    for (; piece != pieces.end() && piece->end <= range.whole + range.elements; ++piece) {
      held.push_back({*piece, range.own + piece->begin - range.whole});
      places.push_back(static_cast<std::size_t>(piece - pieces.begin()));
    }
  }
  found.averaged.assign(pieces.size(), not_held);
  const std::vector<compute::WeightedSum> sketches = sketch_of(backend(), own().all_gradients(), held);
  for (std::size_t i = 0; i < places.size(); ++i) found.averaged[places[i]] = sketches[i];

  // Of ranks that share experts each loss counts 1 / R.
  const double loss = mine_.last_loss() * static_cast<double>(config().experts.ranks), expected = whole_->last_loss();
  const double allowed = decoder_tolerance(config(), whole_->valid_rows()).loss;
  const double reported = shared_.reported_loss(name_ + ".loss." + when);
  const double mean = comm::mean_of_ranks(host_, name_ + ".whole_loss." + when, expected);
  require_loss(when + " the loss", loss, "that of the whole model", expected, allowed);
  require_loss(when + " the reported loss", reported, "the mean of the whole models'", mean, allowed);
  if (config().experts.is_over_ranks()) whole_->give_experts(whole_->drawn_experts_for(config()));
  const Verified average = check_average(host_, name_ + ".average." + when, all(), pieces, found, own_data(*whole_));
  return {when + ": " + routing + "loss of each rank as the whole model's, " + average.text, average.in_part};
}

// Throws WRONG_RESULT where what every rank has differs between them.
std::string WholeModelCheck::check_common(const std::string& what, const std::string& when,
                                          const std::function<Tensor(ParameterSet::Id)>& tensor) const {
  const std::string of = what + shared_.common;
  require_same(host_, name_ + "." + of + "." + when, parameters_->hash_of_common(tensor), when + " " + of);
  return of + " " + shared_.same;
}

Verified WholeModelCheck::verify(const Launch& launch) {
  begin_part(host_, "data");
  const std::string finite = check_finite(mine_, mine_.model_of_step());
  const std::string parts = check_parts(host_, name_ + ".parts", mine_);
  begin_part(host_, "whole_model");
  const bool is_there = make_on_all_ranks(host_, name_ + ".whole", [&] {
    whole_.emplace(host_, whole_config(mine_.config(), shared_.one_batch.has_value()));
    whole_->setup(launch);
    parameters_.emplace(host_, mine_, *whole_, shared_);
  });
  if (!is_there) {
    parameters_.reset();
    whole_.reset();  // what there is of it: the next question needs memory, too
    return {finite + parts + check_updates() + "gradients are not compared: there is no memory for the whole model",
            true};
  }
  check_start();
  spread_norms();
  begin_part(host_, "averages");
  const Verified first = check_gradients("at the start");
  const std::string updates = check_updates();
  const std::string after = "after " + std::to_string(verified_steps) + " steps";
  begin_part(host_, "same_weights");
  std::string weights = parameters_->take_weights(name_, after, steps_);
  if (!shared_.blocks && !shared_.in_stages)
    weights += check_common("weights", after, [&](ParameterSet::Id id) { return own().value(id); });
  if (replicas() > 1)
    weights += check_replicas_weights(host_, name_ + ".replicas", hash_of_weights(mine_),
                                      static_cast<std::size_t>(ranks_of_replica()), after);
  take_unseen_labels();
  begin_part(host_, "averages");
  const Verified later = check_gradients(after);
  const Verified own_model = check_own_model(host_, *whole_);
  return {finite + parts + first.text + updates + weights + later.text + own_model.text,
          first.in_part || later.in_part || own_model.in_part};
}

}  // namespace

Verified check_whole_model(const Host& host, const std::string& name, models::DecoderTrainer& mine,
                           const SharedModel& shared, const parallel::RankSteps& steps, const Launch& launch,
                           const std::function<void()>& step) {
  if (!shared.reported_loss) throw Error(ASSAY_INTERNAL, name + ": check_whole_model needs SharedModel::reported_loss");
  return WholeModelCheck(host, name, mine, shared, steps, step).verify(launch);
}

}  // namespace assay::verification
