#include "assay/verification/decoder_check.hpp"

#include <algorithm>
#include <assay/models/naive_attention.hpp>
#include <assay/verification/decoder_reference.hpp>
#include <assay/verification/experts_check.hpp>
#include <assay/verification/spread_constants.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "decoder_parameters.hpp"
#include "scrambled.hpp"

namespace assay::verification {

using compute::DType;
using compute::Tensor;

namespace {

constexpr double most_gflop = 10;  // a few seconds of two processors, of all ranks together
constexpr double most_elements = 0x1p28;
constexpr std::int64_t most_sequences = 2, most_micro_batches = 3, most_tokens = 32, least_tokens = 8;

constexpr std::int64_t longest_whole_scores = 1024;
constexpr std::size_t score_bytes = std::size_t{512} << 20;  // of longer contexts, at a time

// Attention by its definition, in so many rows at a time as are affordable.
models::DecoderConfig with_scores_in_parts(models::DecoderConfig c) {
  c.flash = false;
  c.score_rows = models::NaiveAttention::rows_within(score_bytes, c.batch_size, c.heads, c.context_length,
                                                     c.context_length, c.precision.activation);
  return c;
}

double gflop_of(const models::DecoderConfig& c) {
  return 3e-9 * static_cast<double>(c.accumulation_steps) * static_cast<double>(models::decoder_forward_flops(c));
}

double elements_of(const models::DecoderConfig& c) {
  const auto d = static_cast<double>(c.d_model);
  // Of experts those that a token goes to: the products of others are not made.
  const std::int64_t feed_forward = c.dense_layers() * 3 * c.d_ff,
                     experts = c.expert_layers() *
                               (c.experts.count + 3 * (c.experts.per_token * c.experts.d_ff + c.experts.shared_d_ff));
  return (c.tied_embeddings ? 1 : 2) * d * static_cast<double>(c.vocab_size) +
         static_cast<double>(c.layers) * static_cast<double>(c.attention_elements()) +
         d * static_cast<double>(feed_forward + experts);
}

bool is_affordable(const models::DecoderConfig& c, const SharedWork& shared) {
  const double share = 1 / static_cast<double>(shared.ranks);
  return gflop_of(c) <= share * most_gflop && elements_of(c) <= share * most_elements;
}

struct Batch {
  std::vector<std::int64_t> tokens, labels;
  std::int64_t valid = 0;
};

// Both ends of the vocabulary, tokens that occur several times, and a label that counts for nothing.
Batch batch_of(const models::DecoderConfig& c, const SharedWork& shared) {
  Batch batch;
  const auto rows = static_cast<std::uint64_t>(c.accumulation_steps * c.batch_size * c.context_length);
  const auto words = static_cast<std::uint64_t>(c.vocab_size);
  const std::uint64_t first = 2 * rows * static_cast<std::uint64_t>(shared.rank);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const bool repeats = i % 3 == 2;
    batch.tokens.push_back(repeats ? batch.tokens[static_cast<std::size_t>(i / 2)]
                                   : static_cast<std::int64_t>(scrambled(first + i) % words));
    batch.labels.push_back(static_cast<std::int64_t>(scrambled(first + i + rows) % words));
  }
  batch.tokens.front() = 0;
  batch.tokens.back() = batch.labels.front() = c.vocab_size - 1;
  if (rows > 3) batch.labels[static_cast<std::size_t>(rows / 2)] = -1;
  for (const std::int64_t label : batch.labels) batch.valid += label >= 0 ? 1 : 0;
  return batch;
}

// How far two logits of a router may be off, relative to their root mean square. Their states and weights are off like
// the gradients of path_tolerance(), but only by forward's roundings; 3 deviations of the difference of two are sqrt(2)
// x 3 / 2.5 of that, at most.
double choice_rounding(const models::DecoderConfig& c) {
  return 1.7 * c.rounding_growth_of_attention() * path_tolerance(c.precision, c.layers, c.step_rows()).gradient;
}

// The ids of a model of the first layers alone.
models::DecoderParameters first_layers(models::DecoderParameters ids, std::int64_t layers) {
  ids.layers.resize(static_cast<std::size_t>(layers));
  return ids;
}

struct Used {
  std::vector<train::ParameterSet::Id> ids;  // of the parameters of such a model, rising
  std::vector<bool> is_resident;             // by parameter of the set
};
Used parameters_of(const train::ParameterSet& set, const models::DecoderConfig& config) {
  Used used{{}, std::vector<bool>(set.all().size())};
  for (const DecoderParameter& p : decoder_parameters_of(config)) {
    used.ids.push_back(decoder_parameter(set, p.name));
    used.is_resident[used.ids.back()] = p.is_resident();
  }
  std::sort(used.ids.begin(), used.ids.end());
  return used;
}

// Each addition of a micro-batch's gradients rounds them in 16-bit formats. On a CPU in bf16 64 micro-batches left the
// gradients of a step 0.013 from those of one, 256 left 0.025, 512 0.05 and 1,024 0.29: beyond what is tolerated.
constexpr std::int64_t most_other_micro_batches = 64;

// Into how many parts the other path cuts a micro-batch, so that its micro-batches are other ones: 1 where it does not.
std::int64_t parts_of_a_micro_batch(const models::DecoderConfig& c) {
  if (c.accumulation_steps == 1) return 1;
  for (std::int64_t parts = c.batch_size; parts > 1; --parts)
    if (c.batch_size % parts == 0 && c.accumulation_steps * parts <= most_other_micro_batches) return parts;
  return 1;
}

}  // namespace

