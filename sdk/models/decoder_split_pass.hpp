// Forward and backward of a decoder whose products are split over ranks ("tensor parallel"). With R ranks each has
//
//   the products of its heads, of its part of the feed-forward and of its words of the vocabulary, over all N rows;
//   norms and the residual stream of its N / R rows: their outputs are gathered before a product ("gather"), and the
//   terms of a product's output, one from each rank, are summed to the rows' ranks ("sum").
//
// If every rank has all rows of norms and residual stream (DecoderSplit::sequence_parallel = false), nothing is
// gathered, and sums are made on all ranks.
//
// The embedding is split by columns, so that all ranks look up equally much, and the ranks change columns for rows
// ("transpose"). Logits are never gathered: for each row the ranks exchange the log-sum-exp of their words, and the
// loss of the label if it is theirs, and take the log-sum-exp of log-sum-exps. In chunks of the rows they exchange one
// chunk after the other.
//
// Forward works on one chunk of rows after the other (split_rows.hpp), each from the norm at the end of one branch to
// the product at the end of the next one. The sum of a chunk's terms then has the products of the next chunk to run
// beside. Attention reads whole sequences: where chunks are none, it waits for all of them. With one chunk nothing is
// beside forward's exchanges.
//
// In a layer's backward every exchange has something to run beside, and with several chunks the product itself, too.
// Those of the head's norm and of the embedding have not, nor has the last sum.
//
//   gather of dx               the weight gradient of the layer above
//   gather of normed2          the products back through w2 and gate-up
//   sum of dnormed2            the weight gradient of w2; without gathers also that of gate-up
//   gather of dx after norm 2  the weight gradient of gate-up
//   gather of normed1          attention
//   sum of dnormed1            the weight gradient of the output projection; without gathers also that of q, k, v
//
// What a norm gave is made again and gathered again for the weight gradient rather than kept, since N / R rows of it
// are this rank's, and keeping all N of them would cost more than it saves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "assay/models/decoder.hpp"

namespace assay::models {

class DecoderModel::SplitPass {
 public:
  SplitPass(const DecoderModel& model, compute::Backend& b)
      : m_(model), b_(b), rows_(model.split_rows_), tickets_(rows_.chunks().size(), 0) {}

  // Ends with all rows of the final norm.
  void forward(const compute::Tensor& ids);
  void loss(const compute::Tensor& labels, std::int64_t valid_rows, std::int64_t micro_batch);
  void backward(const compute::Tensor& ids, const compute::Tensor& labels, std::int64_t valid_rows,
                train::GradientListener* listener);

 private:
  using Ticket = train::PartExchange::Ticket;
  using Tickets = std::vector<Ticket>;  // by chunk

  // The end of a branch: sum = terms + residual, terms = x w^T summed over the ranks, and its norm.
  struct Branch {
    compute::Tensor x = {};
    train::ParameterSet::Id weight = 0;
    compute::Tensor terms = {}, residual = {}, sum = {};
    train::ParameterSet::Id norm = 0;
    compute::Tensor normed = {}, rstd = {};
  };
  using OfRows = std::function<void(const RowRange&)>;

  const DecoderConfig& config() const { return m_.config_; }
  const compute::Tensor& buffer(Id id) const { return m_.plan_[id]; }
  bool gathers() const { return config().split.sequence_parallel; }

  // What ranks exchange.
  Ticket start_gathering(const compute::Tensor& all, const RowRange& rows);
  Ticket start_summing(const compute::Tensor& terms, const RowRange& rows);
  void wait(Tickets& tickets, const compute::Tensor& used);  // for all of them, which are then none
  compute::ClassColumns own_classes() const;
  void embed(const compute::Tensor& ids, const compute::Tensor& x);
  void embedding_backward(const compute::Tensor& ids);
  void losses(const compute::Tensor& logits, const compute::Tensor& labels, std::int64_t first,
              std::int64_t micro_batch);
  void logits_backward(const compute::Tensor& labels, std::int64_t valid_rows, std::int64_t first);

  // Layers.
  Branch attention_branch(std::int64_t layer, const Forward& f) const;
  Branch feed_forward_branch(std::int64_t layer, const Forward& f) const;
  void norm(train::ParameterSet::Id weight, const compute::Tensor& x, const compute::Tensor& rstd,
            const compute::Tensor& y, const RowRange& rows);
  void first_norm(train::ParameterSet::Id weight, Id x, Id rstd, const compute::Tensor& y);
  void arrive(const Branch& before, std::size_t chunk);
  void depart(const Branch& branch, std::size_t chunk);
  void enter(const Branch& before, const OfRows& product, const Branch* branch);
  void attention_segment(const Branch& before, const Branch& branch, std::int64_t layer, const Forward& f);
  void gate_up(const DecoderLayerParameters& p, const Forward& f, const RowRange& rows);
  void make_again(std::int64_t layer, const Forward& f);
  Tickets norm_again(train::ParameterSet::Id weight, Id x, Id rstd, const compute::Tensor& y);
  void norm_backward(train::ParameterSet::Id weight, const compute::Tensor& dnormed, Id x, Id rstd,
                     const compute::Tensor& residual, bool is_read_by_products);
  void layer_backward(std::int64_t layer);

  const DecoderModel& m_;
  compute::Backend& b_;
  const SplitRows& rows_;
  // Of the terms of a chunk that are on their way, or of its norm's output, or of the gradient by the residual stream.
  Tickets tickets_;
  std::size_t arrived_ = 0;  // so many chunks, from the first on, have had the norm before the products
};

}  // namespace assay::models
