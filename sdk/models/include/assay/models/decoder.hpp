// A decoder-only Transformer language model with explicit forward and backward.
//
//   token embedding; per layer: x += o(attention(rotary(q, k), v)) of rms_norm(x), x += w2(silu(w1 y) * w3 y) of
//   y = rms_norm(x); final rms_norm; output head. Rotary pairs are interleaved. Keys and values may have fewer heads
//   than queries (grouped-query attention), q, k and v biases, and the head the embedding's weights (tied). Queries,
//   keys and values may be made of latents (latent_attention.hpp). The feed-forward may be a mixture of experts
//   (experts.hpp). Blocks may be Gemma's: each branch has a norm at its end, too, x += rms_norm(o(...)), norms' weights
//   count from one, the gate has GELU, and embeddings are times sqrt(d_model).
//
// N = batch * context rows, row-major [batch, context]. All temporary tensors come from one BufferPlan.
//
// The model may be split over R ranks (decoder_split_pass.hpp): each has the products of its heads, its part of the
// feed-forward and of the vocabulary, and N / R rows of the residual stream. Or the ranks share out each sequence
// (decoder_context.cpp): each has the whole model, and a part of the tokens.
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/models/decoder_config.hpp>
#include <assay/models/decoder_parameter_ids.hpp>
#include <assay/models/documents.hpp>
#include <assay/models/expert_travel.hpp>
#include <assay/models/experts.hpp>
#include <assay/models/naive_attention.hpp>
#include <assay/models/split_rows.hpp>
#include <assay/plugin/results.hpp>
#include <assay/train/block_parameters.hpp>
#include <assay/train/buffer_plan.hpp>
#include <assay/train/model.hpp>
#include <assay/train/parameters.hpp>
#include <assay/train/part_exchange.hpp>
#include <assay/workload/precision.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::models {

// Floating-point operations of the matrix products and of attention; a multiply-add counts as two. Causal attention
// counts half of the score matrix; a layer with a window of w tokens counts its pairs of tokens, w (w + 1) / 2 + (T -
// w) w in a sequence; packed documents count theirs. Backward is twice the forward. Recomputation under checkpointing
// is not useful work and is not counted.
std::uint64_t decoder_forward_flops(const DecoderConfig& config);
// What a step does, its micro-batches together: tokens, and operations of forward and backward, in the arithmetic of
// the precision. Bytes are not stated.
Work decoder_training_work(const DecoderConfig& config);

class DecoderModel : public train::Model {
 public:
  // Who holds the parameters where they come and go, and the set of what is kept of them, whose gradient arena the plan
  // borrows. Of a model without `blocks` they are all here.
  struct Residence {
    train::BlockParameters* blocks = nullptr;
    const train::ParameterSet* kept = nullptr;
  };
  // The parameters, and those who hold them, must outlive the model. A side lane and blocks that come and go do not go
  // together: INVALID_ARGUMENT. A model that is split over ranks reaches the other ones by `exchange`, which outlives
  // it, and has no blocks that come and go: INVALID_ARGUMENT; so does one whose sequences ranks share out. Of others
  // `exchange` is not looked at.
  DecoderModel(const DecoderConfig& config, const train::ParameterSet& set, const DecoderParameters& ids,
               const Residence& residence, train::PartExchange* exchange = nullptr);
  DecoderModel(const DecoderConfig& config, const train::ParameterSet& set, const DecoderParameters& ids)
      : DecoderModel(config, set, ids, Residence{}) {}

  const DecoderConfig& config() const { return config_; }
  // By layer, i32 [step_rows, per_token]: the experts that tokens go to, in place of those that the router would
  // choose. Of dense layers empty. Where routing is not learned it is to be called before the first step.
  void give_experts(std::vector<compute::Tensor> by_layer) { given_experts_ = std::move(by_layer); }
  bool has_given_experts() const { return !given_experts_.empty(); }
  // Of experts that are shared out over ranks: by whom they are reached, which outlives the model's steps.
  void share_experts(train::ExpertExchange& ranks) { expert_ranks_ = &ranks; }
  void set_loss_scale(const compute::Tensor& scale) override { loss_scale_ = scale; }
  void initialize(compute::Backend& backend) const override;  // the rotation's table, and where documents begin