models::DecoderConfig opposite_path(models::DecoderConfig c) {
  c.fused = !c.fused;
  // Of fused operations alone: the other path has the activations' format.
  c.precision.eight_bit_products = c.precision.eight_bit_weight_gradients = false;
  c.flash = !c.flash;
  c.checkpointing = c.backward;
  c.keep_logits = c.keep_outputs = false;
  // The same tokens in other micro-batches and chunks, so that what is lost between two of them shows.
  if (c.loss_chunks > 1) ++c.loss_chunks;
  // A loss of how experts are balanced is one of a micro-batch.
  if (c.experts.any() && c.experts.balance_coefficient != 0)
    return !c.flash && c.context_length > longest_whole_scores ? with_scores_in_parts(c) : c;
  if (const std::int64_t parts = parts_of_a_micro_batch(c); parts > 1) {
    c.accumulation_steps *= parts;
    c.batch_size /= parts;
  } else {  // by twos or threes; of one micro-batch nothing changes
    const std::int64_t together = c.accumulation_steps % 2 == 0 ? 2 : std::gcd(c.accumulation_steps, std::int64_t{3});
    c.accumulation_steps /= together;
    c.batch_size *= together;
  }
  return !c.flash && c.context_length > longest_whole_scores ? with_scores_in_parts(c) : c;
}

models::DecoderConfig opposite_path_by_definition(const models::DecoderConfig& timed) {
  return with_scores_in_parts(opposite_path(timed));
}

// The last token of a document, but for a sequence's, has no label.
static std::int64_t drawn_labels(const models::DecoderConfig& c) {
  if (c.documents.empty()) return c.step_rows();
  const auto borders = static_cast<std::int64_t>(c.documents.size()) - 1;
  return c.step_rows() / c.context_length * (c.context_length - borders);
}

// A token that sees n gives a sink 1 / (n + 1), and its result is sqrt(n) / (n + 1) of a value's
// size: the root mean square of the first, weighted as results are.
static double share_of_sinks(const models::DecoderConfig& c) {
  if (!c.attention_sinks) return 0;
  double sinks = 0, results = 0;
  const auto add_document = [&](std::int64_t tokens) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto seen = static_cast<double>(std::min(token + 1, c.sliding_window > 0 ? c.sliding_window : tokens));
      const double result = seen / ((1 + seen) * (1 + seen));
      results += result;
      sinks += result / ((1 + seen) * (1 + seen));
    }
  };
  if (c.documents.empty()) add_document(c.context_length);
  for (const std::int64_t tokens : c.documents) add_document(tokens);
  return std::sqrt(sinks / results);
}

