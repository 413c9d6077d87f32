// An encoder-decoder Transformer as PyTorch's nn.Transformer, with explicit forward and backward.
//
//   source and target: shared token embedding + learned positions
//   encoder layer (post-norm): x = norm(x + drop(self_attention(x))), x = norm(x + drop(w2 drop(relu(w1 x))))
//   decoder layer: causal self-attention, attention to the encoder's result, feed-forward, each as above
//   a norm after the encoder and one after the decoder; linear head; biases everywhere
//
// Layer norm with eps 1e-5; dropout also of the attention's weights, none of the embeddings. Trained by teacher
// forcing: the decoder reads the target without its last token, the labels are the target without its first. Ns = batch
// * sequence rows of source, Nt = batch * (sequence - 1) rows of target. All temporary tensors come from one
// BufferPlan.
//
// Every block is one of two kinds, attention or feed-forward, and ends in the same way; see encoder_decoder_blocks.cpp.
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/models/naive_attention.hpp>
#include <assay/train/buffer_plan.hpp>
#include <assay/train/model.hpp>
#include <assay/train/parameters.hpp>
#include <assay/workload/precision.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::models {

struct EncoderDecoderConfig {
  std::int64_t vocab_size = 8192;
  std::int64_t batch_size = 128;
  std::int64_t sequence_length = 256;  // tokens of a source, and of a whole target; at least 2
  std::int64_t d_model = 128, heads = 4;
  std::int64_t encoder_layers = 3, decoder_layers = 3;  // at least 1 each
  std::int64_t d_ff = 512;
  float dropout = 0.1F;
  std::uint64_t dropout_seed = 0;  // for the masks; ranks that share a batch take different ones
  workload::PrecisionPolicy precision;
  // fused: biases within products, and bias, ReLU and dropout, the end of a block, and the loss as one operation each.
  // Otherwise one operation each, as a framework without a compiler runs them. Both draw the same masks.
  bool fused = true;
  bool flash = true;  // tiled attention; otherwise the score matrix is made
  // Without flash and without dropout: so many rows of queries at a time (naive_attention.hpp), made again in backward.
  // 0: all at once, kept.
  std::int64_t score_rows = 0;
  bool backward = true;      // plan for a backward pass; the plan then borrows the gradient arena
  bool keep_logits = false;  // a copy of the logits survives the step

  std::int64_t target_length() const { return sequence_length - 1; }
  std::int64_t source_rows() const { return batch_size * sequence_length; }
  std::int64_t target_rows() const { return batch_size * target_length(); }
  std::int64_t rows() const { return source_rows() + target_rows(); }
  std::int64_t batch_elements() const { return rows() + target_rows(); }  // ids and labels
  std::int64_t head_dim() const { return d_model / heads; }
  void validate() const;  // throws assay::Error
};

// Ids of a block's parameters, in the order of the arena. norm_weight begins three in a row: the norm's weight and
// bias, and the bias of the output projection, whose gradients the block's backward makes first.
struct BlockParameters {
  train::ParameterSet::Id norm_weight, norm_bias, out_bias, out_weight, in_weight, in_bias;
};
// Attention: in_weight is [3 d, d], rows of queries, keys and values. Feed-forward: in is linear1, out is linear2.
struct EncoderDecoderLayerParameters {
  BlockParameters self_attention, cross_attention, feed_forward;  // cross_attention: of decoder layers alone
};
struct EncoderDecoderParameters {
  train::ParameterSet::Id head_weight, head_bias, decoder_norm, encoder_norm, positions,
      embedding;  // norms: weight, then bias
  std::vector<EncoderDecoderLayerParameters> encoder, decoder;
};

// Names as in the state_dict of a module with emb, pos, core (nn.Transformer) and out; matrices (out, in). Initial
// values have the mean and the variance of PyTorch's, but all of them are normal: there is no uniform distribution
// among the backend's operations. (Core's matrices 2 / (in + out), head and feed-forward biases 1 / (3 in),
// embeddings 1.)
EncoderDecoderParameters add_encoder_decoder_parameters(train::ParameterSet& set, const EncoderDecoderConfig& config);

// Floating-point operations of the matrix products and of attention (causal: half of the score matrix), a multiply-add
// as two. Backward is twice the forward.
std::uint64_t encoder_decoder_forward_flops(const EncoderDecoderConfig& config);

