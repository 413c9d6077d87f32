#include "experts_reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include <assay/workload/text.hpp>

#include "decoder_parameters.hpp"
#include "double_products.hpp"

namespace assay::verification {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Rows of `from`, which choices of `per_token` for each row name.
Matrix gathered(const Matrix& from, const std::vector<std::size_t>& choices, std::size_t per_token) {
  Matrix rows(choices.size(), from.columns);
  for (std::size_t r = 0; r < choices.size(); ++r)
    std::copy_n(from.row(choices[r] / per_token), from.columns, rows.row(r));
  return rows;
}

void add_column_sums(const Matrix& m, double* sums) {
  for (std::size_t r = 0; r < m.rows; ++r)
    for (std::size_t j = 0; j < m.columns; ++j) sums[j] += m.row(r)[j];
}

}  // namespace

ExpertsReference::ExpertsReference(const models::DecoderConfig& config, const train::ParameterSet& set,
                                   ReferenceParameters& parameters, std::int64_t layer)
    : c_(config.experts),
      parameters_(parameters),
      layer_(static_cast<std::size_t>(layer)),
      width_(static_cast<std::size_t>(config.d_model)),
      hidden_(static_cast<std::size_t>(config.experts.d_ff)),
      micro_batches_(static_cast<std::size_t>(config.accumulation_steps)) {
  const auto find = [&](const char* name) {
    return decoder_parameter(set, "layers." + std::to_string(layer) + ".moe." + name);
  };
  router_ = find("router.weight"), w13_ = find("experts.w13.weight"), w2_ = find("experts.w2.weight");
  if (c_.biases)
    router_bias_ = find("router.bias"), w13_bias_ = find("experts.w13.bias"), w2_bias_ = find("experts.w2.bias");
  if (c_.shared_d_ff > 0)
    shared_w1_ = find("shared.w1.weight"), shared_w3_ = find("shared.w3.weight"), shared_w2_ = find("shared.w2.weight");
}

// y[r, :] += elements from `first` on
void ExpertsReference::add_vector(Matrix& y, Id id, std::size_t first) const {
  const std::vector<double> all = parameters_.vector(id);
  for (std::size_t r = 0; r < y.rows; ++r)
    for (std::size_t j = 0; j < y.columns; ++j) y.row(r)[j] += all[first + j];
}

Matrix ExpertsReference::forward(const Matrix& x, const ChosenExperts* chosen) {
  x_ = x;
  logits_ = parameters_.project(x, router_);
  if (c_.biases) add_vector(logits_, router_bias_, 0);
  scores_ = logits_;
  for (std::size_t t = 0; t < x.rows; ++t) {
    double total = 0;
    for (std::size_t e = 0; e < logits_.columns; ++e) total += std::exp(logits_.row(t)[e]);
    lse_.push_back(std::log(total));
    for (std::size_t e = 0; e < logits_.columns; ++e)
      scores_.row(t)[e] = c_.rule.score == compute::ExpertScore::softmax ? std::exp(logits_.row(t)[e]) / total
                                                                         : logistic(logits_.row(t)[e]);
  }
  choose(chosen);
  weigh();
  experts_.resize(static_cast<std::size_t>(c_.count));
  for (std::size_t c = 0; c < choice_.size(); ++c) experts_[choice_[c]].choices.push_back(c);
  Matrix y = c_.shared_d_ff > 0 ? shared_forward() : Matrix(x.rows, width_);
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    if (experts_[e].choices.empty()) continue;
    run_expert(e);
    for (std::size_t r = 0; r < experts_[e].choices.size(); ++r) {
      const std::size_t choice = experts_[e].choices[r];
      for (std::size_t j = 0; j < width_; ++j)
        y.row(choice / choices_per_token())[j] += weights_[choice] * experts_[e].output.row(r)[j];
    }
  }
  return y;
}

