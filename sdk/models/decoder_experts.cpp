// The decoder's feed-forward where it is a mixture of experts (experts.hpp): its buffers, forward and backward.
//
// Fused, a token's weight is a factor of its hidden states, so that the product behind them has it already and the sum
// over a token's experts is a mere sum. A bias of that product is weighted, too: then, and where operations are one by
// one, the weight is a factor of the product's rows. op::WeightedGatedForward does that as well: of a gate of twos and
// alpha 0 the gated unit is 2 sigmoid(0) u = u.
#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using compute::Tensor;

namespace {

// Backward reads neither matrix of the experts once it makes the gradient.
compute::WeightUpdate update_of(train::GradientListener* listener, train::ParameterSet::Id id) {
  return listener ? listener->update_of(id) : compute::WeightUpdate();
}

constexpr compute::GatedUnit up_alone{.alpha = 0.0F, .limit = 0.0F, .offset = 0.0F};

struct Halves {
  Tensor gate, up;
};
Halves halves_of(const Tensor& packed) {
  const std::int64_t width = packed.dim(1) / 2;
  return {packed.slice(1, 0, width), packed.slice(1, width, width)};
}

}  // namespace

void DecoderModel::plan_experts() {
  using Use = train::BufferPlan::Use;
  const ExpertsConfig& e = config_.experts;
  const std::int64_t rows = expert_rows();
  ones_ = plan_.add("moe.ones", DType::f32, {rows}, Use::outlives_steps);
  twos_ = plan_.add("moe.twos", config_.precision.activation, {rows, config_.d_model}, Use::outlives_steps);
  expert_bias_ = plan_.add("moe.expert_bias", DType::f32, {e.count}, Use::outlives_steps);
  routing_losses_ = plan_.add("moe.losses", DType::f32, {config_.expert_layers(), 2}, Use::result);
}

void DecoderModel::plan_routing(std::int64_t layer, const std::string& layer_name) {
  routing_.emplace_back();
  if (!config_.has_experts(layer)) return;
  using Use = train::BufferPlan::Use;
  const ExpertsConfig& e = config_.experts;
  const std::int64_t n = config_.rows(), k = e.per_token;
  const std::string name = layer_name + "moe.";
  RoutingBuffers& r = routing_.back();
  // With a bias of the activations' format, which a product's result then has.
  r.logits = plan_.add(name + "logits", e.biases ? config_.precision.activation : DType::f32, {n, e.count});
  r.scores = plan_.add(name + "scores", DType::f32, {n, e.count});
  r.lse = plan_.add(name + "lse", DType::f32, {n});
  // Those of earlier micro-batches stay until the step's end.
  r.experts = plan_.add(name + "experts", DType::i32, {config_.step_rows(), k},
                        config_.accumulation_steps > 1 ? Use::outlives_steps : Use::result);
  r.weights = plan_.add(name + "weights", DType::f32, {n, k});
  r.counts = plan_.add(name + "counts", DType::i32, {e.count}, Use::result);
  r.offsets = plan_.add(name + "offsets", DType::i32, {e.count + 1});
  r.places = plan_.add(name + "places", DType::i32, {n, k});
  r.sources = plan_.add(name + "sources", DType::i32, {n * k});
  if (!shares_experts()) return;
  const ExpertTravelShape shape{.tokens = n,
                                .choices = k,
                                .experts = e.count,
                                .ranks = e.ranks,
                                .width = config_.d_model,
                                .capacity = expert_rows(),
                                .dtype = config_.precision.activation};
  travels_.emplace_back(shape, travels_.size(), plan_, name + "travel.");
}

