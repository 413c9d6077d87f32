#include "assay/verification/decoder_rank_check.hpp"

#include <assay/comm/exchange.hpp>
#include <assay/compute/audited_backend.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/other_path.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/spread_constants.hpp>
#include <bit>
#include <optional>

namespace assay::verification {

using compute::Tensor;

namespace {

std::uint64_t hash_of_rows(const models::DecoderTrainer& trainer, std::int64_t first, std::int64_t count) {
  return hash_of(trainer.backend(), trainer.global_inputs().slice(0, first, count)) ^
         std::rotl(hash_of(trainer.backend(), trainer.global_labels().slice(0, first, count)), 1);
}

// A model of the trainer's parameters with memory and kernels for the first sequences of the rank's batch.
class Path {
 public:
  Path(models::DecoderTrainer& trainer, const models::DecoderConfig& config)
      : trainer_(trainer),
        model_(config, trainer.parameters(), trainer.ids()),
        inputs_(trainer.inputs().slice(0, 0, config.step_rows())),
        labels_(trainer.labels().slice(0, 0, config.step_rows())) {
    trainer.lend_memory(model_);
    trainer.prepare([&] { enqueue(trainer.backend()); });
    model_.initialize(trainer.backend());
  }

  // `by`: the trainer's backend, or one that looks on.
  void enqueue(compute::Backend& by) const {
    model_.whole_step(by, inputs_, labels_, inputs_.elements(), trainer_.left_multiprocessors());
  }

  // After the trainer's start.
  void begin_and_enqueue(compute::Backend& by) const {
    model_.initialize(by);
    spread_constants(trainer_.backend(), trainer_.parameters());
    enqueue(by);
  }

  Outcome outcome(compute::Backend& by, double loss_scale) const {
    compute::Backend& backend = trainer_.backend();
    trainer_.prepare(by, [&](compute::Backend& b) { enqueue(b); });
    trainer_.start(loss_scale);
    begin_and_enqueue(by);
    Outcome outcome;
    outcome.loss = trainer_.loss_of(model_);
    outcome.samples = sample_gradients(backend, trainer_.parameters());
    // Most rows of the embedding's gradient are zero; this one is not.
    const Tensor embeddings = trainer_.parameters().gradient(trainer_.ids().embeddings);
    outcome.samples.push_back(sample(backend, embeddings.slice(0, trainer_.first_token(), 1)));
    return outcome;
  }

 private:
  models::DecoderTrainer& trainer_;
  models::DecoderModel model_;
  Tensor inputs_, labels_;
};

Verified compare_at(models::DecoderTrainer& trainer, std::int64_t batch) {
  models::DecoderConfig config = trainer.config().model;
  config.batch_size = batch;
  compute::AuditedBackend audited(trainer.backend(), config.precision.product_math);
  double loss_scale = 1;
  Outcome found;
  {
    const Path timed(trainer, config);
    loss_scale = find_finite_gradients(trainer, [&] { timed.begin_and_enqueue(trainer.backend()); });
    found = timed.outcome(audited, loss_scale);
  }
  std::optional<Path> other;
  if (!make_other_path({[&] { other.emplace(trainer, opposite_path(config)); },
                        [&] { other.emplace(trainer, opposite_path_by_definition(config)); }}))
    throw Error(ASSAY_OUT_OF_MEMORY, "there is no memory for the other path");
  const bool in_part = !audited.looked_at_all();
  const Outcome expected = other->outcome(audited, loss_scale);  // of its operations those that the first has not
  const std::string sequences = batch == trainer.config().model.batch_size
                                    ? "each rank's own"
                                    : "of the first " + std::to_string(batch) + " of " +
                                          std::to_string(trainer.config().model.batch_size) + " sequences of each rank";
  return {audited.text() + "; " +
              compare_paths(sequences + ", " + against_the_other_path(config.fused), found, expected,
                            path_tolerance(config.precision, config.layers, config.step_rows()), trainer.parameters(),
                            trainer.parameters().all()[trainer.ids().embeddings].name) +
              ", of " + share_text(sampled_share(trainer.parameters())),
          in_part};
}

}  // namespace

OwnData own_data(const models::DecoderTrainer& trainer) {
  const models::DecoderTrainerConfig& config = trainer.config();
  const std::uint64_t hash =
      hash_of(trainer.backend(), trainer.inputs()) ^ std::rotl(hash_of(trainer.backend(), trainer.labels()), 1);
  return {hash, 2 * config.model.step_rows(), config.model.vocab_size};
}

void check_parts(const Host& host, std::string_view name, const models::DecoderTrainer& trainer) {
  const std::string of(name);
  const std::int64_t rows = trainer.config().model.step_rows();
  std::int32_t wrong_rank = -1;
  const std::vector<std::uint64_t> ranks = comm::exchange(host, of + ".hashes", own_data(trainer).hash);
  if (trainer.config().data_rank == 0)
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::int64_t part = static_cast<std::int64_t>(rank) % trainer.config().data_ranks;
      if (ranks[rank] != hash_of_rows(trainer, part * rows, rows)) wrong_rank = static_cast<std::int32_t>(rank);
    }
  wrong_rank = comm::exchange(host, of + ".verdict", wrong_rank)[0];
  if (wrong_rank >= 0)
    throw Error(ASSAY_WRONG_RESULT,
                "what rank " + std::to_string(wrong_rank) + " trains on is not its part of the batch of all ranks");
}

Verified check_own_gradients(models::DecoderTrainer& trainer) {
  for (std::int64_t batch = trainer.config().model.batch_size; batch > 0; batch /= 2) try {
      return compare_at(trainer, batch);
    } catch (const Error& e) {
      if (e.status() != ASSAY_OUT_OF_MEMORY) throw;
    }
  return {"the ranks' own gradients are not compared with those of another path: there is no memory for one sequence",
          true};
}

}  // namespace assay::verification
