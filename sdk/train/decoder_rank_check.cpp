#include "assay/train/decoder_rank_check.hpp"

#include <assay/comm/exchange.hpp>
#include <assay/compute/audited_backend.hpp>
#include <assay/train/path_check.hpp>
#include <bit>

namespace assay::train {

using compute::Tensor;

namespace {

constexpr std::int64_t longest_naive_context = 1024;

std::uint64_t hash_of_rows(const DecoderTrainer& trainer, std::int64_t first, std::int64_t count) {
  return hash_of(trainer.backend(), trainer.global_inputs().slice(0, first, count)) ^
         std::rotl(hash_of(trainer.backend(), trainer.global_labels().slice(0, first, count)), 1);
}

DecoderConfig unlike(DecoderConfig c) {
  c.fused = !c.fused;
  c.flash = !c.flash || c.context_length > longest_naive_context;
  c.checkpointing = true;
  return c;
}

// `by`: the trainer's backend, or one that looks on.
Outcome outcome_of(DecoderTrainer& trainer, const DecoderModel& model, compute::Backend& by) {
  compute::Backend& backend = trainer.backend();
  const std::int64_t rows = model.config().rows();
  const Tensor inputs = trainer.inputs().slice(0, 0, rows);
  const Tensor labels = trainer.labels().slice(0, 0, rows);
  const auto enqueue = [&](compute::Backend& on) {
    model.forward(on, inputs, &labels, rows);
    model.backward(on, inputs, labels, rows);
  };
  trainer.prepare([&] { enqueue(backend); });
  model.initialize(by);
  trainer.start();
  enqueue(by);
  backend.synchronize();
  Outcome outcome;
  float loss = 0;
  backend.download(&loss, model.loss());
  outcome.loss = static_cast<double>(loss);
  outcome.samples = sample_gradients(backend, trainer.parameters());
  // Most rows of the embedding's gradient are zero; this one is not.
  const Tensor embeddings = trainer.parameters().gradient(trainer.ids().embeddings);
  outcome.samples.push_back(sample(backend, embeddings.slice(0, trainer.first_token(), 1)));
  return outcome;
}

std::string compare_at(DecoderTrainer& trainer, std::int64_t batch) {
  DecoderConfig timed_config = trainer.config().model;
  timed_config.batch_size = batch;
  const DecoderConfig other_config = unlike(timed_config);
  DecoderModel timed(timed_config, trainer.parameters(), trainer.ids());
  DecoderModel other(other_config, trainer.parameters(), trainer.ids());
  trainer.lend_memory(timed);
  compute::AuditedBackend audited(trainer.backend(), timed_config.precision.product_math);
  const Outcome found = outcome_of(trainer, timed, audited);
  trainer.lend_memory(other);
  const Outcome expected = outcome_of(trainer, other, trainer.backend());
  const std::string sequences = batch == trainer.config().model.batch_size
                                    ? "each rank's own"
                                    : "of the first " + std::to_string(batch) + " sequences of each rank";
  return audited.text() + "; " +
         compare_paths(sequences + ", fused path against the unfused one", found, expected,
                       path_tolerance(timed_config.precision, timed_config.layers), trainer.parameters(),
                       trainer.parameters().all()[trainer.ids().embeddings].name);
}

}  // namespace

OwnData own_data(const DecoderTrainer& trainer) {
  const DecoderTrainerConfig& config = trainer.config();
  const std::uint64_t hash =
      hash_of(trainer.backend(), trainer.inputs()) ^ std::rotl(hash_of(trainer.backend(), trainer.labels()), 1);
  return {hash, 2 * config.model.rows(), config.model.vocab_size};
}

void check_parts(const Host& host, std::string_view name, const DecoderTrainer& trainer) {
  const std::string of(name);
  const std::int64_t rows = trainer.config().model.rows();
  std::int32_t wrong_rank = -1;
  const std::vector<std::uint64_t> ranks = comm::exchange(host, of + ".hashes", own_data(trainer).hash);
  if (trainer.config().rank == 0)
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (ranks[rank] != hash_of_rows(trainer, static_cast<std::int64_t>(rank) * rows, rows))
        wrong_rank = static_cast<std::int32_t>(rank);
  wrong_rank = comm::exchange(host, of + ".verdict", wrong_rank)[0];
  if (wrong_rank >= 0)
    throw Error(ASSAY_WRONG_RESULT,
                "what rank " + std::to_string(wrong_rank) + " trains on is not its part of the batch of all ranks");
}

Verified check_own_gradients(DecoderTrainer& trainer) {
  for (std::int64_t batch = trainer.config().model.batch_size; batch > 0; batch /= 2) try {
      return compare_at(trainer, batch);
    } catch (const Error& e) {
      if (e.status() != ASSAY_OUT_OF_MEMORY) throw;
    }
  return {"the ranks' own gradients are not compared with those of another path: there is no memory for one sequence",
          true};
}

}  // namespace assay::train
