#include "assay/verification/decoder_reference.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "decoder_parameters.hpp"
#include "double_products.hpp"
#include "experts_reference.hpp"
#include "latent_reference.hpp"

namespace assay::verification {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Of one layer; found by their names, whatever places the model has them in.
struct LayerIds {
  LayerIds(const train::ParameterSet& set, std::int64_t layer, const models::DecoderConfig& c, bool of_experts)
      : has_experts(of_experts) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const auto find = [&](const char* name) { return decoder_parameter(set, prefix + name); };
    ln1 = find("ln1.weight"), ln2 = find("ln2.weight");
    if (!c.latent.any()) q = find("attn.q_proj.weight"), k = find("attn.k_proj.weight"), v = find("attn.v_proj.weight");
    output = find("attn.output_proj.weight");
    if (!has_experts) w1 = find("ffn.w1.weight"), w2 = find("ffn.w2.weight"), w3 = find("ffn.w3.weight");
    if (c.post_norms) after1 = find("post_attention_norm.weight"), after2 = find("post_ffw_norm.weight");
    if (c.qk_norm) q_norm = find("attn.q_norm.weight"), k_norm = find("attn.k_norm.weight");
    if (c.output_bias) output_bias = find("attn.output_proj.bias");
    if (c.attention_sinks) sinks = find("attn.sinks");
    if (!c.qkv_bias) return;
    q_bias = find("attn.q_proj.bias"), k_bias = find("attn.k_proj.bias"), v_bias = find("attn.v_proj.bias");
  }
  train::ParameterSet::Id ln1, ln2, q = 0, k = 0, v = 0, output, w1 = 0, w2 = 0, w3 = 0, q_bias = 0, k_bias = 0,
                                    v_bias = 0;
  train::ParameterSet::Id output_bias = 0, sinks = 0, q_norm = 0, k_norm = 0;
  train::ParameterSet::Id after1 = 0, after2 = 0;  // norms at the ends of the branches
  bool has_experts;
};

using Norm = ReferenceNorm;

struct Layer {  // backward reads these
  Matrix input, q, k, v, attention, middle, gate, up, hidden;
  Norm norm1, norm2;
  Matrix branch1, branch2;  // before the norms at their ends
  Norm after1, after2;
  Matrix raw_q, raw_k;  // with norms of heads: what these read
  Norm q_norm, k_norm;
  std::vector<Matrix> probabilities;  // by sequence and head, [T, T]
  std::vector<Matrix> slopes;         // of a soft cap, the same; empty: there is none
  Matrix of_sinks;                    // [sequence and head, T], what a sink takes; with sinks
  std::size_t window = 0;             // 0: a token sees all before it
  std::optional<LatentReference> latent;
  std::optional<ExpertsReference> experts;
};

class Reference {
 public:
  Reference(const models::DecoderConfig& config, const train::ParameterSet& set, ReferenceParameters& parameters,
            const ChosenExperts* chosen)
      : c_(config),
        set_(set),
        parameters_(parameters),
        norms_(config, parameters),
        chosen_(chosen),
        embeddings_(decoder_parameter(set, "token_embeddings.weight")),
        head_(config.tied_embeddings ? embeddings_ : decoder_parameter(set, "lm_head.weight")),
        ln_final_(decoder_parameter(set, "ln_final.weight")),
        context_(static_cast<std::size_t>(config.context_length)),
        batch_(static_cast<std::size_t>(config.batch_size)),
        heads_(static_cast<std::size_t>(config.heads)),
        group_(config.kv_heads > 0 ? static_cast<std::size_t>(config.heads / config.kv_heads) : 1),
        head_dim_(static_cast<std::size_t>(
            config.latent.any() ? config.latent.qk_nope_head_dim + config.latent.qk_rope_head_dim
                                : (config.head_dim > 0 ? config.head_dim : config.d_model / config.heads))),
        kv_width_(heads_ / group_ * head_dim_),
        q_width_(heads_ * head_dim_) {
    for (std::int64_t l = 0; l < config.layers; ++l) layers_.emplace_back(set, l, config, has_experts(l));
  }

