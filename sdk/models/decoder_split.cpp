// A decoder whose products are split over ranks ("tensor parallel"). With R ranks each has
//
//   the products of its heads, of its part of the feed-forward and of its words of the vocabulary, over all N rows;
//   norms and the residual stream of its N / R rows: their outputs are gathered before a product ("gather"), and the
//   terms of a product's output, one from each rank, are summed to the rows' ranks ("sum").
//
// The embedding is split by columns, so that all ranks look up equally much, and the ranks change columns for rows
// ("transpose"). Logits are never gathered: for each row the ranks exchange the log-sum-exp of their words, and the
// loss of the label if it is theirs, and take the log-sum-exp of log-sum-exps. In chunks of the rows they exchange one
// chunk after the other.
//
// If every rank has all rows of norms and residual stream (DecoderSplit::sequence_parallel = false), nothing is
// gathered, and sums are made on all ranks.
//
// In a layer's backward every exchange has something to run beside. The exchanges of forward, of the head's norm and of
// the embedding have not, nor has the last sum.
//
//   gather of dx               the weight gradient of the layer above
//   gather of normed2          the products back through w2 and gate-up
//   sum of dnormed2            the weight gradient of w2
//   gather of dx after norm 2  the weight gradient of gate-up
//   gather of normed1          attention
//   sum of dnormed1            the weight gradient of the output projection
//
// What a norm gave is made again and gathered again for the weight gradient rather than kept, since N / R rows of it
// are this rank's, and keeping all N of them would cost more than it saves.
#include <algorithm>

#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using compute::Tensor;
using Ticket = train::PartExchange::Ticket;

std::vector<DecoderPart> decoder_parts(const DecoderConfig& config, const train::ParameterSet& own,
                                       const train::ParameterSet& whole) {
  std::vector<DecoderPart> parts;
  const std::int64_t rank = config.experts.is_over_ranks() ? config.experts.rank : config.split.rank;
  for (const train::Parameter& p : own.all()) {
    const auto found = std::find_if(whole.all().begin(), whole.all().end(),
                                    [&](const train::Parameter& w) { return w.name == p.name; });
    if (found == whole.all().end()) throw Error(ASSAY_INTERNAL, "no whole parameter is named '" + p.name + "'");
    DecoderPart part{.whole = static_cast<train::ParameterSet::Id>(found - whole.all().begin())};
    for (std::size_t d = 0; d < p.dims.size(); ++d)
      if (p.dims[d] != found->dims[d]) part = {part.whole, static_cast<int>(d), rank * p.dims[d], p.dims[d]};
    parts.push_back(part);
  }
  return parts;
}

train::ElementRange decoder_shared_range(const DecoderConfig& config, const train::ParameterSet& own,
                                         const DecoderParameters& ids) {
  if (!config.is_split()) return {};
  train::ParameterSet::Id first = own.all().size();
  if (config.qk_norm && !ids.layers.empty()) first = ids.layers.back().q_norm;
  if (config.split.sequence_parallel) first = ids.ln_final;
  return first < own.all().size() ? train::ElementRange{own.all()[first].offset, own.elements_before(own.all().size())}
                                  : train::ElementRange{};
}

void DecoderModel::plan_split() {
  DecoderConfig whole = config_;
  whole.split = {};
  add_decoder_parameters(unsplit_, whole);
  parts_ = decoder_parts(config_, set_, unsplit_);
  std::int64_t largest = 0;
  for (const train::Parameter& p : unsplit_.all()) largest = std::max(largest, p.elements());
  split_.drawn = plan_.add("parameter.drawn", config_.precision.parameter, {largest});

  const std::int64_t n = config_.rows(), w = config_.own_width(), ranks = config_.split.ranks;
  const DType act = config_.precision.activation;
  split_.embedded = plan_.add("embedding.own_columns", act, {config_.split.sequence_parallel ? n : ranks * n, w});
  split_.received = plan_.add("embedding.own_rows", act, {n, w});
  split_.sent_gradient = plan_.add("embedding.gradient.own_rows", act, {n, w});
  split_.gradient = plan_.add("embedding.gradient.own_columns", act, {n, w});
  split_.parts_of_loss = plan_.add("losses.parts", DType::f32, {ranks * 2 * chunk_rows()});
  split_.part_log_sums = plan_.add("losses.parts.lse", DType::f32, {chunk_rows(), ranks});
}

