#include "assay/mesh/decoder_ranks.hpp"

#include <assay/comm/exchange.hpp>
#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/bucket_choice.hpp>
#include <assay/parallel/gather_choice.hpp>
#include <assay/parallel/gather_memory.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <assay/parallel/products_beside_collectives.hpp>
#include <assay/workload/open_backend.hpp>
#include <assay/workload/peak.hpp>
#include <chrono>
#include <utility>

namespace assay::mesh {
namespace {

// Replicas average gradients in buckets of the size that PyTorch's DDP has.
constexpr std::size_t replica_bucket_bytes = std::size_t{25} << 20;

}  // namespace

DecoderRanks::DecoderRanks(const Case& c, const char* name, Strategy strategy, std::int64_t asked_replicas)
    : host_(c.host()),
      name_(name),
      strategy_(std::move(strategy)),
      asked_replicas_(asked_replicas),
      asked_(c, strategy_.shares == Shares::blocks ? 0 : asked_replicas),
      trainer_(make_trainer()) {
  if (strategy_.shares == Shares::columns) parts_->share(trainer_.parameters(), shared_range());
  if (strategy_.axes.has_replicas()) {
    strategy_.collectives.options.members = strategy_.axes.of_replica();
    if (!sums_over_replicas())
      replicas_.emplace(trainer_.parameters(), replica_bucket_bytes, shared_range(), within_replica());
  }
  if (strategy_.update)
    update_.emplace(trainer_, c.rank(), c.rank_count(), *strategy_.update,
                    models::decoder_blocks(trainer_.ids()).resident.parameters);
}

// With what it reaches other ranks by, which is made here.
models::DecoderTrainer DecoderRanks::make_trainer() {
  validate(strategy_);
  const models::DecoderTrainerConfig& config = strategy_.trainer;
  switch (strategy_.shares) {
    case Shares::nothing: break;
    case Shares::blocks:
      if (strategy_.axes.has_replicas())
        blocks_.emplace(strategy_.axes.place, strategy_.axes.ranks, strategy_.blocks);
      else
        blocks_.emplace(config.data_rank, config.data_ranks, strategy_.blocks);
      return models::DecoderTrainer(host_, config, &*blocks_);
    case Shares::columns:
      parts_.emplace(config.model.split.rank, config.model.split.ranks);
      return models::DecoderTrainer(host_, config, *parts_);
    case Shares::tokens:
      parts_.emplace(config.model.context.rank, config.model.context.ranks);
      return models::DecoderTrainer(host_, config, *parts_);
    case Shares::stages: stages_.emplace(); break;
  }
  return models::DecoderTrainer(host_, config);
}

// The gradients that are complete only at the end of a step: of columns those that every rank has, as terms of a sum.
train::ElementRange DecoderRanks::shared_range() const {
  if (strategy_.shares != Shares::columns) return {};
  return models::decoder_shared_range(strategy_.trainer.model, trainer_.parameters(), trainer_.ids());
}

train::GradientExchange* DecoderRanks::within_replica() {
  if (blocks_) return &*blocks_;
  return parts_ ? &*parts_ : nullptr;
}

train::GradientExchange& DecoderRanks::exchange() {
  if (replicas_) return *replicas_;
  if (gradients_) return *gradients_;
  if (blocks_) return *blocks_;
  return *parts_;
}

void DecoderRanks::enqueue_step(const train::StepMarks& marks) {
  if (update_) return update_->enqueue(marks);
  if (stages_ && (replicas_ || has_stages()))
    return accounted_step(trainer_, [&] {
      if (replicas_) replicas_->begin_step();
      train::GradientListener* const listener = replicas_ ? replicas_->listener() : nullptr;
      if (has_stages())
        trainer_.enqueue_stages(stages_->exchange(), marks, listener);
      else
        forward_and_backward(trainer_, marks, listener);
      if (replicas_) {
        // The phase of waits is the pipeline's bubble, of which this is no part.
        const auto phase = marks.phase(train::optimizer_phase);
        replicas_->finish();
      }
      update_if_there_is_one(trainer_, marks);
    });
  if (stages_) return training_step(trainer_, marks);
  training_step(trainer_, marks, exchange());
}

void DecoderRanks::enqueue_without_communication() {
  if (update_) return update_->enqueue_without_communication();
  if (!has_stages()) return trainer_.enqueue_step();
  accounted_step(trainer_, [&] {
    trainer_.enqueue_stages(nullptr, train::StepMarks());
    update_if_there_is_one(trainer_, train::StepMarks());
  });
}

// Of ranks that split products or layers the record adds up the work: all of a replica have its batch once.
Work DecoderRanks::work() const {
  const models::DecoderConfig& model = strategy_.trainer.model;
  Work work = models::decoder_training_work(model);
  for (std::uint64_t* of : {&work.flops, &work.items}) {
    const auto rank = static_cast<std::uint64_t>(model.split.rank + model.stages.rank),
               ranks = static_cast<std::uint64_t>(model.split.ranks * model.stages.ranks);
    *of = *of / ranks + (rank < *of % ranks ? 1 : 0);
  }
  if (update_) work.bytes = update_->moved_bytes();
  return work;
}

Peak DecoderRanks::peak(const Launch& launch) {
  return workload::measure_peak(host_, launch, strategy_.trainer.model.precision);
}

// Parameters that are gathered may lie in memory of the communicator's, which is then opened first. Memory is taken in
// the order in which a framework would come to it.
train::SetupMoments DecoderRanks::setup_moments(const Launch& launch) {
  train::SetupMoments moments;
  if (!blocks_ && !update_) return moments;
  moments.parameter_memory =
      take_gathered_parameters(registered_parameters_, steps_, host_, launch, strategy_.collectives, strategy_.gathers,
                               [this, &launch] { return measure_gathers(launch); });
  moments.parameters_taken = [this] { note_memory("after_init"); };
  moments.step_taken = [this, &launch] {
    open_and_register(steps_, host_, launch, strategy_.collectives, *strategy_.gathers, trainer_);
    take_messages();
    note_memory("before_state");
  };
  return moments;
}

// A backend of the trial alone: what its products need is no part of the step's workspace.
parallel::Gathers DecoderRanks::measure_gathers(const Launch& launch) const {
  const std::unique_ptr<compute::Backend> backend = workload::open_backend(host_, launch);
  parallel::GatherTrial trial{.graph = strategy_.graph};
  if (blocks_) {
    // Of a layer's backward, which hides its gathering worse than forward does: two for each of forward's three, which
    // are four times as wide as they are high (12 width^2 weights).
    constexpr std::int64_t products_of_a_layer = 6;
    const models::DecoderConfig& model = strategy_.trainer.model;
    trial.bytes = parallel::few_of_each(blocks_->gathered_bytes());
    trial.products = products_of_a_layer;
    trial.rows = model.rows(), trial.width = model.d_model;
    trial.dtype = model.precision.activation;
  } else {
    trial.bytes = parallel::few_of_each(update_->gathered_bytes());
    trial.in_place = true;
  }
  const auto open = [&](bool copy_engines) {
    comm::Options options = strategy_.collectives.options;
    options.copy_engines = copy_engines;
    return comm::open_communicator(host_, launch, strategy_.collectives.library, options);
  };
  const parallel::GatherChoice choice =
      parallel::choose_gathers({host_, *backend, open, comm::steady_seconds}, name_ + ".gathers", trial);
  host_.info(choice.text);
  return choice.kind;
}

void DecoderRanks::take_messages() {
  if (blocks_) {
    parallel::take_gather_memory(messages_, host_, steps_.communicator(), *strategy_.gathers,
                                 ASSAY_MEMORY_COMMUNICATION, blocks_->message_bytes(), "gathered blocks");
    blocks_->bind(messages_.data());
    if (strategy_.gathers == parallel::Gathers::any_memory)
      steps_.communicator().register_memory(messages_.data(), blocks_->message_bytes());
  }
  if (update_) {
    if (const std::size_t bytes = update_->message_bytes(); bytes > 0)
      exact_message_ = DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, bytes, "weights of norms");
    update_->bind(exact_message_.data());
  }
}