  // ids, labels: i64 [N], of one micro-batch. The mean loss over the `valid_rows` labels >= 0, of all micro-batches,
  // lands in loss() (fp32 [1]) with the last one. Where ranks share the experts, `valid_rows` is of all of them, and
  // the loss, as all gradients but those of the experts, is this rank's term of a sum; so are all of them where ranks
  // share out the sequences. Without labels the head's logits are the result. With config.backward the fused path
  // already turns the logits into their gradient.
  void forward(compute::Backend& b, const compute::Tensor& ids, const compute::Tensor* labels, std::int64_t valid_rows,
               std::int64_t micro_batch = 0) const;
  // To be called after forward with labels. The first micro-batch writes the gradients of all parameters, the others
  // add to them. `listener`, if any, hears of them group by group (on the side lane: of what has been joined). A split
  // model makes them in another order than that of the arena, and has none: INVALID_ARGUMENT.
  void backward(compute::Backend& b, const compute::Tensor& ids, const compute::Tensor& labels, std::int64_t valid_rows,
                train::GradientListener* listener = nullptr, std::int64_t micro_batch = 0) const;
  // Both, of all micro-batches: ids and labels hold step_rows(). Without a backward in the configuration forward alone.
  // The products of the last backward leave so many multiprocessors, as Trainer::leave_multiprocessors has them do.
  void whole_step(compute::Backend& b, const compute::Tensor& ids, const compute::Tensor& labels,
                  std::int64_t valid_rows, std::int32_t left_multiprocessors = 0) const;

  bool allows_update_beside_backward() const override { return !lanes(); }
  bool picks_by_comparison() const override {
    return config_.experts.any() && config_.experts.routing == Routing::learned;
  }
  compute::Tensor loss() const override { return plan_[loss_]; }
  compute::Tensor forward_result() const override { return logits().flat(); }
  compute::Tensor logits() const {
    return plan_[logits_];
  }  // [N, vocab], until the fused loss or backward overwrites it; in chunks the last one's
  // Of a layer with experts, after a step: who went where, i32 [step_rows, per_token]; the tokens that each expert of
  // the last micro-batch had, i32 [count]; the losses of op::RoutingLosses of that, by layer with experts, fp32 [2].
  compute::Tensor experts_of(std::int64_t layer) const { return plan_[routing_[index_of(layer)].experts]; }
  compute::Tensor expert_counts(std::int64_t layer) const { return plan_[routing_[index_of(layer)].counts]; }
  compute::Tensor routing_losses() const { return plan_[routing_losses_]; }
  // Of a stage (config.stage): its input, which is there before forward; its result; and the gradient by that, which is
  // there before backward, in whose place the gradient by the input is behind it.
  compute::Tensor stage_input() const { return plan_[forward_.front().input]; }
  compute::Tensor stage_output() const { return plan_[final_input_]; }
  compute::Tensor stage_gradient() const { return plan_[dx_]; }
  compute::Tensor kept_logits() const { return plan_[kept_logits_]; }  // with config.keep_logits
  // Of a split model: draws its part of what the whole model would have from this seed. Uses the activations' memory.
  void draw_parts(compute::Backend& b, std::uint64_t seed) const;