// Each parameter is drawn whole, since its numbers depend on their places in it, and the part is copied.
void DecoderModel::draw_parts(Backend& b, std::uint64_t seed) const {
  b.run(op::Fill{.x = set_.all_values(), .value = 0.0});
  for (train::ParameterSet::Id id = 0; id < parts_.size(); ++id) {
    const train::Parameter& p = unsplit_.all()[parts_[id].whole];
    if (p.init_std == 0) {
      b.run(op::Fill{.x = set_.value(id), .value = p.init_mean});
      continue;
    }
    const Tensor drawn = plan_[split_.drawn].slice(0, 0, p.elements()).view({p.dims[0], p.dims[1]});
    b.run(
        op::RandomNormal{.x = drawn, .seed = seed, .stream = parts_[id].whole, .mean = p.init_mean, .std = p.init_std});
    b.run(op::Copy{.to = set_.value(id), .from = parts_[id].of(drawn)});
  }
  b.run(op::Fill{.x = set_.all_gradients(), .value = 0.0});  // in whose place a parameter may have been drawn
  set_.refresh_compute_copy(b);
}

// ---- what ranks exchange -------------------------------------------------------------------------------------------

Tensor DecoderModel::own_rows(const Tensor& all) const {
  if (!config_.is_split() || !config_.split.sequence_parallel || !all) return all;
  return all.slice(0, config_.split.rank * config_.own_rows(), config_.own_rows());
}

compute::ClassColumns DecoderModel::own_classes() const {
  return {.first = config_.split.rank * config_.own_words(), .each = 1, .all = config_.vocab_size};
}

// Of numbers that have all rows on every rank nothing is gathered.
Ticket DecoderModel::start_gathering(Backend& b, const Tensor& all) const {
  if (!config_.is_split() || !config_.split.sequence_parallel) return 0;
  return exchange(b, own_rows(all), all, [&](train::PartExchange& ranks) { return ranks.gather(b, all); });
}

Ticket DecoderModel::start_summing(Backend& b, const Tensor& terms) const {
  if (!config_.is_split()) return 0;
  return exchange(b, terms, own_rows(terms), [&](train::PartExchange& ranks) {
    return config_.split.sequence_parallel ? ranks.sum_to_parts(b, terms) : ranks.sum(b, terms);
  });
}

void DecoderModel::wait(Backend& b, Ticket ticket, const Tensor& used) const {
  if (ticket == 0) return;
  if (!is_planning_) return exchange_->wait(ticket);
  note_use(b, used);
}

// ---- forward -------------------------------------------------------------------------------------------------------

void DecoderModel::embed_parts(Backend& b, const Tensor& ids, const Tensor& x) const {
  const std::int64_t n = config_.rows(), ranks = config_.split.ranks, w = config_.own_width();
  const Tensor &table = set_.compute(ids_.embeddings), &embedded = plan_[split_.embedded];
  Tensor columns = plan_[split_.received];
  if (config_.split.sequence_parallel) {
    b.run(op::EmbeddingForward{.ids = ids, .table = table, .out = embedded});
    wait(b,
         exchange(b, embedded, columns,
                  [&](train::PartExchange& ranks) { return ranks.transpose(b, embedded, columns); }),
         columns);
    note_use(b, embedded);
  } else {
    const Tensor own = embedded.slice(0, config_.split.rank * n, n);
    b.run(op::EmbeddingForward{.ids = ids, .table = table, .out = own});
    columns = embedded;
    wait(b, exchange(b, own, columns, [&](train::PartExchange& ranks) { return ranks.gather(b, columns); }), columns);
  }
  const std::int64_t rows = config_.own_rows();
  b.run(op::Copy{.to = x.view({rows, ranks, w}), .from = columns.view({ranks, rows, w}).transposed(0, 1)});
}

void DecoderModel::split_loss(Backend& b, const Tensor& labels, std::int64_t valid_rows,
                              std::int64_t micro_batch) const {
  gather_rows(b, plan_[final_normed_]);
  for (std::int64_t first = 0; first < config_.rows(); first += chunk_rows()) {
    const std::int64_t count = std::min(chunk_rows(), config_.rows() - first);
    const Tensor of_labels = labels.slice(0, first, count);
    split_losses(b, make_logits(b, first, count), of_labels, first, micro_batch);
    if (!makes_loss_in_chunks()) continue;
    split_logits_backward(b, of_labels, valid_rows, first);
    const Tensor dlogits = plan_[logits_].slice(0, 0, count);
    b.run(op::Matmul{.a = dlogits,
                     .b = plan_[final_normed_].slice(0, first, count),
                     .c = set_.gradient(ids_.lm_head),
                     .transpose_a = true,
                     .accumulate = first > 0});
    b.run(op::Matmul{.a = dlogits, .b = set_.compute(ids_.lm_head), .c = plan_[dfinal_].slice(0, first, count)});
  }
  // The mean over all micro-batches, when the last one's losses are there.
  if (micro_batch + 1 == config_.accumulation_steps)
    b.run(op::Sum{.x = plan_[losses_], .out = plan_[loss_], .factor = 1.0F / static_cast<float>(valid_rows)});
}