void DecoderRanks::set_up(const Launch& launch) {
  const auto enqueue = [&] { enqueue_without_communication(); };
  trainer_.setup(
      launch, [&] { parallel::enqueue_beside_collectives(trainer_, strategy_.left_multiprocessors, enqueue); },
      setup_moments(launch));
  if (!steps_.communicate()) open_communicator(steps_, host_, launch, strategy_.collectives, trainer_);
  if (strategy_.axes.has_replicas()) {
    std::vector<std::int32_t> members;  // none named: every rank
    if (!sums_over_replicas()) members = strategy_.axes.of_place();
    open_between_replicas(steps_, host_, launch, strategy_.collectives, std::move(members), strategy_.axes.replicas);
    parallel::register_gradients(*steps_.between_replicas(), trainer_);
  }
  if (parts_ || stages_)
    steps_.communicator().register_memory(trainer_.activation_memory().data(), trainer_.activation_memory().bytes());
  choose_bucket_bytes(launch);
  prepare_step(launch, bucket_bytes_);
  if (gradients_) trainer_.start();  // sizes of buckets were tried by steps
  begin();
  note_memory("before_step");
}

void DecoderRanks::begin() {
  if (update_) update_->clear();
  if (strategy_.begins_from_rank_0) parallel::broadcast_parameters(trainer_, steps_.communicator());
  steps_.forget_totals();  // from here on they count steps alone
}