 private:
  using Id = train::BufferPlan::Id;
  // What a product of 8 bits reads: rows of activations or their gradients and of weights, each with its scale; and the
  // former turned, for gradients by weights.
  struct EightBits {
    Id x, x_scales, w, w_scales, turned, turned_scale;
  };
  // For sequences that ranks share out: all keys and values of a layer, [T, batch, 2 kv_width], as gathered by rank,
  // and in their order. Backward gathers them again unless they have been recomputed. Backward also holds their
  // gradients by the queries of both chunks (the first chunk has keys up to its end), and these gradients by rank.
  struct ContextForward {
    Id gathered, keys_values;
  };
  struct ContextBackward {
    Id gathered, keys_values, by_first, by_second, terms;
  };
  // The norm at the end of a branch: its result, and what backward needs of it.
  struct PostNorm {
    Id normed, rstd;
  };
  // The buffers that one run of a layer's forward writes. Checkpointing runs it twice, with separate buffers.
  struct Forward {
    Id input, normed1, rstd1, qkv, heads, heads_rstd, turned, attention, lse, scores, branch1, middle, normed2, rstd2,
        gate_up, silu, hidden, branch2;
    PostNorm post1, post2;  // of branch1 and branch2
    LatentForward latent;
    ContextForward context;
    ExpertForward experts;
    EightBits qkv_8, output_8, gate_up_8, w2_8;
  };
  struct Backward {
    Id silu, hidden, dsilu, dhidden, normed2, dnormed2, dattention, dqkv, dheads, scores, dscores, normed1, dnormed1;
    Id dbranch1, dbranch2;  // of branches that end with a norm
    LatentBackward latent;
    ContextBackward context;
    ExpertBackward experts;
    EightBits w2_8, gate_up_8, output_8, qkv_8;
  };
  // A packed buffer's two halves: columns of [N, 2 d_ff] when fused, else two tensors [N, d_ff] one after the other.
  struct GateUp {
    compute::Tensor packed, gate, up;
  };

  void plan_buffers();
  // `first`: the run that this one makes again.
  Forward plan_layer_forward(const std::string& name, Id input, const Forward* first = nullptr);
  Backward plan_layer_backward(const std::string& name);
  EightBits plan_eight_bits(const std::string& name, std::int64_t depth, std::int64_t outputs,
                            const EightBits* with_weights = nullptr);
  bool lanes() const { return config_.fused && config_.side_lane; }
  bool eight_bits() const { return config_.fused && config_.precision.eight_bit_products; }
  bool eight_bit_weight_gradients() const { return eight_bits() && config_.precision.eight_bit_weight_gradients; }

  // What backward reads of norms and SwiGLU is what forward made. (Of 8 bits it is kept in any case.)
  bool keeps_outputs() const { return config_.keep_outputs && config_.fused && !eight_bits() && !config_.is_split(); }
  // Made in backward once more, for gradients by weights, unless there are other ways.
  compute::Tensor made_again(Id result) const {
    return keeps_outputs() ? compute::Tensor() : unless_eight_bit_weight_gradients(plan_[result]);
  }

  bool adds_in_products() const {
    return config_.residual_in_products && config_.fused && !eight_bits() && !config_.is_split();
  }
  // The end of a branch, y = x w^T, added to the residual stream: sum = y + residual, and its norm. `branch` may be
  // used for y.
  struct BranchEnd {
    compute::Tensor x;
    train::ParameterSet::Id weight;
    compute::Tensor bias = {};  // may be left out
    Id branch, residual, sum;
    train::ParameterSet::Id post_weight;  // with post_norms
    PostNorm post;
    compute::Tensor norm_weight;
    compute::Tensor normed, rstd;  // normed may be left out where there are 8 bits
    compute::op::EightBitRows eight_bits;
  };
  void end_branch(compute::Backend& b, const BranchEnd& end, const EightBits& by) const;
  // What is added to the residual stream: the branch, or its norm.
  compute::Tensor end_of_branch(compute::Backend& b, Id branch, const PostNorm& post,
                                train::ParameterSet::Id weight) const;
  // Of the gradient by what is added that by the branch: in the same place, or in `dbranch`. Keeps that by the weight.
  Id branch_gradient(compute::Backend& b, Id gradient, Id branch, const PostNorm& post, train::ParameterSet::Id weight,
                     Id dbranch) const;
  // From gate and up to what w2 reads.
  void gated_unit(compute::Backend& b, const Forward& f) const;
  float norm_offset() const { return config_.norms_from_one ? 1.0F : 0.0F; }
  float embedding_factor() const { return std::sqrt(static_cast<float>(config_.d_model)); }