ExpertForward DecoderModel::plan_expert_forward(const std::string& name) {
  const ExpertsConfig& e = config_.experts;
  const std::int64_t n = config_.rows(), rows = expert_rows(), d = config_.d_model;
  const auto add = [&](const char* what, std::int64_t count, std::int64_t columns) {
    return plan_.add(name + what, config_.precision.activation, {count, columns});
  };
  ExpertForward f;
  f.rows = add("rows", rows, d);
  f.gate_up = add("gate_up", rows, 2 * e.d_ff);
  f.hidden = add("hidden", rows, e.d_ff);
  f.outputs = add("outputs", rows, d);
  f.weighted = add("weighted", rows, d);
  if (e.shared_d_ff == 0) return f;
  f.shared_gate_up = add("shared.gate_up", n, 2 * e.shared_d_ff);
  f.shared_hidden = add("shared.hidden", n, e.shared_d_ff);
  f.shared_branch = add("shared.branch", n, d);
  return f;
}

ExpertBackward DecoderModel::plan_expert_backward(const std::string& name) {
  const ExpertsConfig& e = config_.experts;
  const std::int64_t n = config_.rows(), rows = expert_rows(), d = config_.d_model;
  const DType act = config_.precision.activation;
  const auto add = [&](const char* what, DType type, std::int64_t count, std::int64_t columns) {
    return plan_.add(name + what, type, {count, columns});
  };
  ExpertBackward g;
  g.doutputs = add("doutputs", act, rows, d);
  g.dgate = add("dgate", act, rows, d);
  g.hidden = add("hidden", act, rows, e.d_ff);
  g.dhidden = add("dhidden", act, rows, e.d_ff);
  g.rows = add("rows", act, rows, d);
  g.drows = add("drows", act, rows, d);
  g.dweights = add("dweights", DType::f32, n, e.per_token);
  g.unused_dweights = plan_.add(name + "dweights.unused", DType::f32, {rows});
  g.row_dweights = plan_.add(name + "dweights.by_row", DType::f32, {rows});
  g.dlogits = add("dlogits", act, n, e.count);
  g.drouted = add("drouted", act, n, d);
  if (e.shared_d_ff == 0) return g;
  g.shared_hidden = add("shared.hidden", act, n, e.shared_d_ff);
  g.shared_dhidden = add("shared.dhidden", act, n, e.shared_d_ff);
  return g;
}

// Those that the step does not use have no memory.
void DecoderModel::initialize_experts(Backend& b) const {
  if (!config_.experts.any()) return;
  if (plan_[ones_]) b.run(op::Fill{.x = plan_[ones_], .value = 1.0});
  if (plan_[twos_]) b.run(op::Fill{.x = plan_[twos_], .value = 2.0});
  if (plan_[expert_bias_]) b.run(op::Fill{.x = plan_[expert_bias_], .value = 0.0});
}

// ---- rows ----------------------------------------------------------------------------------------------------------

std::int64_t DecoderModel::expert_rows() const {
  const ExpertsConfig& e = config_.experts;
  if (!e.is_over_ranks()) return config_.rows() * e.per_token;
  return expert_capacity(config_.rows(), e.per_token, e.ranks, e.capacity_factor);
}

ExpertTravel::Step DecoderModel::travelling(Backend& b) const {
  static train::RecordedExpertExchange recorded;
  if (is_planning_) return {b, plan_, recorded};
  if (!expert_ranks_) throw Error(ASSAY_INTERNAL, "experts are shared over ranks, and the model does not know these");
  return {b, plan_, *expert_ranks_};
}

TokensByExpert DecoderModel::tokens_by_expert(std::int64_t layer) const {
  const RoutingBuffers& r = routing_[index_of(layer)];
  return {.counts = plan_[r.counts], .places = plan_[r.places], .sources = plan_[r.sources]};
}

Tensor DecoderModel::row_offsets(std::int64_t layer) const {
  return shares_experts() ? travel_of(layer).offsets(plan_) : plan_[routing_[index_of(layer)].offsets];
}
Tensor DecoderModel::row_sources(std::int64_t layer) const {
  return shares_experts() ? travel_of(layer).sources(plan_) : plan_[routing_[index_of(layer)].sources];
}
Tensor DecoderModel::row_dweights(const ExpertBackward& e) const {
  return shares_experts() ? plan_[e.row_dweights] : plan_[e.dweights].flat();
}
Tensor DecoderModel::row_weights(std::int64_t layer) const {
  return shares_experts() ? travel_of(layer).weights(plan_) : plan_[routing_[index_of(layer)].weights].flat();
}

