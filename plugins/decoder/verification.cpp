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
using assay::train::Outcome;
using assay::train::verification_loss_scale;

namespace {

constexpr std::int64_t longest_naive_context = 1024;

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

// The results of a run of `model`: by `graph`, if the timed steps replayed one, else by the operations one by one.
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

std::string Workload::verify(const assay::Launch&) {
  std::string text = model().backward ? assay::train::check_finite(trainer_, trainer_.model()) : "";
  trainer_.start(verification_loss_scale);
  const Outcome timed = outcome_of(trainer_.model(), graph_.get());
  text += check_start(timed.loss);

  graph_.reset();  // its addresses may be about to change
  DecoderModel reference(opposite(model()), trainer_.parameters(), trainer_.ids());
  trainer_.lend_memory(reference);
  trainer_.start(verification_loss_scale);
  const std::string what = std::string(model().fused ? "fused" : "unfused") + " path against the " +
                           (model().fused ? "unfused" : "fused") + " one";
  const auto& all = trainer_.parameters().all();
  return text + assay::train::compare_paths(what, timed, outcome_of(reference, nullptr),
                                            assay::train::path_tolerance(model().precision), trainer_.parameters(),
                                            model().backward ? all[trainer_.ids().embeddings].name : "logits");
}

}  // namespace decoder