void DecoderRanks::note_memory(const char* moment) const {
  if (strategy_.memory_moments) memory_moment(host_, moment);
}

void DecoderRanks::choose_bucket_bytes(const Launch& launch) {
  if (!strategy_.gradients) return;
  bucket_bytes_ = strategy_.gradients->bucket_bytes;
  if (bucket_bytes_ != 0 || strategy_.gradients->when != parallel::AverageMode::overlap_bucketed) return;
  const parallel::BucketChoice choice = parallel::choose_bucket_bytes(
      host_, name_ + ".buckets", parallel::bucket_candidates(trainer_.parameters().gradient_bytes()),
      [&](std::size_t bytes) { return step_seconds(launch, bytes); });
  host_.info(choice.text);
  bucket_bytes_ = choice.bytes;
}

void DecoderRanks::prepare_step(const Launch& launch, std::size_t bucket_bytes) {
  steps_.forget_captured();
  if (const std::optional<GradientMeeting>& of = strategy_.gradients) {
    if (of->reduction == comm::Reduction::average)
      gradients_.emplace(of->when, trainer_.parameters(), bucket_bytes, of->last_bucket_bytes);
    else
      gradients_.emplace(trainer_.parameters(), std::vector<train::ElementRange>{}, bucket_bytes);
  }
  reach_ranks(false);
  if (strategy_.graph) steps_.capture(trainer_, [&] { enqueue_step(train::StepMarks(launch)); });
}

double DecoderRanks::step_seconds(const Launch& launch, std::size_t bucket_bytes) {
  constexpr int tried_steps = 3;  // with buckets of each size
  prepare_step(launch, bucket_bytes);
  const auto take = [&](int steps) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) steps_.repeat([&] { enqueue_step(train::StepMarks(launch)); });
    steps_.wait(trainer_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / steps;
  };
  take(1);
  return take(tried_steps);
}

void DecoderRanks::reach_ranks(bool silent) {
  comm::Communicator* const communicator = silent ? nullptr : &steps_.communicator();
  if (blocks_) blocks_->use(communicator);
  if (parts_) parts_->use(communicator);
  if (stages_) stages_->use(communicator);
  if (replicas_) replicas_->use(silent ? nullptr : steps_.between_replicas());
  // These two have a communicator in any case, which is silent by itself.
  if (gradients_) gradients_->use(sums_over_replicas() ? *steps_.between_replicas() : steps_.communicator());
  if (update_) update_->use(steps_.communicator());
}

void DecoderRanks::run(const Launch& launch) {
  steps_.run(launch, host_, [&] { enqueue_step(train::StepMarks(launch)); });
}

Account DecoderRanks::account(const Launch&) { return trainer_.account(); }

void DecoderRanks::restart(const Launch&) {
  keep_measured_weights();
  trainer_.start();
  begin();
}

void DecoderRanks::silence(bool silent) {
  if (silent) keep_measured_weights();
  steps_.silence(silent);
  reach_ranks(silent);
  trainer_.leave_multiprocessors(silent ? 0 : strategy_.left_multiprocessors);
  if (silent) steps_.capture_silent(trainer_, [&] { enqueue_step(train::StepMarks()); });
}

double DecoderRanks::reported_loss(const std::string& name) const {
  const double loss = trainer_.last_loss();
  if (strategy_.loss == ReportedLoss::of_rank) return loss;
  const double mean = comm::mean_of_ranks(host_, name, loss);
  if (strategy_.loss == ReportedLoss::mean_of_ranks) return mean;
  const std::int32_t counted_as_means = strategy_.trainer.has_terms() ? 1 : strategy_.axes.replicas;
  return static_cast<double>(comm::ranks_of(host_).rank_count / counted_as_means) * mean;
}

}  // namespace assay::mesh
