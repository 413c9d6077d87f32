#include "assay/verification/encoder_decoder_reference.hpp"

#include <algorithm>
#include <cmath>

#include "double_products.hpp"

namespace assay::verification {

namespace {

constexpr double norm_eps = 1e-5;  // PyTorch's

using Mask = const std::vector<float>*;  // null: everything passes

double factor_of(Mask mask, std::size_t element) { return mask ? static_cast<double>((*mask)[element]) : 1; }

// x := x times the mask. What is dropped is 0, whatever it was.
void drop(Matrix& x, Mask mask) {
  if (!mask) return;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double factor = factor_of(mask, i);
    x.values[i] = factor == 0 ? 0 : x.values[i] * factor;
  }
}

struct Norm {
  Matrix normal;  // (x - mean) / deviation
  std::vector<double> rstd;
};

// Backward reads these.
struct Attention {
  std::size_t queries = 0, keys = 0;  // of a sequence
  bool causal = false;
  Matrix x, memory, q, k, v, heads;
  std::vector<Matrix> probabilities;  // by sequence and head, [queries, keys], before the dropout
  Mask of_weights = nullptr, of_result = nullptr;
  Norm norm;
};
struct FeedForward {
  Matrix x, state, hidden;  // state: before the ReLU; hidden: after the dropout
  std::vector<bool> passes;
  Mask of_hidden = nullptr, of_result = nullptr;
  Norm norm;
};
struct EncoderLayer {
  Attention self;
  FeedForward feed_forward;
};
struct DecoderLayer {
  Attention self, cross;
  FeedForward feed_forward;
};

class Reference {
 public:
  using Block = models::BlockParameters;

  Reference(const models::EncoderDecoderConfig& config, const models::EncoderDecoderParameters& ids,
            ReferenceParameters& parameters, const EncoderDecoderDecisions& decisions)
      : ids_(ids),
        parameters_(parameters),
        decisions_(decisions),
        vocabulary_(static_cast<std::size_t>(config.vocab_size)),
        batch_(static_cast<std::size_t>(config.batch_size)),
        source_(static_cast<std::size_t>(config.sequence_length)),
        target_(source_ - 1),
        heads_(static_cast<std::size_t>(config.heads)),
        width_(static_cast<std::size_t>(config.d_model)),
        head_dim_(width_ / heads_) {}

  EncoderDecoderResult run(const std::vector<std::int64_t>& batch) {
    const auto part = [&](std::size_t first, std::size_t count) {
      return std::vector<std::int64_t>(batch.begin() + static_cast<std::ptrdiff_t>(first),
                                       batch.begin() + static_cast<std::ptrdiff_t>(first + count));
    };
    const std::size_t sources = batch_ * source_, targets = batch_ * target_;
    const std::vector<std::int64_t> source = part(0, sources), inputs = part(sources, targets);

    std::vector<EncoderLayer> encoder;
    std::vector<DecoderLayer> decoder;
    Matrix x = embedded(source, source_);
    for (const auto& p : ids_.encoder) {
      EncoderLayer& l = encoder.emplace_back();
      x = attend(l.self, p.self_attention, x, x, source_, source_, false);
      x = feed(l.feed_forward, p.feed_forward, x);
    }
    Norm encoder_norm, decoder_norm;
    const Matrix memory = normed(encoder_norm, x, ids_.encoder_norm, ids_.encoder_norm + 1);
    x = embedded(inputs, target_);
    for (const auto& p : ids_.decoder) {
      DecoderLayer& l = decoder.emplace_back();
      x = attend(l.self, p.self_attention, x, x, target_, target_, true);
      x = attend(l.cross, p.cross_attention, x, memory, target_, source_, false);
      x = feed(l.feed_forward, p.feed_forward, x);
    }
    const Matrix result = normed(decoder_norm, x, ids_.decoder_norm, ids_.decoder_norm + 1);
    Matrix logits = parameters_.project(result, ids_.head_weight);
    add_bias(logits, ids_.head_bias);
    out_.logits.assign(logits.values.begin(), logits.values.end());
    const Matrix dlogits = loss_of(std::move(logits), part(sources + targets, targets));

    parameters_.keep_product(ids_.head_weight, dlogits, result);
    keep_bias(dlogits, ids_.head_bias);
    Matrix dtarget = norm_backward(decoder_norm, parameters_.project_back(dlogits, ids_.head_weight), ids_.decoder_norm,
                                   ids_.decoder_norm + 1);
    Matrix dmemory(sources, width_);
    for (std::size_t l = decoder.size(); l-- > 0;) {
      const auto& p = ids_.decoder[l];
      dtarget = feed_backward(decoder[l].feed_forward, p.feed_forward, dtarget);
      Matrix dkeys;
      dtarget = attend_backward(decoder[l].cross, p.cross_attention, dtarget, dkeys);
      add_to(dmemory, dkeys);
      dtarget = attend_backward(decoder[l].self, p.self_attention, dtarget, dkeys);
      add_to(dtarget, dkeys);
    }
    Matrix dsource = norm_backward(encoder_norm, dmemory, ids_.encoder_norm, ids_.encoder_norm + 1);
    for (std::size_t l = encoder.size(); l-- > 0;) {
      const auto& p = ids_.encoder[l];
      dsource = feed_backward(encoder[l].feed_forward, p.feed_forward, dsource);
      Matrix dkeys;
      dsource = attend_backward(encoder[l].self, p.self_attention, dsource, dkeys);
      add_to(dsource, dkeys);
    }
    embed_backward(source, dsource, inputs, dtarget);
    return std::move(out_);
  }