// Of rows from `first` on. The loss of a row is what its label's part found, and by how much all words have more to
// them than that part's.
void DecoderModel::split_losses(Backend& b, const Tensor& logits, const Tensor& labels, std::int64_t first,
                                std::int64_t micro_batch) const {
  const std::int64_t n = config_.rows(), count = labels.elements(), ranks = config_.split.ranks;
  const Tensor parts = plan_[split_.parts_of_loss].slice(0, 0, ranks * 2 * count).view({ranks, 2, count});
  const Tensor own = parts.slice(0, config_.split.rank, 1).view({2, count});
  b.run(op::CrossEntropyForward{.logits = logits,
                                .labels = labels,
                                .losses = own.slice(0, 1, 1).view({count}),
                                .lse = own.slice(0, 0, 1).view({count}),
                                .classes = own_classes(),
                                .soft_cap = cap_of_loss()});
  wait(b, exchange(b, own, parts, [&](train::PartExchange& ranks) { return ranks.gather(b, parts); }), parts);
  const Tensor log_sums = plan_[split_.part_log_sums].slice(0, 0, count);
  const Tensor losses = plan_[losses_].slice(0, micro_batch * (1 + ranks) * n, (1 + ranks) * n);
  b.run(op::Copy{.to = log_sums.view({count, 1, ranks}), .from = parts.slice(1, 0, 1).transposed(0, 2)});
  b.run(op::CrossEntropyForward{.logits = log_sums,
                                .labels = labels,
                                .losses = losses.slice(0, first, count),
                                .lse = plan_[lse_].slice(0, first, count),
                                .classes = {.first = 0, .each = config_.own_words(), .all = config_.vocab_size}});
  b.run(op::Copy{.to = losses.slice(0, n, ranks * n).view({ranks, 1, n}).slice(2, first, count),
                 .from = parts.slice(1, 1, 1)});
}

// ---- backward ------------------------------------------------------------------------------------------------------

// For the rows of `labels`, starting at row `first`: in the place of their logits.
void DecoderModel::split_logits_backward(Backend& b, const Tensor& labels, std::int64_t valid_rows,
                                         std::int64_t first) const {
  const Tensor logits = plan_[logits_].slice(0, 0, labels.elements());
  b.run(op::CrossEntropyBackward{.logits = logits,
                                 .labels = labels,
                                 .lse = plan_[lse_].slice(0, first, labels.elements()),
                                 .scale = 1.0F / static_cast<float>(valid_rows),
                                 .loss_scale = loss_scale_,
                                 .dlogits = logits,
                                 .classes = own_classes(),
                                 .soft_cap = cap_of_loss()});
}

void DecoderModel::split_backward(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows) const {
  const Tensor &dlogits = plan_[logits_], &dfinal = plan_[dfinal_], &dx = plan_[dx_];
  if (!makes_loss_in_chunks()) {  // in chunks, forward has made all this
    split_logits_backward(b, labels, valid_rows, 0);
    b.run(op::Matmul{.a = dlogits, .b = set_.compute(ids_.lm_head), .c = dfinal});
  }
  const Ticket summing = start_summing(b, dfinal);
  if (!makes_loss_in_chunks()) weight_gradient(b, dlogits, plan_[final_normed_], ids_.lm_head);
  wait(b, summing, dfinal);
  norm_backward(b, ids_.ln_final, own_rows(dfinal), plan_[final_input_], plan_[final_rstd_], {}, own_rows(dx), {});
  Ticket gathering = config_.layers > 0 ? start_gathering(b, dx) : 0;
  for (std::int64_t l = config_.layers - 1; l >= 0; --l) split_layer_backward(b, l, gathering);

  const std::int64_t n = config_.rows(), w = config_.own_width(), ranks = config_.split.ranks;
  const Tensor &gradient = plan_[split_.gradient], &sent = plan_[split_.sent_gradient];
  if (config_.split.sequence_parallel) {
    const std::int64_t rows = config_.own_rows();
    b.run(op::Copy{.to = sent.view({ranks, rows, w}), .from = own_rows(dx).view({rows, ranks, w}).transposed(0, 1)});
    wait(b, exchange(b, sent, gradient, [&](train::PartExchange& ranks) { return ranks.transpose(b, sent, gradient); }),
         gradient);
    note_use(b, sent);
  } else {
    b.run(op::Copy{.to = gradient.view({n, w}), .from = dx.slice(1, config_.split.rank * w, w)});
  }
  b.run(op::EmbeddingBackward{.ids = ids, .dout = gradient, .dtable = set_.gradient(ids_.embeddings)});
}