  // Returns the loss.
  double run(const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& labels) {
    Matrix x = parameters_.rows(embeddings_, tokens);
    multiply(x, embedding_factor());
    std::vector<Layer> layers;
    for (const LayerIds& p : layers_) {
      const auto l = static_cast<std::int64_t>(layers.size());
      layers.push_back(forward(p, l, std::move(x)));
      x = p.has_experts ? output_of_experts(l, layers.back()) : output_of(p, layers.back());
    }
    const Norm norm = normed(x, ln_final_);
    const Matrix dlogits = loss_of(parameters_.project(norm.y, head_), labels);
    const Matrix dnormed = parameters_.project_back(dlogits, head_);
    Matrix dx = norm_backward(dnormed, x, norm, ln_final_);
    for (std::size_t l = layers.size(); l-- > 0;) {
      dx = backward(layers_[l], static_cast<std::int64_t>(l), layers[l], std::move(dx));
      layers.pop_back();
    }
    multiply(dx, embedding_factor());
    // A token may occur often: its rows are added up. Tied: with the head's share of the gradient.
    const Matrix of_tokens = one_hot(tokens, static_cast<std::size_t>(c_.vocab_size));
    if (head_ == embeddings_) {
      parameters_.keep_product(embeddings_, stacked(dlogits, of_tokens), stacked(norm.y, dx));
    } else {
      parameters_.keep_product(head_, dlogits, norm.y);
      parameters_.keep_product(embeddings_, of_tokens, dx);
    }
    return loss_;
  }

 private:
  using Id = train::ParameterSet::Id;

  bool has_experts(std::int64_t layer) const { return c_.experts.any() && layer >= c_.experts.first_dense_layers; }

  Matrix project(const Matrix& x, Id id) const { return parameters_.project(x, id); }
  // Keeps the gradient by the weight; returns the one by x.
  Matrix project_backward(const Matrix& dy, const Matrix& x, Id id) {
    parameters_.keep_product(id, dy, x);
    return parameters_.project_back(dy, id);
  }

  void add_bias(Matrix& y, Id id) const {
    const std::vector<double> bias = parameters_.vector(id);
    for (std::size_t r = 0; r < y.rows; ++r)
      for (std::size_t j = 0; j < y.columns; ++j) y.row(r)[j] += bias[j];
  }
  void keep_bias(const Matrix& dy, Id id) {
    std::vector<double> sums(dy.columns);
    for (std::size_t r = 0; r < dy.rows; ++r)
      for (std::size_t j = 0; j < dy.columns; ++j) sums[j] += dy.row(r)[j];
    parameters_.keep(id, sums);
  }

  static void multiply(Matrix& x, double factor) {
    for (double& value : x.values) value *= factor;
  }
  double embedding_factor() const { return c_.scaled_embeddings ? std::sqrt(static_cast<double>(c_.d_model)) : 1; }

  Norm normed(const Matrix& x, Id id) const { return norms_.forward(x, id); }
  Matrix norm_backward(const Matrix& dy, const Matrix& x, const Norm& n, Id id) const {
    return norms_.backward(dy, x, n, id);
  }

  // A row for each head of each row, and back.
  Matrix by_heads(Matrix x) const { return merged(std::move(x), head_dim_); }
  static Matrix merged(Matrix x, std::size_t columns) {
    x.rows = x.values.size() / columns, x.columns = columns;
    return x;
  }
  void norm_heads(Matrix& x, Matrix& raw, Norm& norm, Id id) const {
    const std::size_t width = x.columns;
    raw = by_heads(std::move(x));
    norm = normed(raw, id);
    x = merged(norm.y, width);
  }