void DecoderModel::send_to_experts(Backend& b, std::int64_t layer, const Tensor& x, const Tensor& rows) const {
  const RoutingBuffers& r = routing_[index_of(layer)];
  if (!shares_experts())
    return b.run(
        op::GatherRows{.x = x, .sources = plan_[r.sources], .rows = rows, .copies = config_.experts.per_token});
  const ExpertTravel& travel = travel_of(layer);
  const ExpertTravel::Step step = travelling(b);
  travel.finish_to_experts(step, travel.start_to_experts(step, x, plan_[r.weights], tokens_by_expert(layer)), rows);
}

void DecoderModel::bring_back(Backend& b, std::int64_t layer, const Tensor& rows, const Tensor& residual,
                              const Tensor& y) const {
  if (!shares_experts())
    return b.run(
        op::CombineRows{.rows = rows, .places = plan_[routing_[index_of(layer)].places], .residual = residual, .y = y});
  const ExpertTravel& travel = travel_of(layer);
  const ExpertTravel::Step step = travelling(b);
  travel.finish_to_tokens(step, travel.start_to_tokens(step, rows), tokens_by_expert(layer), residual, y);
}

void DecoderModel::send_gradient_to_experts(Backend& b, std::int64_t layer, const Tensor& dy,
                                            const Tensor& rows) const {
  if (!shares_experts()) return send_to_experts(b, layer, dy, rows);
  const ExpertTravel& travel = travel_of(layer);
  const ExpertTravel::Step step = travelling(b);
  travel.finish_gradient_to_experts(step, travel.start_gradient_to_experts(step, dy, tokens_by_expert(layer)), rows);
}

ExpertTravel::Tickets DecoderModel::start_bringing_gradient_back(Backend& b, std::int64_t layer,
                                                                 const ExpertBackward& e) const {
  if (!shares_experts()) return {};
  const ExpertTravel& travel = travel_of(layer);
  const ExpertTravel::Step step = travelling(b);
  const ExpertTravel::Tickets tickets = travel.start_gradient_to_tokens(step, plan_[e.drows], plan_[e.row_dweights]);
  travel.finish_weight_gradient(step, tickets, tokens_by_expert(layer), plan_[e.row_dweights], plan_[e.dweights]);
  return tickets;
}

void DecoderModel::bring_gradient_back(Backend& b, std::int64_t layer, const ExpertTravel::Tickets& tickets,
                                       const ExpertBackward& e, const Tensor& residual, const Tensor& dx) const {
  if (!shares_experts()) return bring_back(b, layer, plan_[e.drows], residual, dx);
  travel_of(layer).finish_gradient_to_tokens(travelling(b), tickets, tokens_by_expert(layer), residual, dx);
}

// ---- the layer -----------------------------------------------------------------------------------------------------

Tensor DecoderModel::chosen_experts(std::int64_t layer, std::int64_t micro_batch) const {
  return experts_of(layer).slice(0, micro_batch * config_.rows(), config_.rows());
}

