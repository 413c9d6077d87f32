#include "speed_accuracy.hpp"

#include <assay/compute/audited_backend.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_reference.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

#include "chain.hpp"
#include "gradient_error.hpp"

namespace mixed_precision {

using assay::Error;
using assay::models::DecoderConfig;
using assay::models::DecoderModel;
using assay::models::DecoderTrainer;
using assay::train::ParameterSet;
using assay::workload::number;

namespace {

constexpr double most_reference_gflop = 1000;  // minutes on a few processors

}  // namespace

SpeedAccuracy::SpeedAccuracy(const assay::Case& c)
    : host_(c.host()),
      config_(assay::models::decoder_trainer_config(c)),
      loss_steps_(c.get<std::int64_t>("loss_steps")),
      reference_context_(c.get<std::int64_t>("reference_context")),
      data_(c.choice("data", sequences_names)),
      reference_(c.choice("reference", references)),
      is_fp32_(c.get<std::string_view>("precision") == "fp32") {
  config_.data_rank = 0, config_.data_ranks = 1;  // ranks do not communicate: each takes the whole batch
  config_.model.fused = assay::workload::is_graph(c);
  if (!model().documents.empty())
    throw Error(ASSAY_UNSUPPORTED,
                "accuracies are those of whole sequences; expected document_tokens = 0, or the workload decoder");
  if (reference_context_ > model().context_length)
    throw Error(ASSAY_INVALID_ARGUMENT, "reference_context = " + std::to_string(reference_context_) +
                                            " is more than context_length = " + std::to_string(model().context_length) +
                                            "; the sequence that is compared is the beginning of the batch's first");
  if (has_exact_reference() && reference_gflop() > most_reference_gflop)
    throw Error(ASSAY_INVALID_ARGUMENT, "a float64 reference of this model takes " + number(reference_gflop(), "%.0f") +
                                            " GFLOP on the host, more than " + number(most_reference_gflop, "%.0f") +
                                            "; set a smaller reference_context or size, or reference = \"fp32\"");
  trainer_.emplace(host_, config_);
}

DecoderConfig SpeedAccuracy::compared_model(DecoderConfig config) const {
  config.batch_size = 1;
  config.context_length = reference_context_;
  return config;
}

double SpeedAccuracy::reference_gflop() const {
  return 3 * 1e-9 * static_cast<double>(assay::models::decoder_forward_flops(compared_model(model())));
}

assay::Work SpeedAccuracy::work() const {
  return {.flops = 3 * assay::models::decoder_forward_flops(model()),
          .bytes = 0,
          .items = static_cast<std::uint64_t>(model().rows())};
}

void SpeedAccuracy::setup(const Launch& launch) {
  report_parameters(launch, *trainer_);
  trainer_->setup(launch);
  if (model().fused)
    graph_ = trainer_->capture([&] { training_step(*trainer_, launch); }, assay::train::Trainer::Marks::captured);
}

void SpeedAccuracy::run(const Launch& launch) {
  if (!graph_) return training_step(*trainer_, launch);
  graph_->launch();
  assay::mark_replayed(host_);
}

void SpeedAccuracy::enqueue_timed(const Launch& launch) {
  graph_ ? graph_->launch() : training_step(*trainer_, launch);
}

// For the whole batch, as the timed step has it: every operation, with weights of norms other than 1. Then the
// gradients that the timed step (or its graph) leaves, against those of these operations one by one.
std::string SpeedAccuracy::check_operations(const Launch& launch) {
  DecoderTrainer& trainer = *trainer_;
  const DecoderModel& timed = trainer.model();
  const ParameterSet& set = trainer.parameters();
  trainer.initialize();
  const double loss_scale = assay::verification::find_finite_gradients(trainer, [&] { enqueue_timed(launch); });
  trainer.initialize();
  trainer.start(loss_scale);
  enqueue_timed(launch);
  const assay::verification::Outcome of_timed_step =
      assay::verification::outcome_of_gradients(trainer.backend(), set, trainer.loss_of(timed));

  graph_.reset();  // its addresses are about to change
  assay::compute::AuditedBackend audited(trainer.backend(), model().precision.product_math);
  const auto enqueue = [&](assay::compute::Backend& by) {
    timed.forward(by, trainer.inputs(), &trainer.labels(), trainer.valid_rows());
    timed.backward(by, trainer.inputs(), trainer.labels(), trainer.valid_rows());
  };
  trainer.prepare(audited, enqueue);
  trainer.initialize();
  trainer.start(assay::verification::verification_loss_scale);
  assay::verification::spread_constants(trainer.backend(), trainer.parameters());
  enqueue(audited);
  trainer.initialize();
  trainer.start(loss_scale);
  enqueue(trainer.backend());
  return audited.text() + "; " +
         assay::verification::compare_paths(
             "the timed step against its operations one by one", trainer.backend(), of_timed_step,
             trainer.loss_of(timed), [&](std::size_t id) { return set.gradient(id); },
             assay::verification::decoder_tolerance(model()), set, set.all().back().name) +
         "; ";
}

// First the steps, then the gradients: the model of one sequence may move the activations' memory.
SpeedAccuracy::Accuracy SpeedAccuracy::accuracy_of(DecoderTrainer& trainer) const {
  Accuracy result;
  trainer.initialize();
  trainer.start();
  const auto rows = static_cast<std::size_t>(model().rows());
  std::vector<std::int64_t> timed_tokens(rows), timed_labels(rows);
  trainer.backend().download(timed_tokens.data(), trainer.inputs());
  trainer.backend().download(timed_labels.data(), trainer.labels());
  Chain chain(config_.seed, model());
  for (std::int64_t i = 0; i <= loss_steps_; ++i) {
    if (data_ == Sequences::chain) {
      chain.advance();
      trainer.backend().upload(trainer.inputs(), chain.tokens().data());
      trainer.backend().upload(trainer.labels(), chain.labels().data());
    }
    trainer.forward();
    trainer.backward();
    if (i < loss_steps_) trainer.update();
  }
  result.loss = trainer.last_loss();
  result.skipped_steps = static_cast<double>(trainer.scaler().skipped_steps(trainer.backend()));

  trainer.backend().upload(trainer.inputs(), timed_tokens.data());
  trainer.backend().upload(trainer.labels(), timed_labels.data());
  DecoderModel compared(compared_model(trainer.config().model), trainer.parameters(), trainer.ids());
  trainer.lend_memory(compared);
  const auto enqueue = [&] {
    const assay::compute::Tensor tokens = trainer.inputs().slice(0, 0, reference_context_);
    const assay::compute::Tensor labels = trainer.labels().slice(0, 0, reference_context_);
    compared.forward(trainer.backend(), tokens, &labels, reference_context_);
    compared.backward(trainer.backend(), tokens, labels, reference_context_);
  };
  trainer.prepare(enqueue);
  compared.initialize(trainer.backend());
  trainer.start(assay::verification::verification_loss_scale);
  enqueue();
  result.scale = trainer.scaler().scale_of_gradients(trainer.backend());
  const ParameterSet& set = trainer.parameters();
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
    result.gradients.push_back(assay::workload::download_f32(trainer.backend(), set.gradient(id)));
  return result;
}

SpeedAccuracy::Gradients SpeedAccuracy::exact_gradients(const DecoderTrainer& fp32) const {
  const ParameterSet& set = fp32.parameters();
  std::vector<std::vector<float>> weights;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
    weights.push_back(assay::workload::download_f32(fp32.backend(), set.value(id)));
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(reference_context_));
  std::vector<std::int64_t> labels(tokens.size());
  fp32.backend().download(tokens.data(), fp32.inputs().slice(0, 0, reference_context_));
  fp32.backend().download(labels.data(), fp32.labels().slice(0, 0, reference_context_));
  return assay::verification::decoder_gradients(compared_model(model()), set, weights, tokens, labels).gradients;
}

