// Is what was timed the training of the whole model? whole_model_check.hpp has the questions; here is what the ranks'
// shards are of it, and what they are held against: the averages that each rank keeps are the mean of what the whole
// models of the ranks compute, in every element, and a rank's loss is that of its whole model.
#include <algorithm>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/verification/whole_model_check.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

#include "workload.hpp"

namespace fsdp {

namespace op = assay::compute::op;

using assay::compute::Tensor;
using assay::compute::WeightedSum;
using assay::parallel::BlockShards;
using assay::train::ElementRange;

class Workload::Reference final : public assay::verification::WholeModelCheck {
 public:
  explicit Reference(Workload& sharded)
      : WholeModelCheck(sharded.host_, id, sharded.trainer_, sharded.settings_.trainer, sharded.steps_),
        blocks_(sharded.blocks_) {}

 private:
  std::vector<Piece> pieces() const override;
  assay::Verified check_gradients(const std::string& when) override;
  std::string take_weights(const std::string& when) override;

  std::int64_t ranks() const { return mine().config().data_ranks; }
  // What a rank keeps: `look(held, range of the kept arena)`.
  template <class F>
  void for_each_held(std::int64_t rank, F&& look) const {
    for (std::size_t block = 0; block < blocks_.count(); ++block)
      for (const BlockShards::Held& held : blocks_.shards(block).held_by(rank)) {
        const std::int64_t begin = blocks_.kept(block).begin;
        look(held, ElementRange{begin + held.shard.begin, begin + held.shard.end});
      }
  }
  std::vector<ElementRange> pieces_of_average();
  std::vector<WeightedSum> averages(const std::vector<ElementRange>& pieces);

  assay::parallel::ShardedBlocks& blocks_;
};

std::vector<assay::verification::WholeModelCheck::Piece> Workload::Reference::pieces() const {
  std::vector<Piece> pieces;
  const assay::train::ParameterSet& kept = mine().parameters();
  for_each_held(mine().config().data_rank, [&](const BlockShards::Held& held, const ElementRange& range) {
    const Tensor copy = kept.compute_copy();
    pieces.push_back({held.parameter, kept.values(range),
                      copy ? copy.slice(0, range.begin, range.elements()) : Tensor(),
                      [held](const Tensor& whole) { return whole.flat().slice(0, held.first, held.elements()); }});
  });
  return pieces;
}

// Cut where what a rank keeps begins.
std::vector<ElementRange> Workload::Reference::pieces_of_average() {
  const assay::train::ParameterSet& all = whole().parameters();
  std::vector<std::int64_t> cuts;
  for (std::int64_t rank = 0; rank < ranks(); ++rank)
    for_each_held(rank, [&](const BlockShards::Held& held, const ElementRange&) {
      cuts.push_back(all.all()[held.parameter].offset + held.first);
    });
  return assay::verification::average_pieces(all, std::move(cuts), ranks());
}

std::vector<WeightedSum> Workload::Reference::averages(const std::vector<ElementRange>& pieces) {
  std::vector<assay::verification::SketchedPiece> held;
  std::vector<std::size_t> places;  // of the pieces that are held
  for_each_held(mine().config().data_rank, [&](const BlockShards::Held& part, const ElementRange& kept) {
    const std::int64_t begin = whole().parameters().all()[part.parameter].offset + part.first;
    auto piece = std::lower_bound(pieces.begin(), pieces.end(), begin,
                                  [](const ElementRange& p, std::int64_t at) { return p.begin < at; });
    for (; piece != pieces.end() && piece->end <= begin + part.elements(); ++piece) {
      held.push_back({*piece, kept.begin + piece->begin - begin});
      places.push_back(static_cast<std::size_t>(piece - pieces.begin()));
    }
  });
  std::vector<WeightedSum> sketches(pieces.size(), assay::verification::not_held);
  const std::vector<WeightedSum> found =
      assay::verification::sketch_of(backend(), mine().parameters().all_gradients(), held);
  for (std::size_t i = 0; i < places.size(); ++i) sketches[places[i]] = found[i];
  return sketches;
}

assay::Verified Workload::Reference::check_gradients(const std::string& when) {
  const assay::train::ParameterSet& all = whole().parameters();
  const std::vector<ElementRange> pieces = pieces_of_average();
  assay::verification::RankGradients found;
  found.own_of_another_model = true;
  forward_and_backward(whole(), assay::train::UnmarkedLaunch());
  found.own = assay::verification::sketch_of(whole().backend(), all.all_gradients(), pieces);
  const double expected_loss = whole().last_loss();

  // A collective that starts before what it sends is there, or leaves out what it should write, finds no number.
  assay::verification::spoil(backend(), mine().parameters().all_gradients());
  const Tensor messages = blocks_.messages();
  assay::verification::spoil(backend(), Tensor(messages.data, assay::compute::DType::f32, {messages.elements() / 4}));
  take_timed_step();
  found.averaged = averages(pieces);

  const double loss = mine().last_loss();
  const double allowed = assay::verification::decoder_tolerance(config()).loss;
  if (!(std::abs(loss - expected_loss) <= allowed * std::max(1.0, std::abs(expected_loss))))
    throw assay::Error(ASSAY_WRONG_RESULT, when + " the loss is " + assay::workload::number(loss, "%.9g") +
                                               ", that of the whole model " +
                                               assay::workload::number(expected_loss, "%.9g") + " (tolerance " +
                                               assay::workload::number(allowed) + ")");
  const assay::Verified average = assay::verification::check_average(host(), "fsdp.average." + when, all, pieces, found,
                                                                     assay::verification::own_data(whole()));
  return {when + ": loss of each rank as the whole model's, " + average.text, average.in_part};
}

std::string Workload::Reference::take_weights(const std::string& when) {
  const assay::train::ParameterSet& all = whole().parameters();
  assay::verification::GatheredCheck gathered_as_kept(backend(), ranks());
  for (std::size_t block = 0; block < blocks_.count(); ++block) {
    const Tensor gathered = blocks_.gather(backend(), block);
    steps().wait(mine());
    gathered_as_kept.add(blocks_.part(block), gathered);
    const bool as_values = block + 1 == blocks_.count();
    for (const BlockShards::Placed& p : blocks_.shards(block).parameters)
      backend().run(op::Copy{.to = (as_values ? all.value(p.parameter) : all.compute(p.parameter)).flat(),
                             .from = gathered.slice(0, p.elements.begin, p.elements.elements())});
  }
  return gathered_as_kept.check(host(), "fsdp.gathered", when);
}

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  asked_.check(trainer_.config());
  return Reference(*this).verify(launch, [&] { enqueue_step(launch); });
}

}  // namespace fsdp