void DecoderModel::route(Backend& b, std::int64_t layer, const Forward& f, std::int64_t micro_batch) const {
  const ExpertParameters& p = ids_.layers[index_of(layer)].experts;
  const ExpertsConfig& e = config_.experts;
  const RoutingBuffers& r = routing_[index_of(layer)];
  const bool is_given = !given_experts_.empty();
  if (!is_given && !is_planning_ && e.routing != Routing::learned)
    throw Error(ASSAY_INTERNAL, "the experts of each token were to be drawn, and the model has not been given them");
  const Tensor experts = chosen_experts(layer, micro_batch);
  b.run(op::Matmul{.a = plan_[f.normed2],
                   .b = set_.compute(p.router),
                   .c = plan_[r.logits],
                   .transpose_b = true,
                   .bias = e.biases ? set_.compute(p.router_bias) : Tensor()});
  b.run(op::RouteForward{
      .logits = plan_[r.logits],
      .bias = e.choice_bias ? plan_[expert_bias_] : Tensor(),
      .given =
          is_given ? given_experts_[index_of(layer)].slice(0, micro_batch * config_.rows(), config_.rows()) : Tensor(),
      .scores = plan_[r.scores],
      .lse = plan_[r.lse],
      .experts = experts,
      .weights = plan_[r.weights],
      .rule = e.rule});
  b.run(op::GroupRows{.experts = experts,
                      .counts = plan_[r.counts],
                      .offsets = plan_[r.offsets],
                      .places = plan_[r.places],
                      .sources = plan_[r.sources]});
  b.run(op::RoutingLosses{
      .scores = plan_[r.scores],
      .lse = plan_[r.lse],
      .counts = plan_[r.counts],
      .losses = plan_[routing_losses_].slice(0, layer - config_.experts.first_dense_layers, 1).view({2})});
}

// From normed2 to gate and up, and, where backward needs them, to the experts' outputs.
void DecoderModel::experts_body(Backend& b, std::int64_t layer, const Forward& f) const {
  const ExpertParameters& p = ids_.layers[index_of(layer)].experts;
  send_to_experts(b, layer, plan_[f.normed2], plan_[f.experts.rows]);
  b.run(op::GroupedMatmul{.a = plan_[f.experts.rows],
                          .b = set_.compute(p.w13),
                          .offsets = row_offsets(layer),
                          .c = plan_[f.experts.gate_up],
                          .transpose_b = true,
                          .bias = config_.experts.biases ? set_.compute(p.w13_bias) : Tensor()});
  if (!weighs_hidden()) make_expert_outputs(b, layer, f);
  if (config_.experts.shared_d_ff == 0) return;
  const auto [gate, up] = halves_of(plan_[f.experts.shared_gate_up]);
  if (config_.fused)
    return b.run(op::Matmul{.a = plan_[f.normed2],
                            .b = set_.compute(p.shared_w1, 2),
                            .c = plan_[f.experts.shared_gate_up],
                            .transpose_b = true});
  b.run(op::Matmul{.a = plan_[f.normed2], .b = set_.compute(p.shared_w1), .c = gate, .transpose_b = true});
  b.run(op::Matmul{.a = plan_[f.normed2], .b = set_.compute(p.shared_w3), .c = up, .transpose_b = true});
}

void DecoderModel::make_expert_outputs(Backend& b, std::int64_t layer, const Forward& f) const {
  const ExpertParameters& p = ids_.layers[index_of(layer)].experts;
  const auto [gate, up] = halves_of(plan_[f.experts.gate_up]);
  b.run(op::WeightedGatedForward{.gate = gate,
                                 .up = up,
                                 .weights = weighs_hidden() ? row_weights(layer) : plan_[ones_],
                                 .sources = row_sources(layer),
                                 .h = plan_[f.experts.hidden],
                                 .unit = config_.experts.unit});
  b.run(op::GroupedMatmul{.a = plan_[f.experts.hidden],
                          .b = set_.compute(p.w2),
                          .offsets = row_offsets(layer),
                          .c = plan_[f.experts.outputs],
                          .transpose_b = true,
                          .bias = config_.experts.biases ? set_.compute(p.w2_bias) : Tensor()});
}

void DecoderModel::experts_end(Backend& b, std::int64_t layer, const Forward& f, Id next) const {
  const ExpertParameters& p = ids_.layers[index_of(layer)].experts;
  Tensor rows = plan_[f.experts.outputs];
  if (weighs_hidden()) {
    make_expert_outputs(b, layer, f);
  } else {
    rows = plan_[f.experts.weighted];
    b.run(op::WeightedGatedForward{.gate = plan_[twos_],
                                   .up = plan_[f.experts.outputs],
                                   .weights = row_weights(layer),
                                   .sources = row_sources(layer),
                                   .h = rows,
                                   .unit = up_alone});
  }
  const bool has_shared = config_.experts.shared_d_ff > 0;
  if (config_.fused) {
    bring_back(b, layer, rows, plan_[f.middle], plan_[next]);
    if (has_shared) shared_expert(b, p, f, plan_[next]);
    return;
  }
  bring_back(b, layer, rows, {}, plan_[f.branch2]);
  if (has_shared) shared_expert(b, p, f, plan_[f.branch2]);
  b.run(op::Add{.a = plan_[f.branch2], .b = plan_[f.middle], .out = plan_[next]});
}

