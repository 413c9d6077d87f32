// Is what was timed the right computation? Three questions, each answered on the device that was measured:
//   after the last step: are the loss and every gradient finite;
//   from the starting weights: is the loss what random weights must give;
//   do the fused and the unfused path agree on it and on the gradients, with the other attention and with
//   recomputation, so that no kernel of the timed path vouches for itself.
#include <cmath>

#include "workload.hpp"

namespace decoder {

using assay::Error;
using assay::compute::DType;
using assay::compute::Tensor;
using assay::train::DecoderConfig;
using assay::train::DecoderModel;
using assay::train::number;

namespace {

constexpr std::int64_t longest_naive_context = 1024;
constexpr double verification_loss_scale = 1024;  // fp16: low enough for any start to be finite

struct Tolerance {
  double loss, gradient;  // relative
};
// fp32: rounding over a few dozen layers. tf32: 10 bits of mantissa in every product; bf16: 8 bits; and the paths round
// at different places. fp16 has 10 bits, but loses small gradients.
Tolerance tolerance_of(const assay::train::PrecisionPolicy& p) {
  if (p.product_math == assay::compute::ProductMath::tf32) return {1e-3, 0.05};
  return p.activation == DType::f32 ? Tolerance{1e-5, 5e-4} : Tolerance{1e-2, 0.15};
}

// The path that shares the least with the one that was timed: the other kind of operations, the other attention where
// its score matrix is affordable, and recomputation, which also keeps its memory small.
DecoderConfig opposite(DecoderConfig c) {
  c.fused = !c.fused;
  c.flash = !c.flash || c.context_length > longest_naive_context;
  c.checkpointing = c.backward;
  c.keep_logits = false;
  return c;
}

}  // namespace

// What a run of `model` leaves: of `graph`, where the timed steps replayed one, else of the operations one by one.
Outcome Workload::outcome_of(const DecoderModel& model, assay::compute::Graph* graph) {
  Outcome out;
  assay::compute::Backend& backend = trainer_.backend();
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  const bool backward = model.config().backward;
  const auto take = [&](const Tensor& t) { out.samples.push_back(assay::train::sample(backend, t)); };
  model.initialize(backend);
  if (graph) graph->launch();
  if (graph && !backward) take(model.logits());
  if (!graph || !backward) {  // a captured forward alone has no loss
    const auto enqueue = [&] {
      model.forward(backend, trainer_.inputs(), &trainer_.labels(), trainer_.valid_rows());
      if (backward) model.backward(backend, trainer_.inputs(), trainer_.labels(), trainer_.valid_rows());
    };
    trainer_.prepare(enqueue);
    enqueue();
  }
  backend.synchronize();
  float loss = 0;
  backend.download(&loss, model.loss());
  out.loss = static_cast<double>(loss);
  if (!backward) {
    if (!graph) take(model.logits());
    return out;
  }
  out.samples = assay::train::sample_gradients(backend, parameters);
  // Most rows of the embedding's gradient are zero; this one is not.
  take(parameters.gradient(trainer_.ids().embeddings).slice(0, trainer_.first_token(), 1));
  return out;
}

std::string Workload::check_finite() {
  if (!model().backward) return "";
  const double loss = trainer_.last_loss();
  if (!std::isfinite(loss)) throw Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + number(loss));
  float nonfinite = 0;
  trainer_.backend().count_nonfinite(trainer_.parameters().all_gradients(), trainer_.model().loss());
  trainer_.backend().download(&nonfinite, trainer_.model().loss());
  if (nonfinite > 0 && trainer_.scaler().active())
    return "last loss " + number(loss, "%.5g") + ", " + number(nonfinite, "%.0f") +
           " gradient elements overflowed in the last step, which the loss scale answers by skipping it; ";
  if (nonfinite > 0)
    throw Error(ASSAY_WRONG_RESULT, number(nonfinite, "%.0f") + " gradient elements of the last step are not finite");
  return "last loss " + number(loss, "%.5g") + ", all gradients finite; ";
}

// Logits of random weights are sums of d_model independent products: normal with variance d_model * 2 / (d_model +
// vocab). The expected cross-entropy against any label is then ln(vocab) + variance / 2.
std::string Workload::check_start(double loss) const {
  if (!settings_.trainer.weights_file.empty())
    return "starting loss " + number(loss, "%.5g") + " (weights from a file); ";
  const auto vocab = static_cast<double>(model().vocab_size);
  const auto d = static_cast<double>(model().d_model);
  const double variance = 2 * d / (d + vocab);
  const double expected = std::log(vocab) + variance / 2;
  const double allowed = 0.05 + 5 * std::sqrt((variance + 0.01) / static_cast<double>(trainer_.valid_rows()));
  const std::string text = "starting loss " + number(loss, "%.5g") + ", expected " + number(expected, "%.5g") + " +- " +
                           number(allowed, "%.2g") + " for random weights";
  if (!(std::abs(loss - expected) <= allowed)) throw Error(ASSAY_WRONG_RESULT, text);
  return text + "; ";
}

std::string Workload::compare(const Outcome& timed, const Outcome& reference) const {
  const Tolerance tolerance = tolerance_of(model().precision);
  const double loss_error = std::abs(timed.loss - reference.loss) / std::abs(reference.loss);
  double worst = 0;
  std::size_t worst_id = 0;
  for (std::size_t i = 0; i < timed.samples.size(); ++i)
    if (const double e = assay::train::relative_difference(timed.samples[i], reference.samples[i]); !(e <= worst))
      worst = e, worst_id = i;
  const bool backward = model().backward;
  const auto& all = trainer_.parameters().all();
  const std::string where = !backward               ? "logits"
                            : worst_id < all.size() ? all[worst_id].name
                                                    : all[trainer_.ids().embeddings].name;
  const std::string text = std::string(model().fused ? "fused" : "unfused") + " path against the " +
                           (model().fused ? "unfused" : "fused") + " one: loss differs by " + number(loss_error) +
                           " (tolerance " + number(tolerance.loss) + "), " + (backward ? "gradients" : "logits") +
                           " by at most " + number(worst) + " (" + where + "; tolerance " + number(tolerance.gradient) +
                           ")";
  if (!(loss_error <= tolerance.loss && worst <= tolerance.gradient)) throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

std::string Workload::verify(const assay::Launch&) {
  std::string text = check_finite();
  trainer_.start(verification_loss_scale);
  const Outcome timed = outcome_of(trainer_.model(), graph_.get());
  text += check_start(timed.loss);

  graph_.reset();  // its addresses may be about to change
  DecoderModel reference(opposite(model()), trainer_.parameters(), trainer_.ids());
  trainer_.lend_memory(reference);
  trainer_.start(verification_loss_scale);
  return text + compare(timed, outcome_of(reference, nullptr));
}

}  // namespace decoder