 private:
  using Id = train::ParameterSet::Id;

  void keep_bias(const Matrix& dy, Id id) { parameters_.keep(id, sums_of_columns(dy)); }
  static std::vector<double> sums_of_columns(const Matrix& dy) {
    std::vector<double> sums(dy.columns);
    for (std::size_t r = 0; r < dy.rows; ++r)
      for (std::size_t j = 0; j < dy.columns; ++j) sums[j] += dy.row(r)[j];
    return sums;
  }
  // Of a vector's elements from `first` on.
  void add_bias(Matrix& y, Id id, std::size_t first = 0) const {
    const std::vector<double> bias = parameters_.vector(id);
    for (std::size_t r = 0; r < y.rows; ++r)
      for (std::size_t j = 0; j < y.columns; ++j) y.row(r)[j] += bias[first + j];
  }

  // The next place of dropout in the order of the forward.
  Mask next_mask() { return decisions_.masks.empty() ? nullptr : &decisions_.masks.at(next_mask_++); }

  // ---- embeddings and loss

  static std::vector<std::int64_t> places_of(std::size_t rows, std::size_t length) {
    std::vector<std::int64_t> places(rows);
    for (std::size_t r = 0; r < rows; ++r) places[r] = static_cast<std::int64_t>(r % length);
    return places;
  }
  Matrix embedded(const std::vector<std::int64_t>& tokens, std::size_t length) const {
    Matrix x = parameters_.rows(ids_.embedding, tokens);
    add_to(x, parameters_.rows(ids_.positions, places_of(tokens.size(), length)));
    return x;
  }
  // Tokens and places occur often: their rows are added up.
  void embed_backward(const std::vector<std::int64_t>& source, const Matrix& dsource,
                      const std::vector<std::int64_t>& inputs, const Matrix& dtarget) {
    const Matrix dx = stacked(dsource, dtarget);
    parameters_.keep_product(ids_.embedding, stacked(one_hot(source, vocabulary_), one_hot(inputs, vocabulary_)), dx);
    const std::size_t all_places = parameters_.rows_of(ids_.positions);  // those beyond this sequence have no gradient
    parameters_.keep_product(ids_.positions,
                             stacked(one_hot(places_of(source.size(), source_), all_places),
                                     one_hot(places_of(inputs.size(), target_), all_places)),
                             dx);
  }

  // Sets the loss; returns its gradient by the logits.
  Matrix loss_of(Matrix logits, const std::vector<std::int64_t>& labels) {
    const auto count = static_cast<double>(labels.size());
    for (std::size_t r = 0; r < logits.rows; ++r) {
      double* row = logits.row(r);
      const auto label = static_cast<std::size_t>(labels[r]);
      const double most = *std::max_element(row, row + logits.columns);
      double total = 0;
      for (std::size_t j = 0; j < logits.columns; ++j) total += std::exp(row[j] - most);
      out_.loss += (std::log(total) + most - row[label]) / count;
      for (std::size_t j = 0; j < logits.columns; ++j) row[j] = std::exp(row[j] - most) / total / count;
      row[label] -= 1 / count;
    }
    return logits;
  }