  // decoder_experts.cpp: the feed-forward of layers with experts.
  static std::size_t index_of(std::int64_t layer) { return static_cast<std::size_t>(layer); }
  void plan_experts();
  void plan_routing(std::int64_t layer, const std::string& name);
  ExpertForward plan_expert_forward(const std::string& name);
  ExpertBackward plan_expert_backward(const std::string& name);
  void initialize_experts(compute::Backend& b) const;
  // A token's weight is a factor of its hidden states, or, where the product behind them has a bias, or operations are
  // one by one, of the product.
  bool weighs_hidden() const { return config_.fused && !config_.experts.biases; }
  // All that moves rows of tokens to the experts, and back: on one rank a gather and a sum, on several by
  // expert_travel.hpp. rows[r] = x, or dy, of the token of row r; y[t], or dx[t], = the sum of the token's rows
  // (+ residual[t]).
  void send_to_experts(compute::Backend& b, std::int64_t layer, const compute::Tensor& x,
                       const compute::Tensor& rows) const;
  void bring_back(compute::Backend& b, std::int64_t layer, const compute::Tensor& rows, const compute::Tensor& residual,
                  const compute::Tensor& y) const;
  void send_gradient_to_experts(compute::Backend& b, std::int64_t layer, const compute::Tensor& dy,
                                const compute::Tensor& rows) const;
  // The start leaves the gradients of the tokens' weights in e.dweights.
  ExpertTravel::Tickets start_bringing_gradient_back(compute::Backend& b, std::int64_t layer,
                                                     const ExpertBackward& e) const;
  void bring_gradient_back(compute::Backend& b, std::int64_t layer, const ExpertTravel::Tickets& tickets,
                           const ExpertBackward& e, const compute::Tensor& residual, const compute::Tensor& dx) const;
  // What the experts' operations read: of this rank's tokens, or of the rows that have come.
  bool shares_experts() const { return config_.experts.is_over_ranks(); }
  const ExpertTravel& travel_of(std::int64_t layer) const {
    return travels_[static_cast<std::size_t>(layer - config_.experts.first_dense_layers)];
  }
  ExpertTravel::Step travelling(compute::Backend& b) const;
  TokensByExpert tokens_by_expert(std::int64_t layer) const;
  std::int64_t expert_rows() const;
  compute::Tensor row_offsets(std::int64_t layer) const;
  compute::Tensor row_sources(std::int64_t layer) const;
  compute::Tensor row_weights(std::int64_t layer) const;
  compute::Tensor row_dweights(const ExpertBackward& e) const;
  // Rows that came from other ranks are not made again.
  bool keeps_rows() const { return keeps_outputs() || shares_experts(); }
  compute::Tensor chosen_experts(std::int64_t layer, std::int64_t micro_batch) const;
  void route(compute::Backend& b, std::int64_t layer, const Forward& f, std::int64_t micro_batch) const;
  void experts_body(compute::Backend& b, std::int64_t layer, const Forward& f) const;
  void make_expert_outputs(compute::Backend& b, std::int64_t layer, const Forward& f) const;
  void experts_end(compute::Backend& b, std::int64_t layer, const Forward& f, Id next) const;
  void shared_expert(compute::Backend& b, const ExpertParameters& p, const Forward& f,
                     const compute::Tensor& sum) const;
  void experts_backward(compute::Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                        std::int64_t micro_batch, train::GradientListener* listener) const;
  // From the gradient by the layer's end to that by gate and up, and to the gradient by w2.
  void expert_products_backward(compute::Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                                train::GradientListener* listener) const;
  void shared_expert_backward(compute::Backend& b, const ExpertParameters& p, const Forward& f,
                              const Backward& g) const;