// `gathering`: of the gradient by the layer's end; then of that by its beginning.
void DecoderModel::split_layer_backward(Backend& b, std::int64_t layer, Ticket& gathering) const {
  const DecoderLayerParameters& p = ids_.layers[static_cast<std::size_t>(layer)];
  const Forward& f = recomputed_[static_cast<std::size_t>(layer)];
  const Backward& g = backward_[static_cast<std::size_t>(layer)];
  const GateUp gu = gate_up(f);
  const Tensor& dx = plan_[dx_];
  const auto norm = [&](train::ParameterSet::Id weight, Id x, Id rstd, const Tensor& y) {
    b.run(op::RmsNormForward{
        .x = plan_[x], .weight = set_.value(weight), .y = own_rows(y), .rstd = plan_[rstd], .eps = norm_eps()});
  };
  // What was recomputed is there; else it is made once more.
  const auto norm_again = [&](train::ParameterSet::Id weight, Id x, Id rstd, const Tensor& y) -> Ticket {
    if (config_.checkpointing) return 0;
    norm(weight, x, rstd, y);
    return start_gathering(b, y);
  };
  const Tensor normed2 = plan_[config_.checkpointing ? f.normed2 : g.normed2];
  const Tensor normed1 = plan_[config_.checkpointing ? f.normed1 : g.normed1];
  if (config_.checkpointing) {
    norm(p.ln1, f.input, f.rstd1, normed1);
    layer_body(b, layer, f, 0);
  }

  wait(b, gathering, dx);
  const Ticket normed2_gathering = norm_again(p.ln2, f.middle, f.rstd2, normed2);
  project_back(b, dx, p.w2, 1, g.w2_8, plan_[g.dhidden]);
  b.run(op::SwigluBackward{
      .gate = gu.gate, .up = gu.up, .dh = plan_[g.dhidden], .dgate = gu.gate, .dup = gu.up, .h = plan_[g.hidden]});
  project_back(b, gu.packed, p.w1, 2, g.gate_up_8, plan_[g.dnormed2]);
  Ticket summing = start_summing(b, plan_[g.dnormed2]);
  weight_gradient(b, dx, plan_[g.hidden], p.w2);
  wait(b, summing, plan_[g.dnormed2]);
  norm_backward(b, p.ln2, own_rows(plan_[g.dnormed2]), plan_[f.middle], plan_[f.rstd2], own_rows(dx), own_rows(dx), {});
  gathering = start_gathering(b, dx);
  wait(b, normed2_gathering, normed2);
  weight_gradient(b, gu.packed, normed2, p.w1, 2);
  wait(b, gathering, dx);

  const Ticket normed1_gathering = norm_again(p.ln1, f.input, f.rstd1, normed1);
  project_back(b, dx, p.output, 1, g.output_8, plan_[g.dattention]);
  attention_backward(b, layer, f, g);
  turn_heads_back(b, layer, f, g);
  const Tensor& dqkv = plan_[g.dqkv];
  if (config_.qkv_bias) b.run(op::BiasBackward{.dy = dqkv, .dbias = set_.gradient(p.q_bias, 3)});
  project_back(b, dqkv, p.q, 3, g.qkv_8, plan_[g.dnormed1]);
  summing = start_summing(b, plan_[g.dnormed1]);
  weight_gradient(b, dx, plan_[f.attention], p.output);
  wait(b, summing, plan_[g.dnormed1]);
  norm_backward(b, p.ln1, own_rows(plan_[g.dnormed1]), plan_[f.input], plan_[f.rstd1], own_rows(dx), own_rows(dx), {});
  gathering = layer > 0 ? start_gathering(b, dx) : 0;
  wait(b, normed1_gathering, normed1);
  weight_gradient(b, dqkv, normed1, p.q, 3);
}

}  // namespace assay::models