class EncoderDecoderModel : public train::Model {
 public:
  // The parameters must outlive the model.
  EncoderDecoderModel(const EncoderDecoderConfig& config, const train::ParameterSet& set,
                      const EncoderDecoderParameters& ids);

  const EncoderDecoderConfig& config() const { return config_; }
  void set_loss_scale(const compute::Tensor& scale) override { loss_scale_ = scale; }
  // To be called before a forward with dropout. The step must not change between a forward and its backward.
  void set_dropout_step(const compute::Tensor& step) override { dropout_step_ = step; }
  bool allows_update_beside_backward() const override { return !drops(); }

  // batch: i64 [batch_elements()], the layout of assay/data/loader.hpp: source ids [batch, sequence], target inputs
  // [batch, sequence - 1], labels [batch, sequence - 1]. The mean loss over the labels lands in loss(). With
  // config.backward the fused path already turns the logits into their gradient. INVALID_ARGUMENT when there is dropout
  // but set_dropout_step was not called.
  void forward(compute::Backend& b, const compute::Tensor& batch) const;
  // To be called after forward. Gradients of all parameters are written, not accumulated. `listener`, if any, hears of
  // them group by group.
  void backward(compute::Backend& b, const compute::Tensor& batch, train::GradientListener* listener = nullptr) const;

  compute::Tensor loss() const override { return plan_[loss_]; }
  // [Nt, vocab], until the fused loss or backward overwrites it
  compute::Tensor logits() const { return plan_[logits_]; }
  compute::Tensor kept_logits() const { return plan_[kept_logits_]; }  // with config.keep_logits

 private:
  using Id = train::BufferPlan::Id;
  // y = layer_norm(residual + dropout(branch + bias)).
  struct BlockEnd {
    std::uint64_t stream;  // for the dropout
    Id branch, biased, dropped, sum, y, mean, rstd, dbranch;
  };
  struct Attention {
    BlockParameters p;
    bool cross, causal;
    std::int64_t queries, keys;  // rows of a sequence
    std::uint64_t stream;        // for the dropout of the weights
    Id q, kv;                    // [N, 3 d] and nothing; cross: [Nt, d] and [Ns, 2 d]
    Id raw_q, raw_kv;            // unfused: before the bias
    Id attention, lse, scores, dropped_scores;
    Id backward_scores;  // in parts: made again
    Id dq, dkv, dattention, dscores, ddropped_scores;
    BlockEnd end;
  };
  struct FeedForward {
    BlockParameters p;
    std::uint64_t stream;
    Id raw, biased, activated, hidden;  // fused: hidden alone
    Id dhidden, dactivated;
    BlockEnd end;
  };
  struct EncoderLayer {
    Attention self;
    FeedForward feed_forward;
  };
  struct DecoderLayer {
    Attention self, cross;
    FeedForward feed_forward;
  };
  struct Norm {  // after the encoder, after the decoder
    train::ParameterSet::Id weight;
    Id y, mean, rstd;
  };
  Id plan_rows(const std::string& name, std::int64_t rows, std::int64_t columns);  // of activations
  Id plan_numbers(const std::string& name, std::int64_t rows);                     // fp32
  void plan_head();
  Attention plan_attention(const std::string& name, const BlockParameters& p, bool cross, bool causal);
  FeedForward plan_feed_forward(const std::string& name, const BlockParameters& p, std::int64_t rows);
  BlockEnd plan_end(const std::string& name, std::int64_t rows);
  Norm plan_norm(const std::string& name, train::ParameterSet::Id weight, std::int64_t rows);