// A token's gradient by the router's logits is one number g for each of its experts, the product of that expert's
// result with the gradient by it, times scores that have hardly an error. So the gradient by the router's weights has
// one error for each choice of a token, not one for each element. An expert's result is as large as its hidden states,
// and the error of g as well: of n choices those with the largest states count, as many as n / K, where K is the mean
// of the squared sum of squares of hidden states over its mean's square. Of one state silu(a) b, with normal a and b, K
// is 22 (silu(a)'s 7.3 times b's 3), and of f independent states 1 + 21 / f. Found in fp32, of 3 experts and 16 tokens:
// 0.9e-6 with 64 hidden states, where this makes 3.1e-6; 1.7e-6 with one, where it makes 6.4e-6; and 3.04e-6 where as
// many errors as elements would make 2.1e-6.
static double roundings_of_routers(const models::DecoderConfig& c, std::int64_t labels) {
  if (!c.experts.any()) return 0;
  constexpr double of_one_state = 22;
  const double choices = static_cast<double>(labels * c.experts.per_token);
  return std::max(1.0, choices / (1 + (of_one_state - 1) / static_cast<double>(c.experts.d_ff)));
}

// The gradient by a score is p (dp - sum p dp), a difference of terms that the values and their gradient make. If it is
// small, the gradients by queries and keys are small beside the one by the values, and yet off by the roundings of the
// terms. These are roundings of the normed state, of the values, of the result, and without tiled attention of p and of
// dp: 8 of the 52 that path_tolerance() counts in a layer of both paths. Found, with 2 to 32 tokens: 0.3 to 0.66 u of
// the values' gradient, and 2.5 u at most; this is 3 u, where many scores are averaged.
// Of few scores nothing is averaged. N numbers have a root mean square that is off by 1 / sqrt(N) of itself, and their
// errors make a factor that is as large as 1 / sqrt(N) of the whole error. One key alone has no gradient by its score.
//
// A norm at the end of a branch stores a result more, and its backward one: 4 more in a layer than the 26 that
// path_tolerance() counts.
//
// Scores beyond size one, caps below it and norms of few columns make roundings larger before they reach the gradients.
// Found, of scores of 4 to 1e5 in fp32 and of 4 to 16 in bf16, of caps from 1 to 1e-4: a half of this and less. Such
// errors are those of the queries whose two largest scores are close, a share of 1 / score of them.
PathTolerance decoder_tolerance(const models::DecoderConfig& c) { return decoder_tolerance(c, drawn_labels(c)); }

PathTolerance decoder_tolerance(const models::DecoderConfig& c, std::int64_t labels) {
  constexpr double rounded_terms = 8.0 / 52;
  PathTolerance tolerance = path_tolerance(c.precision, c.layers, labels);
  for (double* const by : {&tolerance.gradient, &tolerance.block, &tolerance.factor, &tolerance.few})
    *by *= c.rounding_growth_of_attention() * c.rounding_growth_of_logits() * (c.post_norms ? std::sqrt(30.0 / 26) : 1);
  // The gradient of an expert's matrix from one token has a row for each of the token's hidden numbers, so that a block
  // is as far off as one number's gradient: a product of normal numbers, one of them off, of which the worst of 1e5 is
  // 20 deviations away. Found of 16 tokens of Qwen3-30B-A3B on an H200: 16 times the whole tensor's difference.
  if (c.experts.any())
    tolerance.block *= 1 + 1 / std::sqrt(std::max(1.0, static_cast<double>(c.step_rows() * c.experts.per_token) /
                                                           static_cast<double>(c.experts.count)));
  tolerance.routed = roundings_of_routers(c, labels);
  const auto tokens = static_cast<double>(c.context_length);
  const double others = c.documents.empty() ? 0.5 * (tokens - 1)  // that a token sees, on average
                                            : static_cast<double>(models::document_pairs(c.documents, 0)) / tokens - 1;
  const double scores = static_cast<double>(c.step_rows()) * others;
  const double of_one = scores > 0 ? 1 / std::sqrt(std::max(1.0, scores)) : 0;
  const double close_scores = static_cast<double>(c.step_rows() * c.heads) / c.rounding_growth_of_scores();
  const double of_close = c.rounding_growth_of_scores() > 1 ? 1 / std::sqrt(std::max(1.0, close_scores)) : 0;
  // Many scores leave the gradients by queries and keys as large as path_tolerance() takes them.
  constexpr double few_scores = 1024;
  if (scores < few_scores) tolerance.cancelled = std::sqrt(rounded_terms) * (1 + of_one);
  tolerance.sinks = share_of_sinks(c);
  tolerance.factor = std::min(tolerance.gradient, tolerance.factor + std::max(of_one, of_close) * tolerance.gradient);
  // Logits of random weights have a variance of 2 d / (d + vocab). Both paths round a state some 12 times in each
  // layer, and a token's loss has the roundings of its label's logit and of the others: 0.43 u sqrt(2 x 12 x layers)
  // sqrt(2) for logits of size one, which is 3 u sqrt(layers). 2.5 deviations of that are 2.4 times the 3.072 u in
  // path_tolerance(). Usual losses, ln(vocab), are so large that 3.072 u of them are more; with few words they are not.
  // Found with 5 words: 3.4 u of the loss in 1 layer and 5.2 u in 4, where this is 6 and 12 u.
  const auto words = static_cast<double>(c.vocab_size);
  const double logits = c.usual_logit() * std::sqrt(static_cast<double>(std::max<std::int64_t>(1, c.layers)));
  tolerance.loss *= std::max(1.0, 2.4 * logits / std::max(1.0, std::log(words)));
  return tolerance;
}