  // ---- norms

  Matrix normed(Norm& n, const Matrix& x, Id weight_id, Id bias_id) const {
    const std::vector<double> weight = parameters_.vector(weight_id), bias = parameters_.vector(bias_id);
    n = {Matrix(x.rows, x.columns), std::vector<double>(x.rows)};
    Matrix y(x.rows, x.columns);
    const auto columns = static_cast<double>(x.columns);
    for (std::size_t r = 0; r < x.rows; ++r) {
      double sum = 0, squares = 0;
      for (std::size_t j = 0; j < x.columns; ++j) sum += x.row(r)[j];
      const double mean = sum / columns;
      for (std::size_t j = 0; j < x.columns; ++j) squares += (x.row(r)[j] - mean) * (x.row(r)[j] - mean);
      n.rstd[r] = 1 / std::sqrt(squares / columns + norm_eps);
      for (std::size_t j = 0; j < x.columns; ++j) {
        n.normal.row(r)[j] = (x.row(r)[j] - mean) * n.rstd[r];
        y.row(r)[j] = n.normal.row(r)[j] * weight[j] + bias[j];
      }
    }
    return y;
  }
  Matrix norm_backward(const Norm& n, const Matrix& dy, Id weight_id, Id bias_id) {
    const std::vector<double> weight = parameters_.vector(weight_id);
    Matrix dx(dy.rows, dy.columns);
    std::vector<double> dweight(dy.columns);
    const auto columns = static_cast<double>(dy.columns);
    std::vector<double> scaled(dy.columns);  // the gradient by `normal`
    for (std::size_t r = 0; r < dy.rows; ++r) {
      const double* normal = n.normal.row(r);
      double mean = 0, along = 0;
      for (std::size_t j = 0; j < dy.columns; ++j) {
        dweight[j] += dy.row(r)[j] * normal[j];
        scaled[j] = dy.row(r)[j] * weight[j];
        mean += scaled[j] / columns;
        along += scaled[j] * normal[j] / columns;
      }
      for (std::size_t j = 0; j < dy.columns; ++j) dx.row(r)[j] = n.rstd[r] * (scaled[j] - mean - normal[j] * along);
    }
    parameters_.keep(weight_id, dweight);
    keep_bias(dy, bias_id);
    return dx;
  }

  // ---- attention

  // Rows [first, first + d) of the packed projection.
  Matrix project(const Matrix& x, const Block& p, std::size_t first) const {
    Matrix y = parameters_.project(x, p.in_weight, first, width_);
    add_bias(y, p.in_bias, first);
    return y;
  }
  const double* head_of(const Matrix& x, std::size_t row, std::size_t head) const {
    return x.row(row) + head * head_dim_;
  }
  double dot(const Matrix& a, std::size_t row_a, const Matrix& b, std::size_t row_b, std::size_t head) const {
    const double *x = head_of(a, row_a, head), *y = head_of(b, row_b, head);
    double sum = 0;
    for (std::size_t j = 0; j < head_dim_; ++j) sum += x[j] * y[j];
    return sum;
  }
  // to[row_to] += factor * from[row_from], of one head
  void add_head(Matrix& to, std::size_t row_to, double factor, const Matrix& from, std::size_t row_from,
                std::size_t head) const {
    double* const sum = to.row(row_to) + head * head_dim_;
    const double* const terms = head_of(from, row_from, head);
    for (std::size_t j = 0; j < head_dim_; ++j) sum[j] += factor * terms[j];
  }
  double score_scale() const { return 1 / std::sqrt(static_cast<double>(head_dim_)); }
  // What the dropout makes of the weight of key j for query i.
  double kept(const Attention& a, std::size_t head_of_batch, std::size_t i, std::size_t j) const {
    return factor_of(a.of_weights, (head_of_batch * a.queries + i) * a.keys + j);
  }