  bool makes_scores_in_parts() const { return !config_.flash && config_.score_rows > 0; }
  float score_scale() const { return 1.0F / std::sqrt(static_cast<float>(config_.head_dim())); }
  NaiveAttention naive_attention(const Attention& block) const {
    return {config_.batch_size, config_.heads, block.queries, block.keys, {score_scale(), block.causal},
            config_.score_rows};
  }
  bool drops() const { return config_.dropout > 0.0F; }
  compute::Dropout dropout(std::uint64_t stream) const {
    return {config_.dropout, config_.dropout_seed, stream, dropout_step_};
  }
  float loss_factor() const { return 1.0F / static_cast<float>(config_.target_rows()); }
  void drop(compute::Backend& b, const compute::Tensor& x, const compute::Tensor& y,
            std::uint64_t stream) const;  // without dropout y is x, and nothing is done
  static void tell(train::GradientListener* listener, train::ParameterSet::Id end) {
    if (listener) listener->gradients_ready(end);
  }
  // y = x w^T + bias; `raw` is where the unfused path puts x w^T.
  void linear(compute::Backend& b, const compute::Tensor& x, const compute::Tensor& weight, const compute::Tensor& bias,
              Id raw, const compute::Tensor& y) const;
  void forward_of(compute::Backend& b, const compute::Tensor& batch) const;  // whether or not there is a step number
  void forward_embeddings(compute::Backend& b, const compute::Tensor& batch) const;
  void forward_head(compute::Backend& b, const compute::Tensor& labels) const;
  void forward_attention(compute::Backend& b, const Attention& block, const compute::Tensor& x,
                         const compute::Tensor& memory) const;
  void forward_feed_forward(compute::Backend& b, const FeedForward& block, const compute::Tensor& x) const;
  void forward_end(compute::Backend& b, const BlockParameters& p, const BlockEnd& end,
                   const compute::Tensor& residual) const;
  void forward_norm(compute::Backend& b, const Norm& norm, const compute::Tensor& x) const;
  void forward_core(compute::Backend& b, const Attention& block) const;

  // dx: on entry the gradient by the block's result, on return that by its input x. dmemory: (+)= that by memory.
  void backward_attention(compute::Backend& b, const Attention& block, const compute::Tensor& x,
                          const compute::Tensor& dx, const compute::Tensor& memory, const compute::Tensor& dmemory,
                          bool accumulate_dmemory, train::GradientListener* listener) const;
  void backward_feed_forward(compute::Backend& b, const FeedForward& block, const compute::Tensor& x,
                             const compute::Tensor& dx, train::GradientListener* listener) const;
  // Returns the gradient by the branch; dx becomes that by the residual.
  compute::Tensor backward_end(compute::Backend& b, const BlockParameters& p, const BlockEnd& end,
                               const compute::Tensor& dx, train::GradientListener* listener) const;
  void backward_norm(compute::Backend& b, const Norm& norm, const compute::Tensor& x, const compute::Tensor& dx,
                     train::GradientListener* listener) const;
  void backward_core(compute::Backend& b, const Attention& block) const;
  void backward_head(compute::Backend& b, const compute::Tensor& labels, const compute::Tensor& dx,
                     train::GradientListener* listener) const;
  void backward_embeddings(compute::Backend& b, const compute::Tensor& batch, train::GradientListener* listener) const;

  // Queries, keys and values, or their gradients, by heads: [B, T, H, D].
  struct Heads {
    compute::Tensor q, k, v;
  };
  Heads heads(const Attention& block, Id q, Id kv) const;
  compute::Tensor split(const compute::Tensor& x, std::int64_t length) const;  // [B, T, H, D] of [N, d]
  // ids and labels are parts of a batch (ids of source and target in one list); source and target are parts of such
  // rows.
  compute::Tensor ids(const compute::Tensor& batch) const { return batch.slice(0, 0, config_.rows()); }
  compute::Tensor labels(const compute::Tensor& batch) const {
    return batch.slice(0, config_.rows(), config_.target_rows());
  }
  compute::Tensor source(const compute::Tensor& rows) const { return rows.slice(0, 0, config_.source_rows()); }
  compute::Tensor target(const compute::Tensor& rows) const {
    return rows.slice(0, config_.source_rows(), config_.target_rows());
  }

  EncoderDecoderConfig config_;
  const train::ParameterSet& set_;
  const EncoderDecoderParameters& ids_;
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
  Norm encoder_norm_{}, decoder_norm_{};
  std::uint64_t next_stream_;  // for dropout
  // [Ns + Nt, d]: the embeddings, and the gradient by whatever is the state of encoder (first) and decoder at a moment.
  Id tokens_ = 0, embedded_ = 0, dstate_ = 0;
  Id logits_ = 0, raw_logits_ = 0, kept_logits_ = 0, losses_ = 0, lse_ = 0, loss_ = 0;
  compute::Tensor loss_scale_, dropout_step_;
};

}  // namespace assay::models
