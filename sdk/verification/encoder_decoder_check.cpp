#include "assay/verification/encoder_decoder_check.hpp"

#include <algorithm>
#include <assay/compute/forwarding_backend.hpp>
#include <assay/compute/operations.hpp>
#include <assay/verification/dropout_watch.hpp>
#include <assay/verification/encoder_decoder_reference.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/text.hpp>
#include <cstddef>
#include <cstring>
#include <vector>

#include "scrambled.hpp"

namespace assay::verification {

using compute::DType;
using compute::Tensor;
using models::EncoderDecoderConfig;
using models::EncoderDecoderParameters;
using models::EncoderDecoderTrainer;
using Id = train::ParameterSet::Id;

namespace {

constexpr double most_gflop = 4;  // about a second of two processors, and there are two forms of the step
constexpr double most_elements = 0x1p28;
constexpr std::int64_t most_samples = 2, most_tokens = 12, least_tokens = 4, most_layers = 3;
constexpr std::int64_t some_step = 5;  // whose masks are not those of the first

double gflop_of(const EncoderDecoderConfig& c) {
  return 3e-9 * static_cast<double>(models::encoder_decoder_forward_flops(c));
}

double elements_of(const EncoderDecoderConfig& c) {
  const auto d = static_cast<double>(c.d_model), ff = static_cast<double>(c.d_ff);
  return 2 * d * static_cast<double>(c.vocab_size) + static_cast<double>(c.encoder_layers) * d * (4 * d + 2 * ff) +
         static_cast<double>(c.decoder_layers) * d * (8 * d + 2 * ff);
}

bool is_affordable(const EncoderDecoderConfig& c) {
  return gflop_of(c) <= most_gflop && elements_of(c) <= most_elements;
}

// Sources, inputs and labels: both ends of the vocabulary, and tokens that occur several times.
std::vector<std::int64_t> batch_of(const EncoderDecoderConfig& c) {
  const auto words = static_cast<std::uint64_t>(c.vocab_size);
  std::vector<std::int64_t> batch;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(c.batch_elements()); ++i)
    batch.push_back(i % 3 == 2 ? batch[static_cast<std::size_t>(i / 2)]
                               : static_cast<std::int64_t>(scrambled(i) % words));
  batch.front() = 0;
  batch.back() = batch[static_cast<std::size_t>(c.source_rows())] = c.vocab_size - 1;
  return batch;
}

EncoderDecoderParameters first_layers(EncoderDecoderParameters ids, const EncoderDecoderConfig& c) {
  ids.encoder.resize(static_cast<std::size_t>(c.encoder_layers));
  ids.decoder.resize(static_cast<std::size_t>(c.decoder_layers));
  return ids;
}

struct Used {
  Id id;
  bool as_updated;  // operations read it as the optimizer has it, and not in the activations' format
};

std::vector<Used> parameters_of(const EncoderDecoderParameters& ids) {
  std::vector<Used> all{
      {ids.head_weight, false}, {ids.head_bias, false}, {ids.positions, true}, {ids.embedding, false}};
  const auto norm = [&](Id weight) { all.insert(all.end(), {{weight, true}, {weight + 1, true}}); };
  const auto block = [&](const models::BlockParameters& p, bool is_feed_forward) {
    all.insert(all.end(), {{p.norm_weight, true},
                           {p.norm_bias, true},
                           {p.out_bias, true},
                           {p.out_weight, false},
                           {p.in_weight, false},
                           {p.in_bias, is_feed_forward}});
  };
  norm(ids.decoder_norm), norm(ids.encoder_norm);
  for (const models::EncoderDecoderLayerParameters& p : ids.encoder)
    block(p.self_attention, false), block(p.feed_forward, true);
  for (const models::EncoderDecoderLayerParameters& p : ids.decoder)
    block(p.self_attention, false), block(p.cross_attention, false), block(p.feed_forward, true);
  return all;
}

// cuDNN's masks of 16-bit attention are known to nobody outside: there attention by its definition has to do.
bool has_own_masks(const EncoderDecoderConfig& c, const char* device_kind) {
  return c.dropout > 0 && c.flash && std::strcmp(device_kind, "cpu") != 0 && c.precision.activation != DType::f32;
}

// Clears the gradient by the positions before the first operation that writes some of it: what this step leaves out is
// then 0. Before that operation activations may lie there.
class ClearsPositions final : public compute::ForwardingBackend {
 public:
  ClearsPositions(compute::Backend& real, const Tensor& gradient) : ForwardingBackend(real), gradient_(gradient) {}