  Matrix attend(Attention& a, const Block& p, const Matrix& x, const Matrix& memory, std::size_t queries,
                std::size_t keys, bool causal) {
    a.queries = queries, a.keys = keys, a.causal = causal;
    a.x = x, a.memory = memory;
    a.q = project(x, p, 0), a.k = project(memory, p, width_), a.v = project(memory, p, 2 * width_);
    a.of_weights = next_mask();
    a.heads = Matrix(x.rows, width_);
    for (std::size_t s = 0; s < batch_; ++s)
      for (std::size_t h = 0; h < heads_; ++h) {
        Matrix weights(queries, keys);
        for (std::size_t i = 0; i < queries; ++i) {
          const std::size_t visible = causal ? i + 1 : keys;
          double* const row = weights.row(i);
          for (std::size_t j = 0; j < visible; ++j)
            row[j] = dot(a.q, s * queries + i, a.k, s * keys + j, h) * score_scale();
          const double most = *std::max_element(row, row + visible);
          double total = 0;
          for (std::size_t j = 0; j < visible; ++j) total += row[j] = std::exp(row[j] - most);
          for (std::size_t j = 0; j < visible; ++j) {
            row[j] /= total;
            add_head(a.heads, s * queries + i, row[j] * kept(a, s * heads_ + h, i, j), a.v, s * keys + j, h);
          }
        }
        a.probabilities.push_back(std::move(weights));
      }
    Matrix branch = parameters_.project(a.heads, p.out_weight);
    add_bias(branch, p.out_bias);
    a.of_result = next_mask();
    drop(branch, a.of_result);
    add_to(branch, x);
    return normed(a.norm, branch, p.norm_weight, p.norm_bias);
  }

  // The gradient by x, as queries and as the residual; `dkeys` becomes that by the memory.
  Matrix attend_backward(const Attention& a, const Block& p, const Matrix& dy, Matrix& dkeys) {
    Matrix dx = norm_backward(a.norm, dy, p.norm_weight, p.norm_bias);
    Matrix dbranch = dx;
    drop(dbranch, a.of_result);
    keep_bias(dbranch, p.out_bias);
    parameters_.keep_product(p.out_weight, dbranch, a.heads);
    const Matrix dheads = parameters_.project_back(dbranch, p.out_weight);
    Matrix dq(a.q.rows, width_), dk(a.k.rows, width_), dv(a.v.rows, width_);
    for (std::size_t s = 0; s < batch_; ++s)
      for (std::size_t h = 0; h < heads_; ++h) {
        const std::size_t pair = s * heads_ + h;
        for (std::size_t i = 0; i < a.queries; ++i) {
          const std::size_t visible = a.causal ? i + 1 : a.keys, query = s * a.queries + i;
          const double* const weights = a.probabilities[pair].row(i);
          std::vector<double> dweights(visible);
          double along = 0;
          for (std::size_t j = 0; j < visible; ++j) {
            const double factor = kept(a, pair, i, j);
            dweights[j] = dot(dheads, query, a.v, s * a.keys + j, h) * factor;
            along += dweights[j] * weights[j];
            add_head(dv, s * a.keys + j, weights[j] * factor, dheads, query, h);
          }
          for (std::size_t j = 0; j < visible; ++j) {
            const double dscore = weights[j] * (dweights[j] - along) * score_scale();
            add_head(dq, query, dscore, a.k, s * a.keys + j, h);
            add_head(dk, s * a.keys + j, dscore, a.q, query, h);
          }
        }
      }
    // The packed projection: queries of x, keys and values of the memory.
    Matrix of_x(a.x.rows, 3 * width_), of_memory(a.memory.rows, 3 * width_);
    for (std::size_t r = 0; r < a.x.rows; ++r) std::copy_n(dq.row(r), width_, of_x.row(r));
    for (std::size_t r = 0; r < a.memory.rows; ++r) {
      std::copy_n(dk.row(r), width_, of_memory.row(r) + width_);
      std::copy_n(dv.row(r), width_, of_memory.row(r) + 2 * width_);
    }
    const Matrix dpacked = stacked(of_x, of_memory);
    parameters_.keep_product(p.in_weight, dpacked, stacked(a.x, a.memory));
    keep_bias(dpacked, p.in_bias);
    add_to(dx, parameters_.project_back(dq, p.in_weight, 0, width_));
    dkeys = parameters_.project_back(dk, p.in_weight, width_, width_);
    add_to(dkeys, parameters_.project_back(dv, p.in_weight, 2 * width_, width_));
    return dx;
  }