  void rotate(Matrix& x, std::int64_t layer, double direction) const {
    // Beside layers that see everything others may have a rotation that is not scaled.
    const bool is_full = c_.full_attention_every > 0 && (layer + 1) % c_.full_attention_every == 0;
    const bool is_local = c_.rope_local_theta != 0 && !is_full;
    const RotationReference rotation{is_local ? c_.rope_local_theta : c_.rope_theta,
                                     is_local ? compute::RotaryScaling() : c_.rope_scaling, context_};
    rotation.turn(x, head_dim_, 0, direction);
  }

  // A head of queries reads the head of keys and values of its group: `head` counts those of queries, and a matrix of
  // keys or values is known by its width (of as many heads the two are one). Of latent attention all matrices have as
  // many heads, and values another width.
  std::size_t columns_of_head(const Matrix& x) const { return c_.latent.any() ? x.columns / heads_ : head_dim_; }
  std::size_t first_of_head(const Matrix& x, std::size_t head) const {
    return (x.columns == q_width_ ? head : head / group_) * columns_of_head(x);
  }
  double dot(const Matrix& a, std::size_t row_a, const Matrix& b, std::size_t row_b, std::size_t head) const {
    const double *x = a.row(row_a) + first_of_head(a, head), *y = b.row(row_b) + first_of_head(b, head);
    double sum = 0;
    for (std::size_t j = 0; j < columns_of_head(a); ++j) sum += x[j] * y[j];
    return sum;
  }
  // to[row_to] += factor * from[row_from], of one head
  void add_head(Matrix& to, std::size_t row_to, double factor, const Matrix& from, std::size_t row_from,
                std::size_t head) const {
    double* const sum = to.row(row_to) + first_of_head(to, head);
    const double* const terms = from.row(row_from) + first_of_head(from, head);
    for (std::size_t j = 0; j < columns_of_head(to); ++j) sum[j] += factor * terms[j];
  }
  double score_scale() const {
    const bool has_yarn = c_.rope_scaling.kind == compute::RotaryScalingKind::yarn;
    const double m = has_yarn && c_.latent.mscale_all_dim > 0 && c_.rope_scaling.factor > 1
                         ? 0.1 * c_.latent.mscale_all_dim * std::log(c_.rope_scaling.factor) + 1
                         : 1;
    return m * m / std::sqrt(c_.query_pre_attn_scalar > 0 ? c_.query_pre_attn_scalar : static_cast<double>(head_dim_));
  }