  void run_any(const compute::AnyOperation& operation) override {
    const auto* const backward = compute::operation_cast<compute::op::BiasBackward>(operation);
    if (!is_clear_ && backward && writes_gradient(backward->dbias)) {
      is_clear_ = true;
      real().run(compute::op::Fill{.x = gradient_, .value = 0.0});
    }
    real().run_any(operation);
  }

 private:
  bool writes_gradient(const Tensor& t) const {
    const auto* const begin = static_cast<const std::byte*>(gradient_.data);
    const auto* const at = static_cast<const std::byte*>(t.data);
    return begin <= at && at < begin + gradient_.bytes();
  }

  Tensor gradient_;
  bool is_clear_ = false;
};

// Enqueues the step of `model` by a watch. Its reads of states block, so that they are those of their moment.
class Step {
 public:
  Step(const Host& host, EncoderDecoderTrainer& trainer, const EncoderDecoderConfig& shape)
      : trainer_(trainer),
        shape_(shape),
        ids_(first_layers(trainer.ids(), shape)),
        used_(parameters_of(ids_)),
        batch_(batch_of(shape)),
        memory_(host, ASSAY_MEMORY_DATA, batch_.size() * sizeof(std::int64_t), "verification"),
        on_device_(memory_.data(), DType::i64, {shape.batch_elements()}),
        model_(shape, trainer.parameters(), ids_) {
    trainer.backend().upload(on_device_, batch_.data());
    trainer.lend_memory(model_);
    trainer.prepare([&] {
      model_.forward(trainer.backend(), on_device_);
      model_.backward(trainer.backend(), on_device_);
    });
  }

  std::string hold(double loss_scale) {
    compute::Backend& backend = trainer_.backend();
    const train::ParameterSet& set = trainer_.parameters();
    trainer_.start(loss_scale);
    // After the start, which clears the gradients, where activations of this model may lie.
    model_.initialize(backend);
    std::vector<Id> ids;
    for (const Used& u : used_) ids.push_back(u.id);
    spread_constants(backend, set, ids);
    backend.upload(trainer_.optimizer().step_number(), &some_step);
    ClearsPositions clears(backend, set.gradient(ids_.positions));
    DropoutWatch watch(clears, DropoutWatch::Keep::relu_states);
    model_.forward(watch, on_device_);
    watch.begin_backward();
    model_.backward(watch, on_device_);
    backend.synchronize();
    watch.check({.probability = trainer_.config().model.dropout * (shape_.dropout > 0 ? 1.0F : 0.0F),
                 .seed = trainer_.config().model.dropout_seed,
                 .step = trainer_.optimizer().step_number(),
                 .places = dropout_places(shape_)});
    // The numbers that an operation reads: rounding weights to their copy is no error of an operation.
    std::vector<bool> reads_master(set.all().size());
    for (const Used& u : used_) reads_master[u.id] = u.as_updated;
    const auto unscale = static_cast<float>(1 / (trainer_.scaler().active() ? loss_scale : 1));
    ParametersInPlace parameters(backend, set, ids, reads_master, unscale);
    const EncoderDecoderResult exact = encoder_decoder_reference(
        shape_, ids_, parameters, batch_, {.masks = watch.masks(), .states = watch.relu_states()});
    return compare(exact, parameters.differences());
  }