// Adds to `sum`.
void DecoderModel::shared_expert(Backend& b, const ExpertParameters& p, const Forward& f, const Tensor& sum) const {
  const auto [gate, up] = halves_of(plan_[f.experts.shared_gate_up]);
  const Tensor& hidden = plan_[f.experts.shared_hidden];
  b.run(op::SwigluForward{.gate = gate, .up = up, .h = hidden});
  if (config_.fused)
    return b.run(
        op::Matmul{.a = hidden, .b = set_.compute(p.shared_w2), .c = sum, .transpose_b = true, .accumulate = true});
  const Tensor& branch = plan_[f.experts.shared_branch];
  b.run(op::Matmul{.a = hidden, .b = set_.compute(p.shared_w2), .c = branch, .transpose_b = true});
  b.run(op::Add{.a = sum, .b = branch, .out = sum});
}

void DecoderModel::expert_products_backward(Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                                            train::GradientListener* listener) const {
  const ExpertParameters& p = ids_.layers[index_of(layer)].experts;
  const ExpertBackward& e = g.experts;
  const auto [gate, up] = halves_of(plan_[f.experts.gate_up]);
  Tensor doutputs = plan_[e.doutputs];
  send_gradient_to_experts(b, layer, plan_[dx_], doutputs);
  if (!weighs_hidden()) {  // the outputs become their gradient
    b.run(op::WeightedGatedBackward{.gate = plan_[twos_],
                                    .up = plan_[f.experts.outputs],
                                    .dh = doutputs,
                                    .weights = row_weights(layer),
                                    .sources = row_sources(layer),
                                    .dgate = plan_[e.dgate],
                                    .dup = plan_[f.experts.outputs],
                                    .dweights = row_dweights(e),
                                    .unit = up_alone});
    doutputs = plan_[f.experts.outputs];
  }
  b.run(
      op::GroupedMatmul{.a = doutputs, .b = set_.compute(p.w2), .offsets = row_offsets(layer), .c = plan_[e.dhidden]});
  b.run(op::WeightedGatedBackward{.gate = gate,
                                  .up = up,
                                  .dh = plan_[e.dhidden],
                                  .weights = weighs_hidden() ? row_weights(layer) : plan_[ones_],
                                  .sources = row_sources(layer),
                                  .dgate = gate,
                                  .dup = up,
                                  .dweights = weighs_hidden() ? row_dweights(e) : plan_[e.unused_dweights],
                                  .h = made_again(e.hidden),
                                  .unit = config_.experts.unit});
  b.run(op::GroupedWeightGradient{.dy = doutputs,
                                  .x = plan_[keeps_outputs() ? f.experts.hidden : e.hidden],
                                  .offsets = row_offsets(layer),
                                  .dw = set_.gradient(p.w2),
                                  .dbias = config_.experts.biases ? set_.gradient(p.w2_bias) : Tensor(),
                                  .update = update_of(listener, p.w2)});
}