  // The first token that token i sees.
  std::size_t first_seen(const Layer& l, std::size_t i) const {
    const std::size_t of_window = l.window > 0 && i + 1 > l.window ? i + 1 - l.window : 0;
    std::size_t of_document = 0;
    for (const std::int64_t tokens : c_.documents)
      if (of_document + static_cast<std::size_t>(tokens) <= i)
        of_document += static_cast<std::size_t>(tokens);
      else
        break;
    return std::max(of_window, of_document);
  }
  // The window of a layer: every so manyth has none.
  std::size_t window_of(std::int64_t layer) const {
    if (c_.full_attention_every > 0 && layer % c_.full_attention_every == c_.full_attention_every - 1) return 0;
    return static_cast<std::size_t>(c_.sliding_window);
  }
  void attend(const LayerIds& ids, Layer& l) const {
    const double cap = c_.attention_soft_cap;
    const std::vector<double> sinks =
        c_.attention_sinks ? parameters_.vector(ids.sinks) : std::vector<double>(heads_, -INFINITY);
    l.attention = Matrix(l.q.rows, heads_ * columns_of_head(l.v));
    l.of_sinks = Matrix(batch_ * heads_, context_);
    for (std::size_t s = 0; s < batch_; ++s)
      for (std::size_t h = 0; h < heads_; ++h) {
        const std::size_t first = s * context_;
        Matrix p(context_, context_), slopes(cap > 0 ? context_ : 0, context_);
        for (std::size_t i = 0; i < context_; ++i) {
          double largest = sinks[h];  // scores of trained weights overflow even float64's exponential
          for (std::size_t j = first_seen(l, i); j <= i; ++j) {
            double score = dot(l.q, first + i, l.k, first + j, h) * score_scale();
            if (cap > 0) {
              const double bent = std::tanh(score / cap);
              score = cap * bent;
              slopes.row(i)[j] = 1 - bent * bent;
            }
            p.row(i)[j] = score;
            largest = std::max(largest, score);
          }
          const double of_sink = std::exp(sinks[h] - largest);
          double total = of_sink;
          for (std::size_t j = first_seen(l, i); j <= i; ++j) total += p.row(i)[j] = std::exp(p.row(i)[j] - largest);
          l.of_sinks.row(s * heads_ + h)[i] = of_sink / total;
          for (std::size_t j = first_seen(l, i); j <= i; ++j) {
            p.row(i)[j] /= total;
            add_head(l.attention, first + i, p.row(i)[j], l.v, first + j, h);
          }
        }
        l.probabilities.push_back(std::move(p));
        if (cap > 0) l.slopes.push_back(std::move(slopes));
      }
  }
  void attend_backward(const LayerIds& ids, const Layer& l, const Matrix& dy, Matrix& dq, Matrix& dk, Matrix& dv) {
    std::vector<double> dsinks(heads_);
    for (std::size_t s = 0; s < batch_; ++s)
      for (std::size_t h = 0; h < heads_; ++h) {
        const std::size_t first = s * context_;
        const Matrix& p = l.probabilities[s * heads_ + h];
        for (std::size_t i = 0; i < context_; ++i) {
          std::vector<double> dp(i + 1);
          double along = 0;
          for (std::size_t j = first_seen(l, i); j <= i; ++j) {
            dp[j] = dot(dy, first + i, l.v, first + j, h);
            along += dp[j] * p.row(i)[j];
            add_head(dv, first + j, p.row(i)[j], dy, first + i, h);
          }
          dsinks[h] -= l.of_sinks.row(s * heads_ + h)[i] * along;
          for (std::size_t j = first_seen(l, i); j <= i; ++j) {
            const double slope = l.slopes.empty() ? 1 : l.slopes[s * heads_ + h].row(i)[j];
            const double dscore = p.row(i)[j] * (dp[j] - along) * slope * score_scale();
            add_head(dq, first + i, dscore, l.k, first + j, h);
            add_head(dk, first + j, dscore, l.q, first + i, h);
          }
        }
      }
    if (c_.attention_sinks) parameters_.keep(ids.sinks, dsinks);
  }

  // What is added to the residual stream, and its gradient by the branch.
  Matrix end_of(Matrix branch, Id norm, Matrix& kept, Norm& after) const {
    if (!c_.post_norms) return branch;
    after = normed(branch, norm);
    kept = std::move(branch);
    return after.y;
  }
  Matrix end_backward(const Matrix& dx, const Matrix& kept, const Norm& after, Id norm) {
    return c_.post_norms ? norm_backward(dx, kept, after, norm) : dx;
  }

