// Is what was timed the training of the whole model? Each rank holds an unsharded model beside its shards, which
// computes without communication. Each question leaves nothing to the one before it:
//   do the ranks train on their parts of one batch, and start from parts of the weights that the unsharded model has;
//   are the averages that each rank keeps the mean of what the unsharded models of the ranks compute, in every element,
//   and is a rank's loss that of its unsharded model;
//   do three steps move each rank's part, weights and moments, as float64 has it;
//   is then what is gathered, on every rank, what the owners keep, to the bit, and are losses and averages from these
//   weights on again those of the unsharded models;
//   are the gradients of the unsharded model right.
#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "workload.hpp"

namespace fsdp {

namespace op = assay::compute::op;

using assay::compute::Tensor;
using assay::parallel::BlockShards;
using assay::train::ElementRange;
using assay::verification::RankGradients;

namespace {

constexpr int verified_steps = 3;

Tensor flat(const Tensor& t) { return t.view({t.elements()}); }

assay::models::DecoderTrainerConfig without_update(assay::models::DecoderTrainerConfig config) {
  config.train_step = false;
  return config;
}

}  // namespace

// The unsharded model, with the same part of the batch, and what the shards are parts of.
class Workload::Reference {
 public:
  Reference(Workload& sharded, const Launch& launch)
      : sharded_(sharded), trainer_(sharded.host_, without_update(sharded.settings_.trainer)) {
    trainer_.setup(launch);
    for (std::int32_t rank = 0; rank < ranks(); ++rank)
      for (std::size_t block = 0; block < blocks().count(); ++block)
        for (const BlockShards::Held& held : blocks().shards(block).held_by(rank))
          cuts_.push_back(all().all()[held.parameter].offset + held.first);
  }

  void check_start();
  void spread_norms();
  assay::Verified check_gradients(const std::string& when);
  std::string take_gathered_weights();
  assay::Verified check_own_gradients() { return assay::verification::check_own_gradients(trainer_); }

 private:
  assay::parallel::ShardedBlocks& blocks() const { return sharded_.blocks_; }
  assay::models::DecoderTrainer& shards() const { return sharded_.trainer_; }
  const assay::train::ParameterSet& all() const { return trainer_.parameters(); }
  std::int32_t ranks() const { return static_cast<std::int32_t>(sharded_.settings_.trainer.ranks); }
  std::int32_t rank() const { return static_cast<std::int32_t>(sharded_.settings_.trainer.rank); }
  // What this rank keeps: `look(held, range of the kept arena)`.
  template <class F>
  void for_each_held(F&& look) const {
    for (std::size_t block = 0; block < blocks().count(); ++block)
      for (const BlockShards::Held& held : blocks().shards(block).held_by(rank())) {
        const std::int64_t begin = blocks().kept(block).begin;
        look(held, ElementRange{begin + held.shard.begin, begin + held.shard.end});
      }
  }
  std::vector<assay::verification::Sketch> averages(const std::vector<ElementRange>& pieces) const;