  // The weights' 8 bits are made once a step, and stay for its other micro-batches.
  bool keeps_eight_bit_weights() const { return eight_bits() && config_.accumulation_steps > 1 && !residence_.blocks; }
  void quantize_weights(compute::Backend& b) const;

  // Where products are of 8 bits: a result that nothing else reads is written in 8 bits alone, those that `by` names;
  // and one that gradients by weights read beside them, unless these do so in 8 bits, too.
  compute::Tensor unless_eight_bits(Id result) const { return eight_bits() ? compute::Tensor() : plan_[result]; }
  compute::Tensor unless_eight_bit_weight_gradients(const compute::Tensor& result) const {
    return eight_bit_weight_gradients() ? compute::Tensor() : result;
  }
  compute::op::EightBitRows as_read_by(const EightBits& by) const;
  // Those of the gradient by the end of layer `end` - 1, which is that of the beginning of layer `end`, if there is
  // one.
  compute::op::EightBitRows gradient_of_layers_end(std::int64_t end) const {
    return end > 0 ? as_read_by(backward_[static_cast<std::size_t>(end - 1)].w2_8) : compute::op::EightBitRows();
  }
  void quantize_for(compute::Backend& b, const compute::Tensor& x, const EightBits& by) const;

  // y = x w^T (+ bias), and dx = dy w: of `count` adjacent weights, in 8 bits where the precision says so; then x and
  // dy are read as the 8 bits of `by`.
  void project(compute::Backend& b, const compute::Tensor& x, train::ParameterSet::Id first, std::size_t count,
               const EightBits& by, const compute::Tensor& y, const compute::Tensor& bias = {}) const;
  void project_back(compute::Backend& b, const compute::Tensor& dy, train::ParameterSet::Id first, std::size_t count,
                    const EightBits& by, const compute::Tensor& dx) const;
  void multiply_eight_bits(compute::Backend& b, const EightBits& by, const compute::Tensor& y) const;

  // decoder_split_pass.hpp: forward and backward of a split model.
  class SplitPass;
  void wait(compute::Backend& b, train::PartExchange::Ticket ticket, const compute::Tensor& used) const;
  template <class Start>
  train::PartExchange::Ticket exchange(compute::Backend& b, const compute::Tensor& sent,
                                       const compute::Tensor& received, Start&& start) const {
    if (!is_planning_) return start(*exchange_);
    b.download(nullptr, sent);
    b.upload(received, nullptr);
    return 1;
  }
  void plan_split();
  RowRange all_rows() const { return {0, config_.rows()}; }
  // Of some sequences attention needs those alone.
  bool reads_sequences_alone() const { return config_.flash && config_.documents.empty(); }
  void note_use(compute::Backend& b, const compute::Tensor& used) const {
    if (is_planning_) b.download(nullptr, used);
  }
  void note_given(compute::Backend& b, const compute::Tensor& given) const {
    if (is_planning_) b.upload(given, nullptr);
  }

  // decoder_context.cpp: what a model adds whose sequences ranks share out.
  void rotation_of_own_chunks(compute::Backend& b) const;
  ContextForward plan_context_forward(const std::string& name);
  ContextBackward plan_context_backward(const std::string& name);
  // [2 L, batch, K, D]: this rank's keys (which = 1) or values (2) among those of all ranks.
  compute::Tensor own_part(const compute::Tensor& by_rank, int which) const;
  compute::Tensor own_part(const compute::Tensor& by_rank) const;  // both, [2 L, batch, 2 kv_width]
  // The first `count` keys, or values, [batch, count, K, D].
  compute::Tensor leading_keys(const compute::Tensor& keys_values, std::int64_t count, int which) const;
  train::PartExchange::Ticket start_gathering_keys(compute::Backend& b, const Forward& f, Id gathered) const;
  void finish_gathering_keys(compute::Backend& b, train::PartExchange::Ticket ticket, Id gathered,
                             Id keys_values) const;
  void context_attention_forward(compute::Backend& b, std::int64_t layer, const Forward& f) const;
  train::PartExchange::Ticket start_gathering_keys_again(compute::Backend& b, const Forward& f,
                                                         const Backward& g) const;
  void context_attention_backward(compute::Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                                  train::PartExchange::Ticket gathering) const;