models::DecoderConfig reference_shape(models::DecoderConfig c, const SharedWork& shared) {
  const std::int64_t layers = c.layers;
  const bool accumulates = c.accumulation_steps > 1;
  c.batch_size = accumulates ? 1 : std::min(c.batch_size, most_sequences);
  c.accumulation_steps = std::min(c.accumulation_steps, most_micro_batches);
  c.loss_chunks = std::min<std::int64_t>(c.loss_chunks, 3);
  c.keep_logits = false;
  // The first layer, or those up to the first one with experts.
  const std::int64_t least = c.expert_layers() > 0 ? c.experts.first_dense_layers + 1 : 1;
  c.layers = std::min(layers, least);
  const std::int64_t context = std::min(c.context_length, most_tokens);
  const std::vector<std::int64_t> documents = c.documents;
  const auto set_context = [&](std::int64_t tokens) {
    c.context_length = tokens;
    c.documents = models::shortened_documents(documents, tokens);
  };
  for (set_context(context); c.context_length > least_tokens && !is_affordable(c, shared);)
    set_context(c.context_length / 2);
  // So that a window hides some of so few tokens.
  if (c.sliding_window > 0)
    c.sliding_window = std::min(c.sliding_window, std::max<std::int64_t>(1, c.context_length / 2));
  // Of a model that is wide, one layer and few tokens may take longer than others; but not more memory.
  if (elements_of(c) > most_elements) {
    c.layers = c.experts.first_dense_layers = 0;
    return c;
  }
  for (models::DecoderConfig more = c; more.layers < layers && c.layers < 4;) {
    ++more.layers;
    if (!is_affordable(more, shared)) break;
    c.layers = more.layers;
  }
  return c;
}

