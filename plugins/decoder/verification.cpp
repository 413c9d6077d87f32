// Is what was timed the right computation? Three questions, each answered on the device that was measured:
//   after the last step: are the loss and every gradient finite;
//   from the starting weights: is the loss what random weights must give;
//   do the fused and the unfused path agree on it and on the gradients, with the other attention and with
//   recomputation, so that no kernel of the timed path vouches for itself.
#include <algorithm>
#include <assay/train/checkpoint.hpp>
#include <cmath>
#include <cstdio>

#include "workload.hpp"

namespace decoder {

using assay::DeviceMemory;
using assay::Error;
using assay::compute::DType;
using assay::compute::Tensor;
using assay::train::DecoderConfig;
using assay::train::DecoderModel;

namespace {

constexpr std::int64_t sample_elements = 4096;  // from each end of a parameter: enough to tell, small enough to keep
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

std::string number(double x, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

// Relative difference in the Euclidean norm; 0 when both are zero.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  double reference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = double(a[i]) - double(b[i]);
    squares += d * d;
    reference += double(b[i]) * double(b[i]);
  }
  return squares == 0 ? 0 : std::sqrt(squares / reference);
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
  const auto sample = [&](const Tensor& t) {
    const Tensor flat = t.view({t.elements()});
    const std::int64_t n = std::min(sample_elements, flat.elements());
    std::vector<float> values = assay::train::download_f32(*backend_, flat.slice(0, 0, n));
    const std::vector<float> end = assay::train::download_f32(*backend_, flat.slice(0, flat.elements() - n, n));
    values.insert(values.end(), end.begin(), end.end());
    out.samples.push_back(std::move(values));
  };
  const bool backward = model.config().backward;
  model.initialize(*backend_);
  if (graph) graph->launch();
  if (graph && !backward) sample(model.logits());
  if (!graph || !backward) {  // a captured forward alone has no loss
    const auto enqueue = [&] {
      model.forward(*backend_, inputs_, &labels_, valid_rows_);
      if (backward) model.backward(*backend_, inputs_, labels_, valid_rows_);
    };
    prepare(enqueue);
    enqueue();
  }
  backend_->synchronize();
  float loss = 0;
  backend_->download(&loss, model.loss());
  out.loss = static_cast<double>(loss);
  if (!backward) {
    if (!graph) sample(model.logits());
    return out;
  }
  for (std::size_t id = 0; id < parameters_.all().size(); ++id) sample(parameters_.gradient(id));
  // Most rows of the embedding's gradient are zero; this one is not.
  sample(parameters_.gradient(ids_.embeddings).slice(0, first_token_, 1));
  return out;
}

std::string Workload::check_finite() {
  if (!settings_.model.backward) return "";
  float loss = 0;
  backend_->download(&loss, model_.loss());
  if (!std::isfinite(loss)) throw Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + number(loss));
  float nonfinite = 0;
  backend_->count_nonfinite(parameters_.all_gradients(), model_.loss());
  backend_->download(&nonfinite, model_.loss());
  if (nonfinite > 0 && scaler_.active())
    return "last loss " + number(loss, "%.5g") + ", " + number(nonfinite, "%.0f") +
           " gradient elements overflowed in the last step, which the loss scale answers by skipping it; ";
  if (nonfinite > 0)
    throw Error(ASSAY_WRONG_RESULT, number(nonfinite, "%.0f") + " gradient elements of the last step are not finite");
  return "last loss " + number(loss, "%.5g") + ", all gradients finite; ";
}

// Logits of random weights are sums of d_model independent products: normal with variance d_model * 2 / (d_model +
// vocab). The expected cross-entropy against any label is then ln(vocab) + variance / 2.
std::string Workload::check_start(double loss) const {
  if (!settings_.weights_file.empty()) return "starting loss " + number(loss, "%.5g") + " (weights from a file); ";
  const auto vocab = static_cast<double>(settings_.model.vocab_size);
  const auto d = static_cast<double>(settings_.model.d_model);
  const double variance = 2 * d / (d + vocab);
  const double expected = std::log(vocab) + variance / 2;
  const double allowed = 0.05 + 5 * std::sqrt((variance + 0.01) / static_cast<double>(valid_rows_));
  const std::string text = "starting loss " + number(loss, "%.5g") + ", expected " + number(expected, "%.5g") + " +- " +
                           number(allowed, "%.2g") + " for random weights";
  if (!(std::abs(loss - expected) <= allowed)) throw Error(ASSAY_WRONG_RESULT, text);
  return text + "; ";
}

std::string Workload::compare(const Outcome& timed, const Outcome& reference) const {
  const Tolerance tolerance = tolerance_of(settings_.model.precision);
  const double loss_error = std::abs(timed.loss - reference.loss) / std::abs(reference.loss);
  double worst = 0;
  std::size_t worst_id = 0;
  for (std::size_t i = 0; i < timed.samples.size(); ++i)
    if (const double e = difference(timed.samples[i], reference.samples[i]); !(e <= worst)) worst = e, worst_id = i;
  const bool backward = settings_.model.backward;
  const std::string where = !backward                             ? "logits"
                            : worst_id < parameters_.all().size() ? parameters_.all()[worst_id].name
                                                                  : parameters_.all()[ids_.embeddings].name;
  const std::string text = std::string(settings_.model.fused ? "fused" : "unfused") + " path against the " +
                           (settings_.model.fused ? "unfused" : "fused") + " one: loss differs by " +
                           number(loss_error) + " (tolerance " + number(tolerance.loss) + "), " +
                           (backward ? "gradients" : "logits") + " by at most " + number(worst) + " (" + where +
                           "; tolerance " + number(tolerance.gradient) + ")";
  if (!(loss_error <= tolerance.loss && worst <= tolerance.gradient)) throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

std::string Workload::verify(const assay::Launch&) {
  std::string text = check_finite();
  start(verification_loss_scale);
  const Outcome timed = outcome_of(model_, graph_.get());
  text += check_start(timed.loss);

  graph_.reset();  // its addresses may be about to change
  DecoderModel reference(opposite(settings_.model), parameters_, ids_);
  reference.set_loss_scale(scaler_.tensors().scale);
  if (reference.activation_bytes() > activation_memory_.bytes()) {
    activation_memory_.reset();
    activation_memory_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, reference.activation_bytes(), "verification");
  }
  reference.bind(gradient_memory_.data(), activation_memory_.data());
  start(verification_loss_scale);
  return text + compare(timed, outcome_of(reference, nullptr));
}

}  // namespace decoder