  Workload& sharded_;
  assay::models::DecoderTrainer trainer_;
  std::vector<std::int64_t> cuts_;  // of its arena: where what a rank keeps begins
};

void Workload::Reference::check_start() {
  assay::verification::spoil_compute_copy(shards().backend(), shards().parameters());
  shards().start();
  trainer_.start();
  for_each_held([&](const BlockShards::Held& held, const ElementRange& kept) {
    const auto same = [&](const Tensor& mine, const Tensor& whole) {
      return !mine ||
             assay::verification::hash_of(shards().backend(), mine.slice(0, kept.begin, kept.elements())) ==
                 assay::verification::hash_of(shards().backend(), flat(whole).slice(0, held.first, held.elements()));
    };
    if (!same(shards().parameters().all_values(), all().value(held.parameter)) ||
        !same(shards().parameters().compute_copy(), all().compute(held.parameter)))
      throw assay::Error(ASSAY_WRONG_RESULT, "before the first step rank " + std::to_string(rank()) + "'s part of " +
                                                 all().all()[held.parameter].name +
                                                 " is not that of the unsharded model");
  });
}

// A norm whose weights are all 1 may be wrong without a trace.
void Workload::Reference::spread_norms() {
  assay::verification::spread_constants(trainer_.backend(), all());
  for_each_held([&](const BlockShards::Held& held, const ElementRange& kept) {
    shards().backend().run(op::Copy{.to = shards().parameters().values(kept),
                                    .from = flat(all().value(held.parameter)).slice(0, held.first, held.elements())});
  });
  shards().parameters().refresh_compute_copy(shards().backend());
}

std::vector<assay::verification::Sketch> Workload::Reference::averages(const std::vector<ElementRange>& pieces) const {
  std::vector<assay::verification::Sketch> sketches(pieces.size(), assay::verification::not_held);
  for_each_held([&](const BlockShards::Held& held, const ElementRange& kept) {
    const std::int64_t begin = all().all()[held.parameter].offset + held.first, end = begin + held.elements();
    auto piece = std::lower_bound(pieces.begin(), pieces.end(), begin,
                                  [](const ElementRange& p, std::int64_t at) { return p.begin < at; });
    for (; piece != pieces.end() && piece->end <= end; ++piece) {
      const std::int64_t first = kept.begin + piece->begin - begin;
      const std::vector<float> values = assay::workload::download_f32(
          shards().backend(), shards().parameters().gradients({first, first + piece->elements()}));
      assay::verification::Sketch& sketch = sketches[static_cast<std::size_t>(piece - pieces.begin())] = {};
      assay::verification::add_to(sketch, values.data(), piece->begin, piece->elements());
    }
  });
  return sketches;
}

assay::Verified Workload::Reference::check_gradients(const std::string& when) {
  const std::vector<ElementRange> pieces = assay::verification::average_pieces(all(), cuts_, ranks());
  RankGradients mine;
  mine.own_of_another_model = true;
  trainer_.forward();
  trainer_.backward();
  mine.own = assay::verification::sketch_of(trainer_.backend(), all().all_gradients(), pieces);
  const double expected_loss = trainer_.last_loss();

  // A collective that starts before what it sends is there, or leaves out what it should write, finds no number.
  const auto spoil = [&](const Tensor& x) {
    shards().backend().run(op::Fill{.x = x, .value = std::numeric_limits<double>::quiet_NaN()});
  };
  spoil(shards().parameters().all_gradients());
  const Tensor messages = blocks().messages();
  spoil(Tensor(messages.data, assay::compute::DType::f32, {messages.elements() / 4}));
  const auto average = [&] {
    shards().forward();
    shards().backward();
    blocks().finish();
  };
  // Captured as a step's are, where the step is: but for the update, which would move the weights.
  std::unique_ptr<assay::compute::Graph> graph;
  if (sharded_.graphs_)
    graph = sharded_.communicator_->watch(shards().capture_as_is(average, assay::train::Trainer::Marks::none));
  graph ? graph->launch() : average();
  sharded_.communicator_->synchronize();
  mine.averaged = averages(pieces);

  const double loss = shards().last_loss();
  const assay::models::DecoderConfig& model = sharded_.settings_.trainer.model;
  const double allowed = assay::verification::path_tolerance(model.precision, model.layers, model.rows()).loss;
  if (!(std::abs(loss - expected_loss) <= allowed * std::max(1.0, std::abs(expected_loss))))
    throw assay::Error(ASSAY_WRONG_RESULT, when + " the loss is " + assay::workload::number(loss, "%.9g") +
                                               ", that of the unsharded model " +
                                               assay::workload::number(expected_loss, "%.9g") + " (tolerance " +
                                               assay::workload::number(allowed) + ")");
  assay::Verified found = assay::verification::check_average(sharded_.host_, "fsdp.average." + when, all(), pieces,
                                                             mine, assay::verification::own_data(trainer_));
  return {when + ": loss of each rank as unsharded, " + found.text, found.in_part};
}

// What the communicator has gathered becomes the unsharded model's: so it is compared with the owners' through the
// host.
std::string Workload::Reference::take_gathered_weights() {
  assay::compute::Backend& backend = shards().backend();
  std::vector<std::uint64_t> hashes(1 + static_cast<std::size_t>(ranks()));  // of my parts, and of what I have of each
  const auto add = [&](std::uint64_t& hash, const Tensor& x) {
    hash = std::rotl(hash, 1) ^ assay::verification::hash_of(backend, x);
  };
  for (std::size_t block = 0; block < blocks().count(); ++block) {
    const BlockShards& layout = blocks().shards(block);
    const Tensor gathered = blocks().gather(backend, block);
    sharded_.communicator_->synchronize();
    add(hashes[0], blocks().part(block));
    for (std::int64_t r = 0; r < ranks(); ++r)
      add(hashes[1 + static_cast<std::size_t>(r)], gathered.slice(0, r * layout.shard_elements, layout.shard_elements));
    const bool as_values = block + 1 == blocks().count();
    for (const BlockShards::Placed& p : layout.parameters)
      backend.run(op::Copy{.to = flat(as_values ? all().value(p.parameter) : all().compute(p.parameter)),
                           .from = gathered.slice(0, p.elements.begin, p.elements.elements())});
  }
  std::int64_t wrong_rank = -1;
  const auto of_ranks = assay::comm::gather<std::uint64_t>(sharded_.host_, "fsdp.gathered", hashes);
  for (std::size_t r = 0; r < of_ranks.size(); ++r)
    for (std::size_t owner = 0; owner < of_ranks.size(); ++owner)
      if (of_ranks[r][1 + owner] != of_ranks[owner][0]) wrong_rank = static_cast<std::int64_t>(r);
  wrong_rank = assay::comm::exchange(sharded_.host_, "fsdp.gathered.verdict", wrong_rank)[0];
  const std::string after = " after " + std::to_string(verified_steps) + " steps";
  if (wrong_rank >= 0)
    throw assay::Error(ASSAY_WRONG_RESULT,
                       "what rank " + std::to_string(wrong_rank) + " gathers is not what the ranks keep" + after);
  return "what " + std::to_string(ranks()) + " ranks gather is identical to the bit with what its owners keep" + after +
         "; ";
}

std::string Workload::check_updates(const Launch& launch) {
  trainer_.start();
  assay::verification::OptimizerCheck check(trainer_);
  for (int i = 0; i < verified_steps; ++i) {
    graphs_ ? graphs_.launch() : enqueue_step(launch);
    communicator_->synchronize();
    check.after_step();
    check.set_visible_rate();
  }
  return "each rank's part: " + check.text();
}

assay::Verified Workload::verify(const Launch& launch) {
  if (const double loss = trainer_.last_loss(); !std::isfinite(loss))
    throw assay::Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + assay::workload::number(loss));
  assay::verification::check_parts(host_, "fsdp.parts", trainer_);
  std::optional<Reference> reference;
  try {
    reference.emplace(*this, launch);
  } catch (const assay::Error& e) {
    if (e.status() != ASSAY_OUT_OF_MEMORY) throw;
  }
  const auto there = assay::comm::exchange(host_, "fsdp.reference", std::int32_t{reference.has_value()});
  if (std::find(there.begin(), there.end(), 0) != there.end())
    return {check_updates(launch) + "gradients are not compared: there is no memory for the unsharded model", true};
  reference->check_start();
  reference->spread_norms();
  const assay::Verified first = reference->check_gradients("at the start");
  const std::string updates = check_updates(launch);
  const std::string gathered = reference->take_gathered_weights();
  const assay::Verified later = reference->check_gradients("after " + std::to_string(verified_steps) + " steps");
  const assay::Verified own = reference->check_own_gradients();
  return {first.text + updates + gathered + later.text + own.text, first.in_part || later.in_part || own.in_part};
}

}  // namespace fsdp
