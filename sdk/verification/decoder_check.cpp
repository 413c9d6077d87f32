#include "assay/verification/decoder_check.hpp"

#include <algorithm>
#include <assay/models/naive_attention.hpp>
#include <assay/verification/decoder_reference.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/host_copies.hpp>
#include <vector>

#include "scrambled.hpp"

namespace assay::verification {

using compute::DType;
using compute::Tensor;

namespace {

constexpr double most_gflop = 10;  // a few seconds of two processors
constexpr double most_elements = 0x1p28;
constexpr std::int64_t most_sequences = 2, most_tokens = 32, least_tokens = 8;

constexpr std::int64_t longest_whole_scores = 1024;
constexpr std::size_t score_bytes = std::size_t{512} << 20;  // of longer contexts, at a time

// Attention by its definition, in so many rows at a time as are affordable.
models::DecoderConfig with_scores_in_parts(models::DecoderConfig c) {
  c.flash = false;
  c.score_rows = models::NaiveAttention::rows_within(score_bytes, c.batch_size, c.heads, c.context_length,
                                                     c.context_length, c.precision.activation);
  return c;
}

double gflop_of(const models::DecoderConfig& c) { return 3e-9 * static_cast<double>(models::decoder_forward_flops(c)); }

double elements_of(const models::DecoderConfig& c) {
  const auto d = static_cast<double>(c.d_model);
  return 2 * d * static_cast<double>(c.vocab_size) +
         static_cast<double>(c.layers) * d * (4 * d + 3 * static_cast<double>(c.d_ff));
}

bool is_affordable(const models::DecoderConfig& c) {
  return gflop_of(c) <= most_gflop && elements_of(c) <= most_elements;
}

struct Batch {
  std::vector<std::int64_t> tokens, labels;
  std::int64_t valid = 0;
};

// Both ends of the vocabulary, tokens that occur several times, and a label that counts for nothing.
Batch batch_of(const models::DecoderConfig& c) {
  Batch batch;
  const auto rows = static_cast<std::uint64_t>(c.rows()), words = static_cast<std::uint64_t>(c.vocab_size);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const bool repeats = i % 3 == 2;
    batch.tokens.push_back(repeats ? batch.tokens[static_cast<std::size_t>(i / 2)]
                                   : static_cast<std::int64_t>(scrambled(i) % words));
    batch.labels.push_back(static_cast<std::int64_t>(scrambled(i + rows) % words));
  }
  batch.tokens.front() = 0;
  batch.tokens.back() = batch.labels.front() = c.vocab_size - 1;
  if (rows > 3) batch.labels[static_cast<std::size_t>(rows / 2)] = -1;
  for (const std::int64_t label : batch.labels) batch.valid += label >= 0 ? 1 : 0;
  return batch;
}

// The ids of a model of the first layers alone.
models::DecoderParameters first_layers(models::DecoderParameters ids, std::int64_t layers) {
  ids.layers.resize(static_cast<std::size_t>(layers));
  return ids;
}

std::vector<train::ParameterSet::Id> parameters_of(const models::DecoderParameters& ids) {
  std::vector<train::ParameterSet::Id> all{ids.lm_head, ids.ln_final, ids.embeddings};
  for (const models::DecoderLayerParameters& p : ids.layers)
    all.insert(all.end(), {p.w2, p.w1, p.w3, p.ln2, p.output, p.q, p.k, p.v, p.ln1});
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

models::DecoderConfig opposite_path(models::DecoderConfig c) {
  c.fused = !c.fused;
  c.precision.eight_bit_products = false;  // of fused operations alone: the other path has the activations' format
  c.flash = !c.flash;
  c.checkpointing = c.backward;
  c.keep_logits = false;
  return !c.flash && c.context_length > longest_whole_scores ? with_scores_in_parts(c) : c;
}

models::DecoderConfig opposite_path_by_definition(const models::DecoderConfig& timed) {
  return with_scores_in_parts(opposite_path(timed));
}

models::DecoderConfig reference_shape(models::DecoderConfig c) {
  const std::int64_t layers = c.layers;
  c.batch_size = std::min(c.batch_size, most_sequences);
  c.keep_logits = false;
  c.layers = std::min<std::int64_t>(layers, 1);
  const std::int64_t context = std::min(c.context_length, most_tokens);
  for (c.context_length = context; c.context_length > least_tokens && !is_affordable(c);) c.context_length /= 2;
  // Of a model that is wide, one layer and few tokens may take longer than others; but not more memory.
  if (elements_of(c) > most_elements) {
    c.layers = 0;
    return c;
  }
  for (models::DecoderConfig more = c; more.layers < layers && c.layers < 4;) {
    ++more.layers;
    if (!is_affordable(more)) break;
    c.layers = more.layers;
  }
  return c;
}

Verified check_against_float64(const Host& host, models::DecoderTrainer& trainer, double loss_scale) {
  const models::DecoderConfig shape = reference_shape(trainer.config().model);
  if (shape.layers == 0 && trainer.config().model.layers > 0)
    return {"not held against float64, which would take more than 1 GiB for one layer and the vocabulary; ", true};
  compute::Backend& backend = trainer.backend();
  const train::ParameterSet& set = trainer.parameters();
  const models::DecoderParameters ids = first_layers(trainer.ids(), shape.layers);
  const std::vector<train::ParameterSet::Id> used = parameters_of(ids);
  const Batch batch = batch_of(shape);
  const DeviceMemory memory(host, ASSAY_MEMORY_DATA, 2 * static_cast<std::size_t>(shape.rows()) * 8, "verification");
  const Tensor tokens(memory.data(), DType::i64, {shape.rows()});
  const Tensor labels(memory.data<char>() + tokens.bytes(), DType::i64, {shape.rows()});
  backend.upload(tokens, batch.tokens.data());
  backend.upload(labels, batch.labels.data());

  models::DecoderModel model(shape, set, ids);
  trainer.lend_memory(model);
  const auto enqueue = [&] {
    model.forward(backend, tokens, &labels, batch.valid);
    if (shape.backward) model.backward(backend, tokens, labels, batch.valid);
  };
  try {
    trainer.prepare(enqueue);
  } catch (const Error& e) {
    if (e.status() != ASSAY_UNSUPPORTED) throw;
    return {"not held against float64, since the device refuses so few tokens: " + std::string(e.what()) + "; ", true};
  }
  trainer.start(loss_scale);
  // After the start, which clears the gradients, where activations of this model may lie.
  model.initialize(backend);
  spread_constants(backend, set, used);
  // The numbers that a product reads: rounding weights to their copy is no error of an operation.
  std::vector<std::vector<float>> weights(set.all().size());
  for (const train::ParameterSet::Id id : used)
    weights[id] = workload::download_f32(backend, set.all()[id].dims.size() == 1 ? set.value(id) : set.compute(id));
  enqueue();
  backend.synchronize();
  const DecoderGradients exact = decoder_gradients(shape, set, ids, weights, batch.tokens, batch.labels);

  float loss = 0;
  backend.download(&loss, model.loss());
  Outcome found{static_cast<double>(loss), {}};
  const auto unscale = static_cast<float>(1 / (trainer.scaler().active() ? loss_scale : 1));
  if (shape.backward) found.samples.resize(set.all().size());  // empty of the layers that are left out
  for (const train::ParameterSet::Id id : shape.backward ? used : std::vector<train::ParameterSet::Id>()) {
    found.samples[id] = workload::download_f32(backend, set.gradient(id));
    for (float& g : found.samples[id]) g *= unscale;
  }
  const std::string what = std::to_string(shape.rows()) + " tokens, " + std::to_string(shape.layers) + " of " +
                           std::to_string(trainer.config().model.layers) + " layers against float64";
  return compare_paths(
             what, found, exact.loss, [&](std::size_t i) { return exact.gradients[i]; },
             path_tolerance(shape.precision, shape.layers, shape.rows()), set, "") +
         "; ";
}

}  // namespace assay::verification