namespace {

Verified compare_with_float64(const Host& host, models::DecoderTrainer& trainer, double loss_scale,
                              const models::DecoderConfig& shape, const SharedWork& shared) {
  compute::Backend& backend = trainer.backend();
  const train::ParameterSet& set = trainer.parameters();
  const Used used = parameters_of(set, shape);
  const Batch batch = batch_of(shape, shared);
  const auto rows = static_cast<std::int64_t>(batch.tokens.size());
  const DeviceMemory memory(host, ASSAY_MEMORY_DATA, 2 * batch.tokens.size() * 8, "verification");
  const Tensor tokens(memory.data(), DType::i64, {rows});
  const Tensor labels(memory.data<char>() + tokens.bytes(), DType::i64, {rows});
  backend.upload(tokens, batch.tokens.data());
  backend.upload(labels, batch.labels.data());

  const models::DecoderParameters ids = first_layers(trainer.ids(), shape.layers);
  models::DecoderModel model(shape, set, ids);
  model.give_experts(trainer.drawn_experts_for(shape));
  trainer.lend_memory(model);
  const auto enqueue = [&] { model.whole_step(backend, tokens, labels, batch.valid); };
  try {
    trainer.prepare(enqueue);
  } catch (const Error& e) {
    if (e.status() != ASSAY_UNSUPPORTED) throw;
    return {"not held against float64, since the device refuses so few tokens: " + std::string(e.what()) + "; ", true};
  }
  trainer.start(loss_scale);
  if (trainer.config().weights_file.empty()) check_drawn_parameters(backend, set, trainer.config().model);
  // After the start, which clears the gradients, where activations of this model may lie.
  model.initialize(backend);
  spread_constants(backend, set, used.ids);
  enqueue();
  backend.synchronize();
  models::DecoderConfig at_once = shape;  // of all micro-batches
  at_once.batch_size *= at_once.accumulation_steps;
  // The numbers that a product reads: rounding weights to their copy is no error of an operation. Operations read
  // norms' weights and sinks as the optimizer has them, and all others, biases too, in the activations' format.
  const auto unscale = static_cast<float>(1 / (trainer.scaler().active() ? loss_scale : 1));
  ParametersInPlace parameters(backend, set, used.ids, used.is_resident, unscale);
  // Where rounding decides which expert is the better one, the device's choice counts.
  ChosenExperts chosen = chosen_experts(backend, model);
  chosen.rounding = shape.experts.routing == models::Routing::learned ? choice_rounding(shape)
                                                                      : std::numeric_limits<double>::infinity();
  const double exact_loss = decoder_reference(at_once, set, parameters, batch.tokens, batch.labels, &chosen);
  float loss = 0;
  backend.download(&loss, model.loss());
  const std::string what = std::to_string(rows) + " tokens, " + std::to_string(shape.layers) + " of " +
                           std::to_string(trainer.config().model.layers) + " layers against float64";
  return compare_paths(what, static_cast<double>(loss), exact_loss, parameters.differences(), decoder_tolerance(shape),
                       set, "") +
         "; ";
}

}  // namespace

Verified check_against_float64(const Host& host, models::DecoderTrainer& trainer, double loss_scale,
                               const SharedWork& shared) {
  check_decoder_parameters(trainer.parameters(), trainer.config().model);
  SharedWork own = shared;
  models::DecoderConfig shape = reference_shape(trainer.config().model, own);
  if (!is_affordable(shape, own)) {
    if (own.rank > 0) return std::string();
    shape = reference_shape(trainer.config().model, own = {});
  }
  if (shape.layers == 0 && trainer.config().model.layers > 0)
    return {"not held against float64, which would take more than 1 GiB for one layer and the vocabulary; ", true};
  return compare_with_float64(host, trainer, loss_scale, shape, own);
}

// Of a normal logit. A soft cap makes of a normal logit another number, the mean of whose exponential is an integral.
static double log_mean_exponential(double deviation, double cap) {
  if (!(cap > 0)) return deviation * deviation / 2;
  constexpr int steps = 400;
  constexpr double ends = 8;
  double sum = 0, weights = 0;
  for (int i = 0; i <= steps; ++i) {
    const double x = ends * (2.0 * i / steps - 1), weight = std::exp(-x * x / 2);
    sum += weight * std::exp(cap * std::tanh(x * deviation / cap));
    weights += weight;
  }
  return std::log(sum / weights);
}

// Logits of random weights are sums of d_model independent products: normal with variance d_model * 2 / (d_model +
// vocab). The expected cross-entropy against any label is then ln(vocab) + variance / 2. Of a tied head one logit is
// none of these: a token's own, by the embedding that its state may still lie along. It is at most d_model standard
// deviations of a weight, give or take a few percent, and the loss lies between that and the usual one.
StartingLoss starting_loss_of_decoder(const models::DecoderConfig& config, std::int64_t valid_rows) {
  const auto vocab = static_cast<double>(config.vocab_size);
  const auto d = static_cast<double>(config.d_model);
  const double variance = 2 * d / (d + vocab);
  const double allowed = 0.05 + 5 * std::sqrt((variance + 0.01) / static_cast<double>(valid_rows));
  const double cap = config.logit_soft_cap, usual = std::log(vocab) + log_mean_exponential(std::sqrt(variance), cap);
  double own_logit = config.tied_embeddings ? 1.1 * d * std::sqrt(2 / (d + vocab)) : 0;
  if (cap > 0) own_logit = cap * std::tanh(own_logit / cap);
  const double most = config.tied_embeddings ? std::log(std::exp(usual) + std::exp(own_logit)) : usual;
  return {(usual + most) / 2, allowed + (most - usual) / 2};
}

}  // namespace assay::verification