std::string SpeedAccuracy::verify(const Launch& launch) {
  const assay::workload::PrecisionPolicy policy = model().precision;
  std::string text;
  Accuracy own;
  {
    const assay::verification::Unmeasured unmeasured(trainer_->backend());
    text += assay::verification::check_finite(*trainer_, trainer_->model());
    assay::begin_part(host_, "optimizer");
    text += assay::verification::check_updates(trainer_.value(), [&] { enqueue_timed(launch); });
    assay::begin_part(host_, "operations");
    text += check_operations(launch);
    assay::begin_part(host_, "loss");
    own = accuracy_of(*trainer_);
  }
  Accuracy fp32;
  if (!is_fp32_) {
    trainer_.reset();
    assay::models::DecoderTrainerConfig config = config_;
    config.model.precision = {};
    config.tuning = assay::compute::Tuning::first_choice;
    trainer_.emplace(host_, config);
    trainer_->setup(launch, [&] {
      trainer_->forward();
      trainer_->backward();
      trainer_->update();
    });
    fp32 = accuracy_of(*trainer_);
  }
  const double fp32_loss = is_fp32_ ? own.loss : fp32.loss;
  launch.report(loss_metric, own.loss);
  launch.report(loss_difference_metric, own.loss - fp32_loss);
  if (policy.loss_scaling) launch.report(skipped_steps_metric, own.skipped_steps);
  if (!std::isfinite(own.loss))
    throw Error(ASSAY_WRONG_RESULT,
                text + "the loss after " + std::to_string(loss_steps_) + " steps is " + number(own.loss));
  launch.report(gradient_reference_metric, reference_);
  text += "loss after " + std::to_string(loss_steps_) + " steps " + number(own.loss, "%.6g") + ", in fp32 " +
          number(fp32_loss, "%.6g");
  if (is_fp32_ && !has_exact_reference()) return text + "; fp32 is itself the reference of the gradients";

  assay::begin_part(host_, "float64_model");
  const Gradients exact = has_exact_reference() ? exact_gradients(*trainer_) : fp32.gradients;
  GradientError error;
  for (std::size_t id = 0; id < exact.size(); ++id) error.add(own.gradients[id], exact[id], own.scale);
  launch.report(gradient_error_metric, error.relative() * 100);
  const double tolerance = gradient_tolerance(policy, model().layers);
  text += "; gradients of " + std::to_string(reference_context_) + " tokens differ by " + number(error.relative()) +
          " from " + (has_exact_reference() ? "float64" : "fp32") + " (tolerance " + number(tolerance) + ")";
  if (!(error.relative() <= tolerance)) throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

}  // namespace mixed_precision
