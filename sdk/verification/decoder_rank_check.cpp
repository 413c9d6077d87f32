#include "assay/verification/decoder_rank_check.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/compute/audited_backend.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_data_check.hpp>
#include <assay/verification/experts_check.hpp>
#include <assay/verification/given_experts.hpp>
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

// Most rows of the embedding's gradient are zero; this one is not.
Tensor row_of_first_token(const models::DecoderTrainer& trainer) {
  return trainer.parameters().gradient(trainer.ids().embeddings).slice(0, trainer.first_token(), 1);
}

Outcome outcome_of(const models::DecoderTrainer& trainer, const models::DecoderModel& model) {
  Outcome outcome =
      outcome_of_gradients(trainer.backend(), trainer.parameters(), trainer.loss_of(model), sample_budget);
  outcome.kept.push_back(compute::inspector_of(trainer.backend())->keep(row_of_first_token(trainer), sample_budget));
  return outcome;
}

// Of the whole batch, by the parts of a step that the trainer enqueues: of these the timed step is made. Leaves its
// gradients in the arena, and returns its loss.
double trainers_own(models::DecoderTrainer& trainer, double loss_scale) {
  trainer.start(loss_scale);
  trainer.initialize();  // another model has had the memory
  spread_constants(trainer.backend(), trainer.parameters());
  forward_and_backward(trainer, train::UnmarkedLaunch());
  return trainer.loss_of(trainer.model());
}

// A model of the trainer's parameters with memory and kernels for the first sequences of the rank's batch.
class Path {
 public:
  // `given`: by layer, the experts of each token; empty: they are chosen.
  Path(models::DecoderTrainer& trainer, const models::DecoderConfig& config, std::vector<Tensor> given)
      : trainer_(trainer),
        model_(config, trainer.parameters(), trainer.ids()),
        inputs_(trainer.inputs().slice(0, 0, config.step_rows())),
        labels_(trainer.labels().slice(0, 0, config.step_rows())) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(labels_.elements()));
    trainer.backend().download(labels.data(), labels_);
    valid_rows_ = std::count_if(labels.begin(), labels.end(), [](std::int64_t label) { return label >= 0; });
    model_.give_experts(std::move(given));
    trainer.lend_memory(model_);
    trainer.prepare([&] { enqueue(trainer.backend()); });
    model_.initialize(trainer.backend());
  }

  // `by`: the trainer's backend, or one that looks on.
  void enqueue(compute::Backend& by) const {
    model_.whole_step(by, inputs_, labels_, valid_rows_, trainer_.left_multiprocessors());
  }

  // After the trainer's start.
  void begin_and_enqueue(compute::Backend& by) const {
    model_.initialize(by);
    spread_constants(trainer_.backend(), trainer_.parameters());
    enqueue(by);
  }

  // Leaves its gradients in the arena.
  void take_step(compute::Backend& by, double loss_scale) const {
    trainer_.prepare(by, [&](compute::Backend& b) { enqueue(b); });
    trainer_.start(loss_scale);
    begin_and_enqueue(by);
  }
  const models::DecoderModel& model() const { return model_; }
  std::int64_t labels() const { return valid_rows_; }

 private:
  models::DecoderTrainer& trainer_;
  models::DecoderModel model_;
  Tensor inputs_, labels_;
  std::int64_t valid_rows_ = 0;
};

Verified compare_at(models::DecoderTrainer& trainer, std::int64_t batch) {
  models::DecoderConfig config = trainer.config().model;
  config.batch_size = batch;
  compute::AuditedBackend audited(trainer.backend(), config.precision.product_math);
  double loss_scale = 1;
  Outcome found;
  std::int64_t labels = 0;
  std::optional<GivenExperts> chosen;  // by the first path, for the other one
  {
    const Path timed(trainer, config, trainer.drawn_experts_for(config));
    loss_scale = find_finite_gradients(trainer, [&] { timed.begin_and_enqueue(trainer.backend()); });
    timed.take_step(audited, loss_scale);
    found = outcome_of(trainer, timed.model());
    labels = timed.labels();
    if (config.experts.any())
      chosen.emplace(trainer.host(), trainer.backend(), chosen_experts(trainer.backend(), timed.model()),
                     config.experts.per_token);
  }
  // Of the first path with what lies in the arena now.
  const auto compare = [&](const std::string& what, double loss) {
    const train::ParameterSet& set = trainer.parameters();
    return compare_paths(
        what, trainer.backend(), found, loss,
        [&](std::size_t i) { return i < set.all().size() ? set.gradient(i) : row_of_first_token(trainer); },
        decoder_tolerance(config, labels), set, set.all()[trainer.ids().embeddings].name);
  };
  std::string as_enqueued;
  if (batch == trainer.config().model.batch_size)
    as_enqueued = compare("each rank's own step, as it is enqueued against its operations one by one",
                          trainers_own(trainer, loss_scale)) +
                  "; ";
  const std::vector<Tensor> given = chosen ? chosen->by_layer() : std::vector<Tensor>();
  std::optional<Path> other;
  if (!make_other_path(trainer.backend(), found,
                       {[&] { other.emplace(trainer, opposite_path(config), given); },
                        [&] { other.emplace(trainer, opposite_path_by_definition(config), given); }}))
    throw Error(ASSAY_OUT_OF_MEMORY, "there is no memory for the other path");
  const bool in_part = !audited.looked_at_all();
  other->take_step(audited, loss_scale);  // of its operations those that the first has not
  const std::string sequences = batch == trainer.config().model.batch_size
                                    ? "each rank's own"
                                    : "of the first " + std::to_string(batch) + " of " +
                                          std::to_string(trainer.config().model.batch_size) + " sequences of each rank";
  return {audited.text() + "; " + as_enqueued +
              compare(sequences + ", " + against_the_other_path(config.fused), trainer.loss_of(other->model())) +
              ", of " + share_of(found, trainer.parameters()),
          in_part};
}

}  // namespace