void DecoderModel::experts_backward(Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                                    std::int64_t micro_batch, train::GradientListener* listener) const {
  const DecoderLayerParameters& of_layer = ids_.layers[index_of(layer)];
  const ExpertParameters& p = of_layer.experts;
  const RoutingBuffers& r = routing_[index_of(layer)];
  const ExpertsConfig& c = config_.experts;
  const ExpertBackward& e = g.experts;
  // Of ranks that share the experts each has its term of the mean loss.
  const auto batches = static_cast<double>(config_.accumulation_steps * c.ranks);
  expert_products_backward(b, layer, f, g, listener);
  tell(listener, (c.biases ? p.w2_bias : p.w2) + 1);
  b.run(op::GroupedMatmul{
      .a = plan_[f.experts.gate_up], .b = set_.compute(p.w13), .offsets = row_offsets(layer), .c = plan_[e.drows]});
  const ExpertTravel::Tickets bringing = start_bringing_gradient_back(b, layer, e);
  b.run(op::RouteBackward{.scores = plan_[r.scores],
                          .lse = plan_[r.lse],
                          .experts = chosen_experts(layer, micro_batch),
                          .counts = plan_[r.counts],
                          .dweights = plan_[e.dweights],
                          .dlogits = plan_[e.dlogits],
                          .rule = c.rule,
                          .balance = static_cast<float>(c.balance_coefficient / batches),
                          .z = static_cast<float>(c.z_coefficient / batches),
                          .scale = loss_scale_});
  const Tensor &dlogits = plan_[e.dlogits], &dnormed = plan_[g.dnormed2];
  if (config_.fused) {
    b.run(op::Matmul{.a = dlogits, .b = set_.compute(p.router), .c = plan_[e.drouted]});
    bring_gradient_back(b, layer, bringing, e, plan_[e.drouted], dnormed);
  } else {
    bring_gradient_back(b, layer, bringing, e, {}, dnormed);
    b.run(op::Matmul{.a = dlogits, .b = set_.compute(p.router), .c = dnormed, .accumulate = true});
  }
  if (c.shared_d_ff > 0) shared_expert_backward(b, p, f, g);
  if (!config_.fused)
    b.run(op::RmsNormForward{.x = plan_[f.middle],
                             .weight = set_.value(of_layer.ln2),
                             .y = plan_[g.normed2],
                             .rstd = plan_[f.rstd2],
                             .eps = norm_eps()});
  norm_backward(b, of_layer.ln2, dnormed, plan_[f.middle], plan_[f.rstd2], plan_[dx_], plan_[dx_middle_],
                config_.fused ? made_again(g.normed2) : Tensor());
  const Tensor& normed = plan_[keeps_outputs() ? f.normed2 : g.normed2];
  if (!keeps_rows()) send_to_experts(b, layer, normed, plan_[e.rows]);
  b.run(op::GroupedWeightGradient{.dy = plan_[f.experts.gate_up],
                                  .x = plan_[keeps_rows() ? f.experts.rows : e.rows],
                                  .offsets = row_offsets(layer),
                                  .dw = set_.gradient(p.w13),
                                  .dbias = c.biases ? set_.gradient(p.w13_bias) : Tensor(),
                                  .update = update_of(listener, p.w13)});
  weight_gradient(b, dlogits, normed, p.router);
  if (c.biases) b.run(op::BiasBackward{.dy = dlogits, .dbias = set_.gradient(p.router_bias)});
  if (c.shared_d_ff > 0) weight_gradient(b, plan_[f.experts.shared_gate_up], normed, p.shared_w1, 2);
  tell(listener, of_layer.ln2 + 1);
}

// Adds to the gradient by normed2; that by w1 and w3 waits for normed2.
void DecoderModel::shared_expert_backward(Backend& b, const ExpertParameters& p, const Forward& f,
                                          const Backward& g) const {
  const auto [gate, up] = halves_of(plan_[f.experts.shared_gate_up]);
  b.run(op::Matmul{.a = plan_[dx_], .b = set_.compute(p.shared_w2), .c = plan_[g.experts.shared_dhidden]});
  b.run(op::SwigluBackward{.gate = gate,
                           .up = up,
                           .dh = plan_[g.experts.shared_dhidden],
                           .dgate = gate,
                           .dup = up,
                           .h = plan_[g.experts.shared_hidden]});
  weight_gradient(b, plan_[dx_], plan_[g.experts.shared_hidden], p.shared_w2);
  b.run(op::Matmul{.a = plan_[f.experts.shared_gate_up],
                   .b = set_.compute(p.shared_w1, 2),
                   .c = plan_[g.dnormed2],
                   .accumulate = true});
}

}  // namespace assay::models