  void make_heads(const LayerIds& p, std::int64_t layer, Layer& l) const {
    l.q = project(l.norm1.y, p.q), l.k = project(l.norm1.y, p.k), l.v = project(l.norm1.y, p.v);
    if (c_.qkv_bias) add_bias(l.q, p.q_bias), add_bias(l.k, p.k_bias), add_bias(l.v, p.v_bias);
    if (c_.qk_norm) norm_heads(l.q, l.raw_q, l.q_norm, p.q_norm), norm_heads(l.k, l.raw_k, l.k_norm, p.k_norm);
    rotate(l.q, layer, 1);
    rotate(l.k, layer, 1);
  }
  // By the first norm's result.
  Matrix heads_backward(const LayerIds& p, std::int64_t layer, const Layer& l, Matrix dq, Matrix dk, const Matrix& dv) {
    rotate(dq, layer, -1);
    rotate(dk, layer, -1);
    if (c_.qk_norm) {
      dq = merged(norm_backward(by_heads(std::move(dq)), l.raw_q, l.q_norm, p.q_norm), q_width_);
      dk = merged(norm_backward(by_heads(std::move(dk)), l.raw_k, l.k_norm, p.k_norm), kv_width_);
    }
    if (c_.qkv_bias) keep_bias(dq, p.q_bias), keep_bias(dk, p.k_bias), keep_bias(dv, p.v_bias);
    Matrix dinput = project_backward(dq, l.norm1.y, p.q);
    add_to(dinput, project_backward(dk, l.norm1.y, p.k));
    add_to(dinput, project_backward(dv, l.norm1.y, p.v));
    return dinput;
  }

  Layer forward(const LayerIds& p, std::int64_t layer, Matrix input) const {
    Layer l;
    l.window = window_of(layer);
    l.input = std::move(input);
    l.norm1 = normed(l.input, p.ln1);
    if (c_.latent.any())
      l.latent.emplace(c_, set_, parameters_, layer).forward(l.norm1.y, l.q, l.k, l.v);
    else
      make_heads(p, layer, l);
    attend(p, l);
    Matrix branch = project(l.attention, p.output);
    if (c_.output_bias) add_bias(branch, p.output_bias);
    l.middle = end_of(std::move(branch), p.after1, l.branch1, l.after1);
    add_to(l.middle, l.input);
    l.norm2 = normed(l.middle, p.ln2);
    if (p.has_experts) return l;
    l.gate = project(l.norm2.y, p.w1);
    l.up = project(l.norm2.y, p.w3);
    l.hidden = Matrix(l.gate.rows, l.gate.columns);
    for (std::size_t i = 0; i < l.hidden.values.size(); ++i)
      l.hidden.values[i] = activated(l.gate.values[i]).value * l.up.values[i];
    return l;
  }
  struct Activated {
    double value, slope;
  };
  Activated activated(double g) const {
    if (c_.gate_activation == compute::Activation::silu) {
      const double s = sigmoid(g);
      return {g * s, s * (1 + g * (1 - s))};
    }
    // 0.5 g (1 + tanh(u)), u = sqrt(2 / pi) (g + 0.044715 g^3)
    const double root = std::sqrt(2 / std::numbers::pi);
    const double t = std::tanh(root * (g + 0.044715 * g * g * g));
    return {0.5 * g * (1 + t), 0.5 * (1 + t) + 0.5 * g * (1 - t * t) * root * (1 + 3 * 0.044715 * g * g)};
  }
  Matrix output_of(const LayerIds& p, Layer& l) const {
    Matrix x = end_of(project(l.hidden, p.w2), p.after2, l.branch2, l.after2);
    add_to(x, l.middle);
    return x;
  }

  Matrix output_of_experts(std::int64_t layer, Layer& l) const {
    l.experts.emplace(c_, set_, parameters_, layer);
    Matrix x = l.experts->forward(l.norm2.y, chosen_);
    add_to(x, l.middle);
    return x;
  }

  // By the second norm's result; keeps the gradients by the weights.
  Matrix feed_forward_backward(const LayerIds& p, const Layer& l, const Matrix& dx) {
    const Matrix dhidden = project_backward(end_backward(dx, l.branch2, l.after2, p.after2), l.hidden, p.w2);
    Matrix dgate(l.gate.rows, l.gate.columns);
    Matrix dup(l.up.rows, l.up.columns);
    for (std::size_t i = 0; i < dhidden.values.size(); ++i) {
      const Activated f = activated(l.gate.values[i]);
      dup.values[i] = dhidden.values[i] * f.value;
      dgate.values[i] = dhidden.values[i] * l.up.values[i] * f.slope;
    }
    Matrix dnormed = project_backward(dgate, l.norm2.y, p.w1);
    add_to(dnormed, project_backward(dup, l.norm2.y, p.w3));
    return dnormed;
  }

