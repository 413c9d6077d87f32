// Is what was timed the right computation? As of the decoder workload, and beside that of the router: which experts a
// token goes to is decided by its best scores, and where two are nearly equal, by rounding. Steps that are compared
// with each other are therefore given the experts of the timed one; which ones are the best is judged where the
// operations are audited, and where a few tokens are held against a float64 model.
#include <assay/compute/audited_backend.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_data_check.hpp>
#include <assay/verification/experts_check.hpp>
#include <assay/verification/given_experts.hpp>
#include <assay/verification/loss_scale_check.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/other_path.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <map>
#include <optional>

#include "workload.hpp"

namespace moe {

using assay::Error;
using assay::compute::DType;
using assay::compute::Tensor;
using assay::models::DecoderConfig;
using assay::models::DecoderModel;
using assay::train::ParameterSet;
using assay::verification::ChosenExperts;
using assay::verification::Outcome;

// Reads the parameters of experts by name, and so finds a mistake of experts_config(), which made the model's.
std::vector<std::pair<const char*, double>> asked_experts(const assay::Case& c) {
  std::vector<std::pair<const char*, double>> asked;
  for (const char* name : {"experts", "experts_per_token", "expert_d_ff", "shared_d_ff", "first_dense_layers"})
    asked.emplace_back(name, static_cast<double>(c.get<std::int64_t>(name)));
  for (const char* name : {"weights_factor", "unit_alpha", "unit_limit", "unit_offset", "balance_coefficient",
                           "z_coefficient", "zipf_exponent"})
    asked.emplace_back(name, c.get<double>(name));
  for (const char* name : {"normalized_weights", "expert_biases", "choice_bias"})
    asked.emplace_back(name, c.get<bool>(name) ? 1 : 0);
  asked.emplace_back("score", static_cast<double>(c.choice("score", scores)));
  asked.emplace_back("routing", static_cast<double>(c.choice("routing", routings)));
  return asked;
}

void Workload::check_experts_asked() const {
  const assay::models::ExpertsConfig& e = trainer_.config().model.experts;
  const std::map<std::string, double> found{{"experts", static_cast<double>(e.count)},
                                            {"experts_per_token", static_cast<double>(e.per_token)},
                                            {"expert_d_ff", static_cast<double>(e.d_ff)},
                                            {"shared_d_ff", static_cast<double>(e.shared_d_ff)},
                                            {"first_dense_layers", static_cast<double>(e.first_dense_layers)},
                                            {"score", static_cast<double>(e.rule.score)},
                                            {"normalized_weights", e.rule.normalized ? 1 : 0},
                                            {"weights_factor", static_cast<double>(e.rule.factor)},
                                            {"unit_alpha", static_cast<double>(e.unit.alpha)},
                                            {"unit_limit", static_cast<double>(e.unit.limit)},
                                            {"unit_offset", static_cast<double>(e.unit.offset)},
                                            {"expert_biases", e.biases ? 1 : 0},
                                            {"choice_bias", e.choice_bias ? 1 : 0},
                                            {"balance_coefficient", e.balance_coefficient},
                                            {"z_coefficient", e.z_coefficient},
                                            {"routing", static_cast<double>(e.routing)},
                                            {"zipf_exponent", e.zipf_exponent}};
  for (const auto& [name, asked] : asked_experts_)
    if (static_cast<float>(found.at(name)) != static_cast<float>(asked))
      throw Error(ASSAY_WRONG_RESULT, "what was trained has " + std::string(name) + " " +
                                          assay::workload::number(found.at(name), "%.9g") +
                                          ", the experiment asks for " + assay::workload::number(asked, "%.9g"));
}

// By a graph, if the timed steps replayed one, else by the operations one by one.
void Workload::enqueue_timed(const Launch& launch) {
  if (graph_) return graph_->launch();
  training_step(trainer_, launch);
}

void Workload::enqueue(const DecoderModel& of, assay::compute::Backend& by) const {
  of.whole_step(by, trainer_.inputs(), trainer_.labels(), trainer_.valid_rows(), trainer_.left_multiprocessors());
}

// With constants other than those of the start, and the experts that these lead to.
void Workload::check_operations(assay::compute::Backend& audited, double loss_scale) {
  const DecoderModel& of = trainer_.model();
  trainer_.prepare([&] { enqueue(of, trainer_.backend()); });
  trainer_.prepare(audited, [&](assay::compute::Backend& by) { enqueue(of, by); });
  trainer_.start(loss_scale);
  assay::verification::spread_constants(trainer_.backend(), trainer_.parameters());
  enqueue(of, audited);
}

std::string Workload::compare_with(const std::string& what, const Outcome& timed, const DecoderModel& other) const {
  return assay::verification::compare_paths(
      what, trainer_.backend(), timed, trainer_.loss_of(other), [&](std::size_t i) { return compared(i); },
      assay::verification::decoder_tolerance(model(), trainer_.valid_rows()), trainer_.parameters(),
      trainer_.parameters().all()[trainer_.ids().embeddings].name);
}

// The gradients by parameter, and, as most rows of the embedding's are zero, one that is not.
Tensor Workload::compared(std::size_t index) const {
  const ParameterSet& set = trainer_.parameters();
  if (index < set.all().size()) return set.gradient(index);
  return set.gradient(trainer_.ids().embeddings).slice(0, trainer_.first_token(), 1);
}

Outcome Workload::timed_outcome(const Launch& launch, std::string& text, double& loss_scale) {
  trainer_.initialize();
  const bool updates = settings_.pass == Pass::train_step;
  std::string updated;
  if (updates) assay::begin_part(host_, "optimizer");
  if (updates) text += assay::verification::check_skipped_step(trainer_, [&] { enqueue_timed(launch); });
  loss_scale = assay::verification::find_finite_gradients(trainer_, [&] { enqueue_timed(launch); });
  assay::verification::spoil_compute_copy(trainer_.backend(), trainer_.parameters());
  trainer_.start(loss_scale);
  if (updates) {
    assay::verification::OptimizerCheck optimizer(trainer_);
    enqueue_timed(launch);
    optimizer.after_step();
    optimizer.set_visible_rate();
    enqueue_timed(launch);
    optimizer.after_step();
    updated = optimizer.text();
    updated += assay::verification::check_late_updates(trainer_, optimizer, [&] {
      assay::verification::spoil_gradients(trainer_.backend(), trainer_.parameters());
      enqueue_timed(launch);
    });
    trainer_.start(loss_scale);
    optimizer.set_visible_rate();
  }
  assay::begin_part(host_, "timed_step");
  assay::verification::spoil_gradients(trainer_.backend(), trainer_.parameters());
  enqueue_timed(launch);
  Outcome out = assay::verification::outcome_of_gradients(trainer_.backend(), trainer_.parameters(),
                                                          trainer_.loss_of(trainer_.model()));
  out.kept.push_back(assay::compute::inspector_of(trainer_.backend())
                         ->keep(compared(trainer_.parameters().all().size()), assay::verification::compared_elements));
  text += assay::verification::check_routing(trainer_);
  text += check_start(out.loss) + updated;
  return out;
}

std::string Workload::check_start(double loss) const {
  return assay::verification::check_starting_loss(
      loss, assay::verification::starting_loss_of_decoder(model(), trainer_.valid_rows()),
      settings_.trainer.weights_file.empty());
}

assay::Verified Workload::verify(const Launch& launch) {
  if (is_over_ranks()) return verify_ranks(launch);
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  assay::begin_part(host_, "data");
  asked_.check(trainer_.config());
  check_experts_asked();
  std::string text = assay::verification::check_finite(trainer_, trainer_.model());
  trainer_.show_gradients();
  text += assay::verification::check_data(trainer_);
  text += assay::verification::check_routing(trainer_);
  double loss_scale = assay::verification::verification_loss_scale;
  const Outcome timed = timed_outcome(launch, text, loss_scale);
  const assay::verification::GivenExperts given(
      host_, trainer_.backend(), assay::verification::chosen_experts(trainer_.backend(), trainer_.model()),
      model().experts.per_token);
  struct OwnExpertsAgain {  // what `given` has goes with it
    assay::models::DecoderTrainer& trainer;
    ~OwnExpertsAgain() { trainer.give_experts(trainer.drawn_experts_for(trainer.config().model)); }
  } const again{trainer_};
  const bool captured = graph_ != nullptr;
  graph_.reset();  // its addresses may be about to change
  assay::compute::AuditedBackend audited(trainer_.backend(), model().precision.product_math);
  assay::begin_part(host_, "operations");
  check_operations(audited, loss_scale);
  trainer_.give_experts(given.by_layer());
  if (captured) {
    trainer_.start(loss_scale);
    enqueue(trainer_.model(), trainer_.backend());
    text += compare_with("captured step against its operations one by one", timed, trainer_.model()) + "; ";
  }
  const bool operations_in_part = !audited.looked_at_all();
  assay::begin_part(host_, "float64_model");
  const assay::Verified exact = assay::verification::with_room_of(trainer_.backend(), timed, [&] {
    return assay::verification::check_against_float64(host_, trainer_, loss_scale);
  });
  text += exact.text;
  assay::begin_part(host_, "other_path");
  const std::string what = assay::verification::against_the_other_path(model().fused);
  std::optional<DecoderModel> other;
  const auto make_other = [&](const DecoderConfig& config) {
    other.emplace(config, trainer_.parameters(), trainer_.ids());
    other->give_experts(given.by_layer());
    trainer_.lend_memory(*other);
    trainer_.prepare(audited, [&](assay::compute::Backend& by) { enqueue(*other, by); });
  };
  if (!assay::verification::make_other_path(
          trainer_.backend(), timed,
          {[&] { make_other(assay::verification::opposite_path(model())); },
           [&] { make_other(assay::verification::opposite_path_by_definition(model())); }}))
    return {text + audited.text() + "; " + assay::verification::no_room_text(what, *other), true};
  other->initialize(trainer_.backend());
  trainer_.start(loss_scale);
  enqueue(*other, audited);  // of its operations those that the timed path has not
  text += audited.text() + "; " + compare_with(what, timed, *other);
  return {text + ", of " + assay::verification::share_of(timed, trainer_.parameters()),
          operations_in_part || exact.in_part};
}

}  // namespace moe