void ExpertsReference::choose(const ChosenExperts* chosen) {
  const std::size_t k = choices_per_token(), count = logits_.columns;
  if (!chosen) {
    for (std::size_t t = 0; t < logits_.rows; ++t) {
      std::vector<std::size_t> order(count);
      std::iota(order.begin(), order.end(), std::size_t{0});
      const double* const row = scores_.row(t);
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
      choice_.insert(choice_.end(), order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k));
    }
    return;
  }
  const std::vector<std::int32_t>& of_layer = chosen->by_layer[layer_];
  if (of_layer.size() != logits_.rows * k)
    throw Error(ASSAY_INTERNAL, "the experts of " + std::to_string(of_layer.size()) + " choices, expected " +
                                    std::to_string(logits_.rows * k));
  for (const std::int32_t e : of_layer) choice_.push_back(static_cast<std::size_t>(std::max(e, -1)));
  double squares = 0;
  for (const double logit : logits_.values) squares += logit * logit;
  const double scale = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, logits_.values.size())));
  for (std::size_t t = 0; t < logits_.rows; ++t) check_choice(t, chosen->rounding, scale);
}

void ExpertsReference::check_choice(std::size_t token, double rounding, double logit_scale) const {
  const std::size_t k = choices_per_token(), count = logits_.columns;
  const auto refuse = [&](const std::string& text) {
    throw Error(ASSAY_WRONG_RESULT, "layer " + std::to_string(layer_) + ", token " + std::to_string(token) +
                                        " of the float64 model: " + text);
  };
  std::vector<bool> is_chosen(count);
  for (std::size_t j = 0; j < k; ++j) {
    const std::size_t e = choice_[token * k + j];
    if (e >= count) refuse("it goes to an expert that there is not");
    if (is_chosen[e]) refuse("it goes to expert " + std::to_string(e) + " twice");
    is_chosen[e] = true;
  }
  const double* const logits = logits_.row(token);
  std::size_t worst = choice_[token * k];
  for (std::size_t e = 0; e < count; ++e)
    if (is_chosen[e] && logits[e] < logits[worst]) worst = e;
  for (std::size_t e = 0; e < count; ++e)
    if (!is_chosen[e] && logits[e] - logits[worst] > rounding * logit_scale)
      refuse("it goes to expert " + std::to_string(worst) + ", and not to expert " + std::to_string(e) +
             ", whose logit is larger by " + workload::number(logits[e] - logits[worst]) + "; rounding explains " +
             workload::number(rounding * logit_scale));
}

void ExpertsReference::weigh() {
  const std::size_t k = choices_per_token();
  for (std::size_t t = 0; t < scores_.rows; ++t) {
    double total = 0;
    for (std::size_t j = 0; j < k; ++j) total += scores_.row(t)[choice_[t * k + j]];
    for (std::size_t j = 0; j < k; ++j)
      weights_.push_back(double{c_.rule.factor} * scores_.row(t)[choice_[t * k + j]] /
                         (c_.rule.normalized ? total : 1));
  }
}

// Beyond a limit a number counts as the limit.
double ExpertsReference::hidden_of(double gate, double up) const {
  const double limit = double{c_.unit.limit};
  if (limit > 0) gate = std::min(gate, limit), up = std::clamp(up, -limit, limit);
  return gate * logistic(double{c_.unit.alpha} * gate) * (up + double{c_.unit.offset});
}

void ExpertsReference::run_expert(std::size_t expert) {
  Expert& e = experts_[expert];
  e.x = gathered(x_, e.choices, choices_per_token());
  e.gate = parameters_.project(e.x, w13_, 2 * hidden_ * expert, hidden_);
  e.up = parameters_.project(e.x, w13_, 2 * hidden_ * expert + hidden_, hidden_);
  if (c_.biases) {
    add_vector(e.gate, w13_bias_, 2 * hidden_ * expert);
    add_vector(e.up, w13_bias_, 2 * hidden_ * expert + hidden_);
  }
  e.hidden = Matrix(e.gate.rows, hidden_);
  for (std::size_t i = 0; i < e.hidden.values.size(); ++i)
    e.hidden.values[i] = hidden_of(e.gate.values[i], e.up.values[i]);
  e.output = parameters_.project(e.hidden, w2_, width_ * expert, width_);
  if (c_.biases) add_vector(e.output, w2_bias_, width_ * expert);
}