  // Of blocks that come and go: the embedding, each layer, the head, which is a block apart unless it is tied.
  static std::size_t visit_of_layer(std::int64_t layer) { return static_cast<std::size_t>(layer) + 1; }
  std::size_t visit_of_head() const { return static_cast<std::size_t>(config_.layers) + 1; }

  // Runs from normed1 to the end of the feed-forward's hidden state; forward and recomputation share it.
  // `routes`: not when it is made again, where experts have been chosen.
  void layer_body(compute::Backend& b, std::int64_t layer, const Forward& f, std::int64_t micro_batch,
                  bool routes = true) const;
  void layer_end(compute::Backend& b, std::int64_t layer, const Forward& f) const;
  void layer_backward(compute::Backend& b, std::int64_t layer, std::int64_t micro_batch,
                      train::GradientListener* listener) const;
  void feed_forward_backward(compute::Backend& b, const DecoderLayerParameters& p, const Forward& f, const Backward& g,
                             train::GradientListener* listener) const;
  void tell(train::GradientListener* listener, train::ParameterSet::Id end) const;
  const DecoderLayerParameters& layer_ids(std::int64_t layer) const {
    return ids_.layers[static_cast<std::size_t>(layer)];
  }
  compute::Tensor sinks_of(std::int64_t layer) const {  // empty: there are none
    return config_.attention_sinks ? set_.value(layer_ids(layer).sinks) : compute::Tensor();
  }
  compute::Tensor dsinks_of(std::int64_t layer) const {
    return config_.attention_sinks ? set_.gradient(layer_ids(layer).sinks) : compute::Tensor();
  }
  compute::AttentionShape attention_shape(std::int64_t layer) const;
  compute::PackedDocuments packed_documents(std::int64_t layer) const;
  void initialize_documents(compute::Backend& b) const;
  // `rows`: all of them, or where reads_sequences_alone() those of some sequences.
  void attention_forward(compute::Backend& b, std::int64_t layer, const Forward& f, const RowRange& rows) const;
  // `gathering`: of the keys and values of a sequence that ranks share out.
  void attention_backward(compute::Backend& b, std::int64_t layer, const Forward& f, const Backward& g,
                          train::PartExchange::Ticket gathering = 0) const;
  void norm_backward(compute::Backend& b, train::ParameterSet::Id weight, const compute::Tensor& dy,
                     const compute::Tensor& x, const compute::Tensor& rstd, const compute::Tensor& residual,
                     const compute::Tensor& dx, const compute::Tensor& y,
                     const compute::op::EightBitRows& eight_bits = {}) const;
  void head_backward(compute::Backend& b, const compute::Tensor& labels, std::int64_t valid_rows,
                     train::GradientListener* listener) const;
  // decoder_head.cpp
  bool makes_loss_in_chunks() const { return config_.loss_chunks > 1; }
  std::int64_t chunk_rows() const;
  float cap_of_loss() const;  // of the logits; 0: none, or they have it already
  compute::Tensor make_logits(compute::Backend& b, std::int64_t first, std::int64_t count) const;
  void head_forward(compute::Backend& b, const compute::Tensor* labels, std::int64_t valid_rows,
                    std::int64_t micro_batch) const;
  void head_products(compute::Backend& b, const compute::Tensor& labels, std::int64_t valid_rows, std::int64_t first,
                     std::int64_t count, train::GradientListener* listener) const;
  // What the second and later micro-batches add to; empty: they write it anew.
  compute::Tensor summed_gradients() const;
  // The parts of forward and backward that one backend carries out, which may be one that adds gradients up.
  void forward_by(compute::Backend& b, const compute::Tensor& ids, const compute::Tensor* labels,
                  std::int64_t valid_rows, std::int64_t micro_batch) const;
  void backward_by(compute::Backend& b, const compute::Tensor& ids, const compute::Tensor& labels,
                   std::int64_t valid_rows, std::int64_t micro_batch, train::GradientListener* listener) const;