  Matrix backward(const LayerIds& p, std::int64_t layer, const Layer& l, Matrix dx) {
    const Matrix dnormed = l.experts ? l.experts->backward(dx) : feed_forward_backward(p, l, dx);
    add_to(dx, norm_backward(dnormed, l.middle, l.norm2, p.ln2));

    const Matrix dbranch = end_backward(dx, l.branch1, l.after1, p.after1);
    if (c_.output_bias) keep_bias(dbranch, p.output_bias);
    const Matrix dattention = project_backward(dbranch, l.attention, p.output);
    Matrix dq(l.q.rows, l.q.columns), dk(l.q.rows, l.k.columns), dv(l.q.rows, l.v.columns);
    attend_backward(p, l, dattention, dq, dk, dv);
    const Matrix dinput = l.latent ? l.latent->backward(std::move(dq), dk, dv)
                                   : heads_backward(p, layer, l, std::move(dq), std::move(dk), dv);
    add_to(dx, norm_backward(dinput, l.input, l.norm1, p.ln1));
    return dx;
  }

  // Sets the loss; returns its gradient by the logits.
  Matrix loss_of(Matrix logits, const std::vector<std::int64_t>& labels) {
    double valid = 0;
    for (const std::int64_t label : labels) valid += label >= 0 ? 1 : 0;
    for (std::size_t r = 0; r < logits.rows; ++r) {
      double* row = logits.row(r);
      const double cap = c_.logit_soft_cap;
      std::vector<double> slopes(cap > 0 ? logits.columns : 0);
      for (std::size_t j = 0; j < slopes.size(); ++j) {
        const double t = std::tanh(row[j] / cap);
        row[j] = cap * t, slopes[j] = 1 - t * t;
      }
      const double largest = *std::max_element(row, row + logits.columns);
      double total = 0;
      for (std::size_t j = 0; j < logits.columns; ++j) total += std::exp(row[j] -= largest);
      const double of_label = labels[r] >= 0 ? row[static_cast<std::size_t>(labels[r])] : 0;
      if (labels[r] >= 0) loss_ += (std::log(total) - of_label) / valid;
      for (std::size_t j = 0; j < logits.columns; ++j) row[j] = labels[r] >= 0 ? std::exp(row[j]) / total / valid : 0;
      if (labels[r] >= 0) row[static_cast<std::size_t>(labels[r])] -= 1 / valid;
      for (std::size_t j = 0; j < slopes.size(); ++j) row[j] *= slopes[j];
    }
    return logits;
  }

  const models::DecoderConfig& c_;
  const train::ParameterSet& set_;
  ReferenceParameters& parameters_;
  NormsReference norms_;
  const ChosenExperts* chosen_;
  Id embeddings_, head_, ln_final_;
  std::vector<LayerIds> layers_;
  std::size_t context_, batch_, heads_, group_, head_dim_, kv_width_, q_width_;
  double loss_ = 0;
};

}  // namespace

double decoder_reference(const models::DecoderConfig& config, const train::ParameterSet& set,
                         ReferenceParameters& parameters, const std::vector<std::int64_t>& tokens,
                         const std::vector<std::int64_t>& labels, const ChosenExperts* chosen) {
  return Reference(config, set, parameters, chosen).run(tokens, labels);
}

DecoderGradients decoder_gradients(const models::DecoderConfig& config, const train::ParameterSet& set,
                                   const std::vector<std::vector<float>>& weights,
                                   const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& labels,
                                   const ChosenExperts* chosen) {
  ParametersOnHost parameters(set, weights);
  const double loss = decoder_reference(config, set, parameters, tokens, labels, chosen);
  return {loss, parameters.take_gradients()};
}

}  // namespace assay::verification