 private:
  std::string compare(const EncoderDecoderResult& exact, const std::vector<BlockDifference>& differences) const {
    const EncoderDecoderConfig& timed = trainer_.config().model;
    const std::string what = std::to_string(shape_.rows()) + " tokens, " + std::to_string(shape_.encoder_layers) +
                             " + " + std::to_string(shape_.decoder_layers) + " of " +
                             std::to_string(timed.encoder_layers) + " + " + std::to_string(timed.decoder_layers) +
                             " layers" + (shape_.dropout > 0 ? ", dropout included," : "") + " against float64";
    const PathTolerance tolerance =
        path_tolerance(shape_.precision, shape_.encoder_layers + shape_.decoder_layers, shape_.target_rows());
    // States are sums of products, off by a share of their size as gradients are: a normal distribution of such errors
    // has its farthest of a million at five deviations.
    const double farthest = 5 * tolerance.gradient;
    if (!(exact.farthest_state <= farthest))
      throw Error(ASSAY_WRONG_RESULT, what + ": a ReLU's state that is " + workload::number(exact.farthest_state) +
                                          " from 0 was taken to be on its other side (tolerance " +
                                          workload::number(farthest) + ")");
    return compare_paths(what, trainer_.loss_of(model_), exact.loss, differences, tolerance, trainer_.parameters(),
                         "") +
           "; ";
  }

  EncoderDecoderTrainer& trainer_;
  const EncoderDecoderConfig shape_;
  const EncoderDecoderParameters ids_;
  const std::vector<Used> used_;
  const std::vector<std::int64_t> batch_;
  const DeviceMemory memory_;
  const Tensor on_device_;
  models::EncoderDecoderModel model_;
};

std::string hold(const Host& host, EncoderDecoderTrainer& trainer, const EncoderDecoderConfig& shape,
                 double loss_scale) {
  return Step(host, trainer, shape).hold(loss_scale);
}

}  // namespace

EncoderDecoderConfig reference_shape(EncoderDecoderConfig c) {
  const EncoderDecoderConfig timed = c;
  c.batch_size = std::min(c.batch_size, most_samples);
  c.keep_logits = false;
  c.score_rows = 0;
  // Two layers of the decoder where there are: the gradient of the memory has a share of each.
  c.encoder_layers = 1;
  c.decoder_layers = std::min<std::int64_t>(timed.decoder_layers, 2);
  if (elements_of(c) > most_elements) c.decoder_layers = 1;
  if (elements_of(c) > most_elements) {
    c.encoder_layers = c.decoder_layers = 0;
    return c;
  }
  // Of a model that is wide, few layers and tokens may take longer than others; but not more memory.
  c.sequence_length = std::min(c.sequence_length, most_tokens);
  while (c.sequence_length > least_tokens && !is_affordable(c))
    c.sequence_length = std::max(least_tokens, c.sequence_length / 2);
  if (!is_affordable(c)) c.batch_size = 1;
  for (bool grows = true; grows;) {
    grows = false;
    for (std::int64_t EncoderDecoderConfig::*const layers :
         {&EncoderDecoderConfig::decoder_layers, &EncoderDecoderConfig::encoder_layers}) {
      EncoderDecoderConfig more = c;
      if (++(more.*layers) > std::min(timed.*layers, most_layers) || !is_affordable(more)) continue;
      c = more;
      grows = true;
    }
  }
  return c;
}

Verified check_encoder_decoder_against_float64(const Host& host, EncoderDecoderTrainer& trainer, double loss_scale) {
  EncoderDecoderConfig shape = reference_shape(trainer.config().model);
  if (shape.decoder_layers == 0)
    return {"not held against float64, which would take more than 1 GiB for a layer of each kind and the vocabulary; ",
            true};
  const bool drops = shape.dropout > 0;
  std::string text;
  for (const bool with_dropout : {false, true}) {
    if (with_dropout && !drops) continue;
    shape.dropout = with_dropout ? trainer.config().model.dropout : 0;
    shape.flash = trainer.config().model.flash && !has_own_masks(shape, trainer.backend().kind());
    try {
      text += hold(host, trainer, shape, loss_scale);
    } catch (const Error& e) {
      // Tiled attention of 16 bits may refuse sequences this short; then the rest of the model is held without it.
      if (e.status() != ASSAY_UNSUPPORTED || !shape.flash) throw;
      shape.flash = false;
      text += hold(host, trainer, shape, loss_scale);
    }
  }
  return {text, false};
}

}  // namespace assay::verification