  // dw = dy^T x, on the side lane where there is one
  void weight_gradient(compute::Backend& b, const compute::Tensor& dy, const compute::Tensor& x,
                       train::ParameterSet::Id first, std::size_t count = 1) const;
  // The same of a block, from the 8 bits of both where the precision says so.
  void weight_gradient(compute::Backend& b, Id dy, Id x, train::ParameterSet::Id first, std::size_t count,
                       const EightBits& dy_8, const EightBits& x_8) const;
  bool makes_scores_in_parts() const { return !config_.flash && config_.score_rows > 0; }
  // Attention of a layer by score matrices in parts; `backward` with the gradients of sinks.
  NaiveAttention naive_attention(std::int64_t layer, bool backward) const {
    return {config_.batch_size,     config_.own_heads(),
            config_.context_length, config_.context_length,
            attention_shape(layer), score_rows(),
            sinks_of(layer),        backward ? dsinks_of(layer) : compute::Tensor()};
  }
  std::int64_t score_rows() const { return makes_scores_in_parts() ? config_.score_rows : config_.context_length; }
  float norm_eps() const { return static_cast<float>(config_.norm_eps); }
  bool is_tied() const { return config_.tied_embeddings; }
  // [B, T, H or K, D] of [N, qkv_width]: queries, keys, values
  compute::Tensor heads_of(const compute::Tensor& packed, int which) const;
  compute::Tensor columns_of(const compute::Tensor& packed, int which) const;                    // the same as a matrix
  compute::Tensor bias_of(const DecoderLayerParameters& p, int which, std::size_t count) const;  // empty: there is none
  // decoder_head_norms.cpp: queries and keys on the way to attention: turned, before that normed with qk_norm, which
  // leaves those of the projection as they are. And their gradients on the way back, which end in g.dqkv. Some `rows`
  // are those of sequences.
  void turn_heads(compute::Backend& b, std::int64_t layer, const Forward& f, const RowRange& rows) const;
  void turn_heads_back(compute::Backend& b, std::int64_t layer, const Forward& f, const Backward& g) const;
  // decoder_latent.cpp: the same of latent attention, where they are made of latents; `which` as of heads_of.
  struct LatentNorm {
    train::ParameterSet::Id weight;
    compute::Tensor latent, normed, rstd;
  };
  LatentNorm latent_norm(const LatentParameters& p, const Forward& f) const {
    return {p.kv_norm, plan_[f.latent.latent], plan_[f.latent.normed], plan_[f.latent.rstd]};
  }
  LatentNorm queries_norm(const LatentParameters& p, const Forward& f) const {
    return {p.q_norm, plan_[f.latent.q_latent], plan_[f.latent.q_normed], plan_[f.latent.q_rstd]};
  }
  LatentForward plan_latent_forward(const std::string& name);
  LatentBackward plan_latent_backward(const std::string& name);
  compute::Tensor latent_heads(const Forward& f, int which) const;
  compute::Tensor gradient_of_latent_heads(const Backward& g, int which) const;
  void make_latent_heads(compute::Backend& b, std::int64_t layer, const Forward& f) const;
  void latent_heads_back(compute::Backend& b, std::int64_t layer, const Forward& f, const Backward& g) const;
  // y = rms_norm(columns) weight^T, and back, where dlatent is memory.
  void expand_latent(compute::Backend& b, const compute::Tensor& columns, const LatentNorm& norm,
                     train::ParameterSet::Id weight, const compute::Tensor& y) const;
  void expand_latent_back(compute::Backend& b, const compute::Tensor& dy, const LatentNorm& norm,
                          train::ParameterSet::Id weight, const compute::Tensor& dlatent,
                          const compute::Tensor& dcolumns) const;
  // Weights whose product of a normed token makes f.qkv: of queries, keys and values, or of queries and latents.
  std::size_t products_of_token() const { return config_.latent.any() ? 2 : 3; }
  const compute::Tensor& cos_of(std::int64_t layer) const {
    return plan_[config_.rotates_locally(layer) ? local_cos_ : cos_];
  }
  const compute::Tensor& sin_of(std::int64_t layer) const {
    return plan_[config_.rotates_locally(layer) ? local_sin_ : sin_];
  }
  compute::Tensor turned_heads(const Forward& f, int which) const;  // as heads_of
  compute::Tensor gradient_of_heads(const Backward& g, int which) const;
  // [B, T, H + K, D] of columns that begin with all heads of queries and keys.
  compute::Tensor queries_and_keys(const compute::Tensor& side_by_side) const;
  // As heads_of, of [N, own_q_width + own_kv_width]: side by side, or, not fused, one after the other.
  compute::Tensor queries_or_keys(const compute::Tensor& both, int which) const;
  // Queries and keys, in place.
  void rotate(compute::Backend& b, std::int64_t layer, const compute::Tensor& packed, bool inverse) const;
  compute::Tensor output_bias_of(const DecoderLayerParameters& p) const {  // the same
    return config_.output_bias ? set_.compute(p.output_bias) : compute::Tensor();
  }
  compute::Tensor rstd_of_heads(const Forward& f, int which) const;  // not fused
  compute::Tensor split_heads(const compute::Tensor& x) const;       // [B, T, H, V] of [N, own_attention_width]
  GateUp gate_up(const Forward& f) const;

