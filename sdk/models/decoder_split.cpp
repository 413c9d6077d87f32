// A decoder whose products are split over ranks: what of it a rank has, and what the ranks exchange at its ends.
#include <algorithm>
#include <utility>

#include "decoder_split_pass.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using compute::Tensor;

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
  split_rows_ = SplitRows(config_);
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

void DecoderModel::wait(Backend& b, Ticket ticket, const Tensor& used) const {
  if (ticket == 0) return;
  if (!is_planning_) return exchange_->wait(ticket);
  note_use(b, used);
}

DecoderModel::SplitPass::Ticket DecoderModel::SplitPass::start_gathering(const Tensor& all, const RowRange& rows) {
  if (!gathers()) return 0;  // all rows are on every rank
  const Tensor chunk = rows_.of(all, rows);
  return m_.exchange(b_, rows_.own(all, rows), chunk,
                     [&](train::PartExchange& ranks) { return ranks.gather(b_, chunk); });
}

DecoderModel::SplitPass::Ticket DecoderModel::SplitPass::start_summing(const Tensor& terms, const RowRange& rows) {
  const Tensor chunk = rows_.of(terms, rows);
  return m_.exchange(b_, chunk, rows_.own(terms, rows), [&](train::PartExchange& ranks) {
    return gathers() ? ranks.sum_to_parts(b_, chunk) : ranks.sum(b_, chunk);
  });
}

void DecoderModel::SplitPass::wait(Tickets& tickets, const Tensor& used) {
  for (Ticket& ticket : tickets) m_.wait(b_, std::exchange(ticket, 0), used);
}

compute::ClassColumns DecoderModel::SplitPass::own_classes() const {
  return {.first = config().split.rank * config().own_words(), .each = 1, .all = config().vocab_size};
}

// This rank looks up its columns of all rows.
void DecoderModel::SplitPass::embed(const Tensor& ids, const Tensor& x) {
  const std::int64_t n = config().rows(), ranks = config().split.ranks, w = config().own_width();
  const Tensor &table = m_.set_.compute(m_.ids_.embeddings), &embedded = buffer(m_.split_.embedded);
  if (!gathers()) {
    const Tensor own = embedded.slice(0, config().split.rank * n, n);
    b_.run(op::EmbeddingForward{.ids = ids, .table = table, .out = own});
    m_.wait(b_, m_.exchange(b_, own, embedded, [&](train::PartExchange& to) { return to.gather(b_, embedded); }),
            embedded);
    return b_.run(op::Copy{.to = x.view({n, ranks, w}), .from = embedded.view({ranks, n, w}).transposed(0, 1)});
  }
  b_.run(op::EmbeddingForward{.ids = ids, .table = table, .out = embedded});
  const Tensor& columns = buffer(m_.split_.received);
  for (std::size_t i = 0; i < rows_.chunks().size(); ++i) {
    const RowRange& rows = rows_.chunks()[i];
    const Tensor sent = rows_.of(embedded, rows), received = rows_.of(columns, rows);
    tickets_[i] =
        m_.exchange(b_, sent, received, [&](train::PartExchange& to) { return to.transpose(b_, sent, received); });
  }
  for (std::size_t i = 0; i < rows_.chunks().size(); ++i) {
    const RowRange& rows = rows_.chunks()[i];
    const Tensor received = rows_.of(columns, rows);
    m_.wait(b_, tickets_[i], received);
    m_.note_use(b_, rows_.of(embedded, rows));
    const std::int64_t own = rows.count / ranks;
    b_.run(op::Copy{.to = rows_.kept(x, rows).view({own, ranks, w}),
                    .from = received.view({ranks, own, w}).transposed(0, 1)});
  }
}

void DecoderModel::SplitPass::embedding_backward(const Tensor& ids) {
  const std::int64_t n = config().rows(), ranks = config().split.ranks, w = config().own_width();
  const Tensor &gradient = buffer(m_.split_.gradient), &dx = buffer(m_.dx_);
  if (gathers()) {
    const Tensor& all = buffer(m_.split_.sent_gradient);
    for (std::size_t i = 0; i < rows_.chunks().size(); ++i) {
      const RowRange& rows = rows_.chunks()[i];
      const Tensor sent = rows_.of(all, rows), received = rows_.of(gradient, rows);
      const std::int64_t own = rows.count / ranks;
      b_.run(op::Copy{.to = sent.view({ranks, own, w}),
                      .from = rows_.own(dx, rows).view({own, ranks, w}).transposed(0, 1)});
      tickets_[i] =
          m_.exchange(b_, sent, received, [&](train::PartExchange& to) { return to.transpose(b_, sent, received); });
    }
    wait(tickets_, gradient);
    m_.note_use(b_, all);
  } else {
    b_.run(op::Copy{.to = gradient.view({n, w}), .from = dx.slice(1, config().split.rank * w, w)});
  }
  b_.run(op::EmbeddingBackward{.ids = ids, .dout = gradient, .dtable = m_.set_.gradient(m_.ids_.embeddings)});
}

