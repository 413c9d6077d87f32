#include "assay/models/expert_travel.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace assay::models {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

void ExpertTravelShape::validate() const {
  if (ranks < 1 || experts % ranks != 0)
    throw Error(ASSAY_INVALID_ARGUMENT, "experts " + std::to_string(experts) + " is not a multiple of the " +
                                            std::to_string(ranks) + " ranks that share them");
}

std::int64_t expert_capacity(std::int64_t tokens, std::int64_t choices, std::int64_t ranks, double factor) {
  if (!(factor >= 1))
    throw Error(ASSAY_INVALID_ARGUMENT,
                "capacity_factor " + std::to_string(factor) + " is below 1: balanced routing would not have room");
  const auto rows = static_cast<double>(tokens * choices);
  return static_cast<std::int64_t>(std::min(std::ceil(rows * factor), rows * static_cast<double>(ranks)));
}

ExpertTravel::ExpertTravel(const ExpertTravelShape& shape, std::size_t layer, train::BufferPlan& plan,
                           const std::string& name)
    : shape_(shape), layer_(layer) {
  shape_.validate();
  const std::int64_t n = shape_.rows(), c = shape_.capacity, d = shape_.width, own = shape_.own_experts();
  const auto rows = [&](const char* way) {
    return Rows{plan.add(name + way + ".by_token", shape_.dtype, {n, d}),
                plan.add(name + way + ".by_expert", shape_.dtype, {c, d})};
  };
  all_counts_ = plan.add(name + "all_counts", DType::i32, {shape_.ranks, shape_.experts});
  experts_ = plan.add(name + "experts", DType::i32, {c, 1});
  counts_ = plan.add(name + "counts", DType::i32, {own});
  offsets_ = plan.add(name + "offsets", DType::i32, {own + 1});
  places_ = plan.add(name + "places", DType::i32, {c, 1});
  sources_ = plan.add(name + "sources", DType::i32, {c});
  weights_ = plan.add(name + "weights", DType::f32, {c});
  there_ = rows("to_experts"), back_ = rows("to_tokens");
  gradient_there_ = rows("gradient.to_experts"), gradient_back_ = rows("gradient.to_tokens");
  sent_weights_ = plan.add(name + "weights.by_token", DType::f32, {n});
  returned_weights_ = plan.add(name + "gradient.weights.by_token", DType::f32, {n});
}

// From the order in which rows came to that of this rank's experts. Rows of 0 follow, as many as a tile of a product
// may look at beyond the last group.
void ExpertTravel::group(const Step& step, const Tensor& received, const Tensor& rows) const {
  constexpr std::int64_t tile = 256;
  const std::int64_t written = std::min(shape_.capacity, step.ranks.received_rows(layer_, shape_.capacity) + tile);
  step.backend.run(op::GatherRows{
      .x = received, .sources = step.plan[sources_].slice(0, 0, written), .rows = rows.slice(0, 0, written)});
}

// And back: the row of each one that came.
Tensor ExpertTravel::ungrouped(const Step& step, const Tensor& rows, Id into) const {
  const std::int64_t came = step.ranks.received_rows(layer_, shape_.capacity);
  if (came > 0)
    step.backend.run(op::GatherRows{
        .x = rows, .sources = step.plan[places_].flat().slice(0, 0, came), .rows = step.plan[into].slice(0, 0, came)});
  return step.plan[into];
}

// ---- forward -------------------------------------------------------------------------------------------------------

ExpertTravel::Ticket ExpertTravel::start_to_experts(const Step& step, const Tensor& x, const Tensor& weights,
                                                    const TokensByExpert& tokens) const {
  auto& [b, plan, ranks] = step;
  const Tensor sent = plan[there_.tokens], sent_weights = plan[sent_weights_];
  const Ticket telling = ranks.tell_counts(b, tokens.counts, plan[all_counts_]);
  // Rows are made while the counts travel, and the host waits for both.
  b.run(op::GatherRows{.x = x, .sources = tokens.sources, .rows = sent, .copies = shape_.choices});
  b.run(op::GatherRows{
      .x = weights.view({shape_.rows(), 1}), .sources = tokens.sources, .rows = sent_weights.view({shape_.rows(), 1})});
  ranks.wait(b, telling, {tokens.counts, plan[all_counts_]});
  ranks.agree(b, layer_, plan[all_counts_], plan[experts_]);
  (void)ranks.to_experts(b, layer_, sent_weights, plan[weights_]);
  return ranks.to_experts(b, layer_, sent, plan[there_.experts]);
}