OwnData own_data(const models::DecoderTrainer& trainer) {
  const models::DecoderTrainerConfig& config = trainer.config();
  const std::uint64_t hash =
      hash_of(trainer.backend(), trainer.inputs()) ^ std::rotl(hash_of(trainer.backend(), trainer.labels()), 1);
  return {hash, 2 * config.model.step_rows(), config.model.vocab_size};
}

std::string check_parts(const Host& host, std::string_view name, const models::DecoderTrainer& trainer) {
  const std::string of(name);
  const std::string wrong = wrong_data_of(trainer);
  const std::vector<std::int32_t> are_wrong =
      comm::exchange(host, of + ".data", static_cast<std::int32_t>(!wrong.empty()));
  if (!wrong.empty()) throw Error(ASSAY_WRONG_RESULT, "the rank's batch is not what the experiment says: " + wrong);
  if (const auto first = std::find(are_wrong.begin(), are_wrong.end(), 1); first != are_wrong.end())
    throw Error(ASSAY_WRONG_RESULT,
                "the batch of rank " + std::to_string(first - are_wrong.begin()) + " is not what the experiment says");
  const models::DecoderConfig& model = trainer.config().model;
  const std::int64_t rows = model.step_rows() * model.context.ranks;
  std::int32_t wrong_rank = -1;
  // Of sequences that ranks share out each has looked at its own tokens; the sequences are to be the same ones.
  const auto hash_of_part = [&](std::int64_t part) { return hash_of_rows(trainer, part * rows, rows); };
  const std::vector<std::uint64_t> ranks = comm::exchange(
      host, of + ".hashes", model.shares_context() ? hash_of_part(trainer.config().data_rank) : own_data(trainer).hash);
  if (trainer.config().data_rank == 0)
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      // Ranks that share one part follow one another.
      const std::int64_t part =
          static_cast<std::int64_t>(rank) * trainer.config().data_ranks / static_cast<std::int64_t>(ranks.size());
      if (ranks[rank] != hash_of_part(part)) wrong_rank = static_cast<std::int32_t>(rank);
    }
  wrong_rank = comm::exchange(host, of + ".verdict", wrong_rank)[0];
  if (wrong_rank >= 0)
    throw Error(ASSAY_WRONG_RESULT,
                "what rank " + std::to_string(wrong_rank) + " trains on is not its part of the batch of all ranks");
  return "each rank's " + checked_data_text(trainer);
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

Verified check_own_model(const Host& host, models::DecoderTrainer& trainer) {
  const assay_comm& ranks = comm::ranks_of(host);
  return check_own_model(host, trainer, {.rank = ranks.rank, .ranks = ranks.rank_count});
}

Verified check_own_model(const Host& host, models::DecoderTrainer& trainer, const SharedWork& shared) {
  const bool has_own_batch = trainer.config().data_ranks > 1 || shared.rank == 0;
  begin_part(host, "other_path");
  const Verified own = has_own_batch ? check_own_gradients(trainer) : Verified("");
  try {
    begin_part(host, "float64_model");
    const Verified exact = check_against_float64(host, trainer, verification_loss_scale, shared);
    return {exact.text + own.text, own.in_part || exact.in_part};
  } catch (const Error& e) {
    if (e.status() != ASSAY_OUT_OF_MEMORY) throw;
    return {"not held against float64: there is no memory for it; " + own.text, true};
  }
}

}  // namespace assay::verification
