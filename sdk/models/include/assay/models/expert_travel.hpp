// The way of a layer's tokens to experts that other ranks have, and back, forward and backward:
//
//   to the experts  counts to all ranks; rows gathered by expert; rows and weights sent; grouped by the experts here
//   to the tokens   results put into the order in which they came; sent back; added up by token
//
// Experts see rows as they would without ranks: grouped by expert, a group's rows in the order of rank and token, with
// offsets, and the token's weight where op::WeightedGatedForward looks for it. So weights travel, 4 bytes a row. A
// weight behind the experts would have no operation, and its gradient would need the experts' outputs in the backward,
// which nobody keeps. Only `capacity` rows of what is received have memory. Rows beyond those that came are -1 in
// `sources`, and after the first 256 are not touched.
//
// Each way has a start and a finish, between which other work may be enqueued and then runs beside the transfer. The
// host waits for the counts only within start_to_experts(), behind the gathering of the rows.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/buffer_plan.hpp>
#include <assay/train/expert_exchange.hpp>
#include <cstdint>
#include <string>

namespace assay::models {

struct ExpertTravelShape {
  std::int64_t tokens = 0, choices = 1;  // N tokens of this rank, with k experts each
  std::int64_t experts = 0, ranks = 1;   // E; each of R ranks has E / R
  std::int64_t width = 0;                // of a token
  std::int64_t capacity = 0;             // C, rows that this rank can receive
  compute::DType dtype = compute::DType::f32;
  std::int64_t rows() const { return tokens * choices; }
  std::int64_t own_experts() const { return experts / ranks; }
  // Throws INVALID_ARGUMENT where ranks cannot share the experts.
  void validate() const;
};
// Rows for `factor` times what balanced routing brings to a rank, at most all that can come. Throws INVALID_ARGUMENT
// for factors below 1.
std::int64_t expert_capacity(std::int64_t tokens, std::int64_t choices, std::int64_t ranks, double factor);

// This rank's tokens by expert, of op::GroupRows over all E experts.
struct TokensByExpert {
  compute::Tensor counts, places, sources;  // i32 [E], [N, k], [N k]
};

class ExpertTravel {
 public:
  // Adds the layer's buffers to the plan, with names that begin with `name`. `layer`: from 0, of those with experts.
  ExpertTravel(const ExpertTravelShape& shape, std::size_t layer, train::BufferPlan& plan, const std::string& name);

  const ExpertTravelShape& shape() const { return shape_; }
  // What the experts' operations read: i32 [E / R + 1]; i32 [C], numbers of weights; fp32 [C].
  compute::Tensor offsets(const train::BufferPlan& plan) const { return plan[offsets_]; }
  compute::Tensor sources(const train::BufferPlan& plan) const { return plan[sources_]; }
  compute::Tensor weights(const train::BufferPlan& plan) const { return plan[weights_]; }

  // One step's backend, plan and ranks.
  struct Step {
    compute::Backend& backend;
    const train::BufferPlan& plan;
    train::ExpertExchange& ranks;
  };
  // What a start returns goes to its finish.
  using Ticket = train::ExpertExchange::Ticket;
  // x: T [N, d]; weights: fp32 [N, k]; rows: T [C, d], grouped by this rank's experts.
  Ticket start_to_experts(const Step& step, const compute::Tensor& x, const compute::Tensor& weights,
                          const TokensByExpert& tokens) const;
  void finish_to_experts(const Step& step, Ticket ticket, const compute::Tensor& rows) const;
  // rows: T [C, d], what the experts have made; y[t] = sum of token t's (+ residual[t]).
  Ticket start_to_tokens(const Step& step, const compute::Tensor& rows) const;
  void finish_to_tokens(const Step& step, Ticket ticket, const TokensByExpert& tokens, const compute::Tensor& residual,
                        const compute::Tensor& y) const;
  // dy: the gradient by y; drows: that by the experts' outputs.
  Ticket start_gradient_to_experts(const Step& step, const compute::Tensor& dy, const TokensByExpert& tokens) const;
  void finish_gradient_to_experts(const Step& step, Ticket ticket, const compute::Tensor& drows) const;
  // drows: by the experts' inputs; dweights: fp32 [C], as op::WeightedGatedBackward leaves them. token_dweights (fp32
  // [N, k]) and dx (+ residual) are the gradients by weights and x: the former come first, as the router's backward
  // needs them.
  struct Tickets {
    Ticket weights, rows;
  };
  Tickets start_gradient_to_tokens(const Step& step, const compute::Tensor& drows,
                                   const compute::Tensor& dweights) const;
  void finish_weight_gradient(const Step& step, const Tickets& tickets, const TokensByExpert& tokens,
                              const compute::Tensor& dweights, const compute::Tensor& token_dweights) const;
  void finish_gradient_to_tokens(const Step& step, const Tickets& tickets, const TokensByExpert& tokens,
                                 const compute::Tensor& residual, const compute::Tensor& dx) const;

 private:
  using Id = train::BufferPlan::Id;
  struct Rows {  // T [N k, d] where the tokens are, T [C, d] where the experts are
    Id tokens, experts;
  };
  void group(const Step& step, const compute::Tensor& received, const compute::Tensor& rows) const;
  compute::Tensor ungrouped(const Step& step, const compute::Tensor& rows, Id into) const;

  ExpertTravelShape shape_;
  std::size_t layer_;
  Id all_counts_;                           // i32 [R, E]
  Id experts_;                              // i32 [C, 1], of received rows
  Id counts_, offsets_, places_, sources_;  // of received rows, as op::GroupRows makes them
  Id weights_;                              // fp32 [C], of received rows
  Rows there_, back_, gradient_there_, gradient_back_;
  Id sent_weights_, returned_weights_;  // fp32 [N k]
};

}  // namespace assay::models