void ExpertTravel::finish_to_experts(const Step& step, Ticket ticket, const Tensor& rows) const {
  auto& [b, plan, ranks] = step;
  b.run(op::GroupRows{.experts = plan[experts_],
                      .counts = plan[counts_],
                      .offsets = plan[offsets_],
                      .places = plan[places_],
                      .sources = plan[sources_]});
  ranks.wait(b, ticket, {plan[sent_weights_], plan[weights_], plan[there_.tokens], plan[there_.experts]});
  group(step, plan[there_.experts], rows);
}

ExpertTravel::Ticket ExpertTravel::start_to_tokens(const Step& step, const Tensor& rows) const {
  const Tensor received = ungrouped(step, rows, back_.experts);
  return step.ranks.to_tokens(step.backend, layer_, received, step.plan[back_.tokens]);
}

void ExpertTravel::finish_to_tokens(const Step& step, Ticket ticket, const TokensByExpert& tokens,
                                    const Tensor& residual, const Tensor& y) const {
  auto& [b, plan, ranks] = step;
  ranks.wait(b, ticket, {plan[back_.experts], plan[back_.tokens]});
  b.run(op::CombineRows{.rows = plan[back_.tokens], .places = tokens.places, .residual = residual, .y = y});
}

// ---- backward ------------------------------------------------------------------------------------------------------

ExpertTravel::Ticket ExpertTravel::start_gradient_to_experts(const Step& step, const Tensor& dy,
                                                             const TokensByExpert& tokens) const {
  auto& [b, plan, ranks] = step;
  const Tensor sent = plan[gradient_there_.tokens];
  b.run(op::GatherRows{.x = dy, .sources = tokens.sources, .rows = sent, .copies = shape_.choices});
  return ranks.to_experts(b, layer_, sent, plan[gradient_there_.experts]);
}

void ExpertTravel::finish_gradient_to_experts(const Step& step, Ticket ticket, const Tensor& drows) const {
  auto& [b, plan, ranks] = step;
  ranks.wait(b, ticket, {plan[gradient_there_.tokens], plan[gradient_there_.experts]});
  group(step, plan[gradient_there_.experts], drows);
}

ExpertTravel::Tickets ExpertTravel::start_gradient_to_tokens(const Step& step, const Tensor& drows,
                                                             const Tensor& dweights) const {
  auto& [b, plan, ranks] = step;
  const Ticket weights = ranks.to_tokens(b, layer_, dweights, plan[returned_weights_]);
  const Tensor received = ungrouped(step, drows, gradient_back_.experts);
  return {weights, ranks.to_tokens(b, layer_, received, plan[gradient_back_.tokens])};
}

// A choice's place among the rows is where its weight's gradient is.
void ExpertTravel::finish_weight_gradient(const Step& step, const Tickets& tickets, const TokensByExpert& tokens,
                                          const Tensor& dweights, const Tensor& token_dweights) const {
  auto& [b, plan, ranks] = step;
  const Tensor returned = plan[returned_weights_];
  ranks.wait(b, tickets.weights, {dweights, returned});
  b.run(op::GatherRows{.x = returned.view({shape_.rows(), 1}),
                       .sources = tokens.places.flat(),
                       .rows = token_dweights.view({shape_.rows(), 1})});
}

void ExpertTravel::finish_gradient_to_tokens(const Step& step, const Tickets& tickets, const TokensByExpert& tokens,
                                             const Tensor& residual, const Tensor& dx) const {
  auto& [b, plan, ranks] = step;
  const Tensor returned = plan[gradient_back_.tokens];
  ranks.wait(b, tickets.rows, {plan[gradient_back_.experts], returned});
  b.run(op::CombineRows{.rows = returned, .places = tokens.places, .residual = residual, .y = dx});
}

}  // namespace assay::models