Matrix ExpertsReference::shared_forward() {
  shared_gate_ = parameters_.project(x_, shared_w1_);
  shared_up_ = parameters_.project(x_, shared_w3_);
  shared_hidden_ = Matrix(shared_gate_.rows, shared_gate_.columns);
  for (std::size_t i = 0; i < shared_hidden_.values.size(); ++i)
    shared_hidden_.values[i] = shared_gate_.values[i] * logistic(shared_gate_.values[i]) * shared_up_.values[i];
  return parameters_.project(shared_hidden_, shared_w2_);
}

void ExpertsReference::shared_backward(const Matrix& dy, Matrix& dx) const {
  parameters_.keep_product(shared_w2_, dy, shared_hidden_);
  const Matrix dhidden = parameters_.project_back(dy, shared_w2_);
  Matrix dgate(dhidden.rows, dhidden.columns), dup(dhidden.rows, dhidden.columns);
  for (std::size_t i = 0; i < dhidden.values.size(); ++i) {
    const double g = shared_gate_.values[i], s = logistic(g);
    dup.values[i] = dhidden.values[i] * g * s;
    dgate.values[i] = dhidden.values[i] * shared_up_.values[i] * s * (1 + g * (1 - s));
  }
  parameters_.keep_product(shared_w1_, dgate, x_);
  parameters_.keep_product(shared_w3_, dup, x_);
  add_to(dx, parameters_.project_back(dgate, shared_w1_));
  add_to(dx, parameters_.project_back(dup, shared_w3_));
}

// The gradient by the expert's rows of x; those by its weights, its gate and up, and its output before the weights.
Matrix ExpertsReference::expert_backward(std::size_t expert, const Matrix& dy, std::vector<double>& dweights,
                                         Matrix& dgate_up, Matrix& doutput) const {
  const Expert& e = experts_[expert];
  doutput = gathered(dy, e.choices, choices_per_token());
  for (std::size_t r = 0; r < doutput.rows; ++r)
    for (std::size_t j = 0; j < width_; ++j) {
      dweights[e.choices[r]] += doutput.row(r)[j] * e.output.row(r)[j];
      doutput.row(r)[j] *= weights_[e.choices[r]];
    }
  const Matrix dhidden = parameters_.project_back(doutput, w2_, width_ * expert, width_);
  Matrix dgate(dhidden.rows, hidden_), dup(dhidden.rows, hidden_);
  dgate_up = Matrix(dhidden.rows, 2 * hidden_);
  const double limit = double{c_.unit.limit}, alpha = double{c_.unit.alpha}, offset = double{c_.unit.offset};
  for (std::size_t r = 0; r < dhidden.rows; ++r)
    for (std::size_t j = 0; j < hidden_; ++j) {
      const double gate = e.gate.row(r)[j], up = e.up.row(r)[j], dh = dhidden.row(r)[j];
      const double g = limit > 0 ? std::min(gate, limit) : gate;
      const double u = (limit > 0 ? std::clamp(up, -limit, limit) : up) + offset;
      const double s = logistic(alpha * g);
      dgate.row(r)[j] = limit > 0 && gate > limit ? 0 : dh * u * s * (1 + alpha * g * (1 - s));
      dup.row(r)[j] = limit > 0 && std::abs(up) > limit ? 0 : dh * g * s;
      dgate_up.row(r)[j] = dgate.row(r)[j];
      dgate_up.row(r)[hidden_ + j] = dup.row(r)[j];
    }
  Matrix dx = parameters_.project_back(dgate, w13_, 2 * hidden_ * expert, hidden_);
  add_to(dx, parameters_.project_back(dup, w13_, 2 * hidden_ * expert + hidden_, hidden_));
  return dx;
}