  DecoderConfig config_;
  const train::ParameterSet& set_;
  const DecoderParameters& ids_;
  Residence residence_;
  std::vector<Forward> forward_;         // by layer
  std::vector<Forward> recomputed_;      // by layer; the same as forward_ without checkpointing
  std::vector<Backward> backward_;       // by layer
  std::vector<RoutingBuffers> routing_;  // by layer; of dense ones none is used
  std::vector<ExpertTravel> travels_;    // by layer with experts, where these are shared
  train::ExpertExchange* expert_ranks_ = nullptr;
  std::vector<compute::Tensor> given_experts_;  // by layer; empty: the router chooses
  Id ones_ = 0, twos_ = 0, expert_bias_ = 0, routing_losses_ = 0;
  Id cos_ = 0, sin_ = 0, local_cos_ = 0, local_sin_ = 0, whole_cos_ = 0, whole_sin_ = 0;
  Id first_keys_ = 0, document_starts_ = 0;             // with documents
  DocumentSizes whole_documents_, windowed_documents_;  // of layers without a window and with it
  Id final_input_ = 0, final_normed_ = 0, final_rstd_ = 0;
  Id logits_ = 0, kept_logits_ = 0, losses_ = 0, lse_ = 0, loss_ = 0;
  // The gradient by the residual stream: the second norm of a layer writes it to dx_middle_, the first one back to dx_.
  // One buffer but with lanes, where a weight gradient may still be reading the older one.
  Id dx_ = 0, dx_middle_ = 0, dfinal_ = 0;
  compute::Tensor loss_scale_;

  // Of a split model.
  struct Split {
    Id drawn;                         // the largest whole parameter, while parameters are drawn
    Id embedded, received;            // its columns of the embedding, of all rows; and all columns of its rows
    Id sent_gradient, gradient;       // the same of the gradient, on its way back
    Id parts_of_loss, part_log_sums;  // by rank: log-sum-exps and losses; the former by row
  };
  Split split_{};
  SplitRows split_rows_;
  std::vector<DecoderPart> parts_;
  train::PartExchange* exchange_ = nullptr;
  train::ParameterSet unsplit_;  // the parameters of the whole model, without memory
  // The step is being recorded: an exchange only reports to the recorder what it reads and writes, and moves nothing.
  bool is_planning_ = false;
};

}  // namespace assay::models