  // ---- feed-forward

  // Which hidden states pass: by their sign, or as it was decided.
  void decide(FeedForward& f) {
    const std::vector<float>* const states =
        decisions_.states.empty() ? nullptr : &decisions_.states.at(next_states_++);
    f.passes.resize(f.state.values.size());
    double squares = 0, farthest = 0;
    for (std::size_t i = 0; i < f.passes.size(); ++i) {
      const double state = f.state.values[i];
      f.passes[i] = states ? (*states)[i] > 0 : state > 0;
      squares += state * state;
      // What the dropout has taken is 0 on either side.
      if (f.passes[i] != (state > 0) && factor_of(f.of_hidden, i) != 0) farthest = std::fmax(farthest, std::abs(state));
    }
    const double rms = std::sqrt(squares / static_cast<double>(f.passes.size()));
    if (farthest > 0) out_.farthest_state = std::fmax(out_.farthest_state, farthest / rms);
  }

  Matrix feed(FeedForward& f, const Block& p, const Matrix& x) {
    f.x = x;
    f.state = parameters_.project(x, p.in_weight);
    add_bias(f.state, p.in_bias);
    f.of_hidden = next_mask();
    decide(f);
    f.hidden = f.state;
    for (std::size_t i = 0; i < f.passes.size(); ++i)
      if (!f.passes[i]) f.hidden.values[i] = 0;
    drop(f.hidden, f.of_hidden);
    Matrix branch = parameters_.project(f.hidden, p.out_weight);
    add_bias(branch, p.out_bias);
    f.of_result = next_mask();
    drop(branch, f.of_result);
    add_to(branch, x);
    return normed(f.norm, branch, p.norm_weight, p.norm_bias);
  }

  Matrix feed_backward(const FeedForward& f, const Block& p, const Matrix& dy) {
    Matrix dx = norm_backward(f.norm, dy, p.norm_weight, p.norm_bias);
    Matrix dbranch = dx;
    drop(dbranch, f.of_result);
    keep_bias(dbranch, p.out_bias);
    parameters_.keep_product(p.out_weight, dbranch, f.hidden);
    Matrix dstate = parameters_.project_back(dbranch, p.out_weight);
    drop(dstate, f.of_hidden);
    for (std::size_t i = 0; i < f.passes.size(); ++i)
      if (!f.passes[i]) dstate.values[i] = 0;
    keep_bias(dstate, p.in_bias);
    parameters_.keep_product(p.in_weight, dstate, f.x);
    add_to(dx, parameters_.project_back(dstate, p.in_weight));
    return dx;
  }

  const models::EncoderDecoderParameters& ids_;
  ReferenceParameters& parameters_;
  const EncoderDecoderDecisions& decisions_;
  std::size_t vocabulary_, batch_, source_, target_, heads_, width_, head_dim_;
  std::size_t next_mask_ = 0, next_states_ = 0;
  EncoderDecoderResult out_;
};

}  // namespace

std::size_t dropout_places(const models::EncoderDecoderConfig& c) {
  return static_cast<std::size_t>(4 * c.encoder_layers + 6 * c.decoder_layers);
}

EncoderDecoderResult encoder_decoder_reference(const models::EncoderDecoderConfig& config,
                                               const models::EncoderDecoderParameters& ids,
                                               ReferenceParameters& parameters, const std::vector<std::int64_t>& batch,
                                               const EncoderDecoderDecisions& decisions) {
  return Reference(config, ids, parameters, decisions).run(batch);
}

EncoderDecoderGradients encoder_decoder_gradients(const models::EncoderDecoderConfig& config,
                                                  const train::ParameterSet& set,
                                                  const models::EncoderDecoderParameters& ids,
                                                  const std::vector<std::vector<float>>& weights,
                                                  const std::vector<std::int64_t>& batch,
                                                  const EncoderDecoderDecisions& decisions) {
  ParametersOnHost parameters(set, weights);
  EncoderDecoderGradients gradients{encoder_decoder_reference(config, ids, parameters, batch, decisions), {}};
  gradients.gradients = parameters.take_gradients();
  return gradients;
}

}  // namespace assay::verification