void DecoderModel::SplitPass::loss(const Tensor& labels, std::int64_t valid_rows, std::int64_t micro_batch) {
  for (std::int64_t first = 0; first < config().rows(); first += m_.chunk_rows()) {
    const std::int64_t count = std::min(m_.chunk_rows(), config().rows() - first);
    const Tensor of_labels = labels.slice(0, first, count);
    losses(m_.make_logits(b_, first, count), of_labels, first, micro_batch);
    if (!m_.makes_loss_in_chunks()) continue;
    logits_backward(of_labels, valid_rows, first);
    const Tensor dlogits = buffer(m_.logits_).slice(0, 0, count);
    b_.run(op::Matmul{.a = dlogits,
                      .b = buffer(m_.final_normed_).slice(0, first, count),
                      .c = m_.set_.gradient(m_.ids_.lm_head),
                      .transpose_a = true,
                      .accumulate = first > 0});
    b_.run(op::Matmul{
        .a = dlogits, .b = m_.set_.compute(m_.ids_.lm_head), .c = buffer(m_.dfinal_).slice(0, first, count)});
  }
  // The mean over all micro-batches, when the last one's losses are there.
  if (micro_batch + 1 == config().accumulation_steps)
    b_.run(op::Sum{.x = buffer(m_.losses_), .out = buffer(m_.loss_), .factor = 1.0F / static_cast<float>(valid_rows)});
}

// Of rows from `first` on. The loss of a row is what its label's part found, and by how much all words have more to
// them than that part's.
void DecoderModel::SplitPass::losses(const Tensor& logits, const Tensor& labels, std::int64_t first,
                                     std::int64_t micro_batch) {
  const std::int64_t n = config().rows(), count = labels.elements(), ranks = config().split.ranks;
  const Tensor parts = buffer(m_.split_.parts_of_loss).slice(0, 0, ranks * 2 * count).view({ranks, 2, count});
  const Tensor own = parts.slice(0, config().split.rank, 1).view({2, count});
  b_.run(op::CrossEntropyForward{.logits = logits,
                                 .labels = labels,
                                 .losses = own.slice(0, 1, 1).view({count}),
                                 .lse = own.slice(0, 0, 1).view({count}),
                                 .classes = own_classes(),
                                 .soft_cap = m_.cap_of_loss()});
  m_.wait(b_, m_.exchange(b_, own, parts, [&](train::PartExchange& to) { return to.gather(b_, parts); }), parts);
  const Tensor log_sums = buffer(m_.split_.part_log_sums).slice(0, 0, count);
  const Tensor losses = buffer(m_.losses_).slice(0, micro_batch * (1 + ranks) * n, (1 + ranks) * n);
  b_.run(op::Copy{.to = log_sums.view({count, 1, ranks}), .from = parts.slice(1, 0, 1).transposed(0, 2)});
  b_.run(op::CrossEntropyForward{.logits = log_sums,
                                 .labels = labels,
                                 .losses = losses.slice(0, first, count),
                                 .lse = buffer(m_.lse_).slice(0, first, count),
                                 .classes = {.first = 0, .each = config().own_words(), .all = config().vocab_size}});
  b_.run(op::Copy{.to = losses.slice(0, n, ranks * n).view({ranks, 1, n}).slice(2, first, count),
                  .from = parts.slice(1, 1, 1)});
}

// For the rows of `labels`, starting at row `first`: in the place of their logits.
void DecoderModel::SplitPass::logits_backward(const Tensor& labels, std::int64_t valid_rows, std::int64_t first) {
  const Tensor logits = buffer(m_.logits_).slice(0, 0, labels.elements());
  b_.run(op::CrossEntropyBackward{.logits = logits,
                                  .labels = labels,
                                  .lse = buffer(m_.lse_).slice(0, first, labels.elements()),
                                  .scale = 1.0F / static_cast<float>(valid_rows),
                                  .loss_scale = m_.loss_scale_,
                                  .dlogits = logits,
                                  .classes = own_classes(),
                                  .soft_cap = m_.cap_of_loss()});
}

}  // namespace assay::models