Matrix ExpertsReference::logit_gradients(const std::vector<double>& dweights) const {
  const std::size_t k = choices_per_token(), count = scores_.columns;
  const std::size_t of_micro_batch = scores_.rows / micro_batches_;
  const auto tokens = static_cast<double>(of_micro_batch), batches = static_cast<double>(micro_batches_);
  std::vector<double> counts;
  Matrix dlogits(scores_.rows, count);
  for (std::size_t t = 0; t < scores_.rows; ++t) {
    if (t % of_micro_batch == 0) {
      counts.assign(count, 0);
      for (std::size_t c = t * k; c < (t + of_micro_batch) * k; ++c) ++counts[choice_[c]];
    }
    const double* const scores = scores_.row(t);
    double total = 0, along = 0;
    for (std::size_t j = 0; j < k; ++j) {
      total += scores[choice_[t * k + j]];
      along += dweights[t * k + j] * scores[choice_[t * k + j]];
    }
    double* const d = dlogits.row(t);
    for (std::size_t e = 0; e < count; ++e)
      d[e] = c_.balance_coefficient / batches * static_cast<double>(count) * counts[e] /
             (tokens * tokens * static_cast<double>(k));
    for (std::size_t j = 0; j < k; ++j)
      d[choice_[t * k + j]] +=
          double{c_.rule.factor} *
          (c_.rule.normalized ? (dweights[t * k + j] - along / total) / total : dweights[t * k + j]);
    double sum = 0;
    for (std::size_t e = 0; e < count; ++e) sum += d[e] * scores[e];
    for (std::size_t e = 0; e < count; ++e)
      d[e] = c_.rule.score == compute::ExpertScore::softmax
                 ? scores[e] * (d[e] - sum) + c_.z_coefficient / batches * 2 * lse_[t] * scores[e] / tokens
                 : d[e] * scores[e] * (1 - scores[e]);
  }
  return dlogits;
}

Matrix ExpertsReference::backward(const Matrix& dy) const {
  const std::size_t count = experts_.size(), k = choices_per_token();
  Matrix dx(dy.rows, width_);
  if (c_.shared_d_ff > 0) shared_backward(dy, dx);
  std::vector<double> dweights(choice_.size());
  std::vector<std::pair<Matrix, Matrix>> of_w13, of_w2;
  std::vector<double> of_w13_bias(count * 2 * hidden_), of_w2_bias(count * width_);
  for (std::size_t e = 0; e < count; ++e) {
    if (experts_[e].choices.empty()) {
      of_w13.emplace_back(Matrix(0, 2 * hidden_), Matrix(0, width_));
      of_w2.emplace_back(Matrix(0, width_), Matrix(0, hidden_));
      continue;
    }
    Matrix dgate_up, doutput;
    const Matrix dx_rows = expert_backward(e, dy, dweights, dgate_up, doutput);
    for (std::size_t r = 0; r < dx_rows.rows; ++r)
      for (std::size_t j = 0; j < width_; ++j) dx.row(experts_[e].choices[r] / k)[j] += dx_rows.row(r)[j];
    add_column_sums(dgate_up, &of_w13_bias[e * 2 * hidden_]);
    add_column_sums(doutput, &of_w2_bias[e * width_]);
    of_w13.emplace_back(std::move(dgate_up), experts_[e].x);
    of_w2.emplace_back(std::move(doutput), experts_[e].hidden);
  }
  parameters_.keep_products(w13_, of_w13);
  parameters_.keep_products(w2_, of_w2);
  const Matrix dlogits = logit_gradients(dweights);
  parameters_.keep_product(router_, dlogits, x_);
  add_to(dx, parameters_.project_back(dlogits, router_));
  if (!c_.biases) return dx;
  parameters_.keep(w13_bias_, of_w13_bias);
  parameters_.keep(w2_bias_, of_w2_bias);
  std::vector<double> of_router_bias(count);
  add_column_sums(dlogits, of_router_bias.data());
  parameters_.keep(router_bias_, of_router_bias);
  return dx;
}

}  // namespace assay::verification
