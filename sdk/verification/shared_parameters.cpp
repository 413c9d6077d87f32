#include "shared_parameters.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <bit>

namespace assay::verification {

namespace op = compute::op;

using compute::Tensor;
using models::DecoderPart;
using parallel::BlockShards;

SharedParameters::SharedParameters(const Host& host, models::DecoderTrainer& mine, const models::DecoderTrainer& whole,
                                   const SharedModel& shared)
    : host_(host), mine_(mine), all_(whole.parameters()), blocks_(shared.blocks), all_common_(shared.all_common) {
  if (blocks_) return;
  parts_ = models::decoder_parts(mine.config().model, own(), all_);
  if (std::none_of(parts_.begin(), parts_.end(), [](const DecoderPart& part) { return part.dimension > 0; })) return;
  std::size_t largest = 0;
  for (Id id = 0; id < all_.all().size(); ++id) largest = std::max(largest, all_.value(id).bytes());
  room_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, largest, "verification");
}

Tensor SharedParameters::part_of(Id id, const Tensor& whole) const {
  const Tensor part = parts_[id].of(whole);
  if (part.contiguous()) return part.flat();
  const Tensor copy = room(part.dtype, part.elements());
  backend().run(op::Copy{.to = copy.view({part.dim(0), part.dim(1)}), .from = part});
  return copy;
}

std::vector<SharedParameters::Piece> SharedParameters::pieces() const {
  std::vector<Piece> pieces;
  const Tensor copy = own().compute_copy();
  for (Id id = 0; id < parts_.size(); ++id)
    pieces.push_back({parts_[id].whole, own().value(id).flat(), copy ? own().compute(id).flat() : Tensor(),
                      [this, id](const Tensor& whole) { return part_of(id, whole); }});
  for (std::size_t block = 0; blocks_ && block < blocks_->count(); ++block)
    for (const BlockShards::Held& held : blocks_->shards(block).held_by(blocks_->rank())) {
      const std::int64_t begin = blocks_->kept(block).begin + held.shard.begin;
      pieces.push_back({held.parameter, own().values({begin, begin + held.elements()}),
                        copy ? copy.slice(0, begin, held.elements()) : Tensor(),
                        [held](const Tensor& whole) { return whole.flat().slice(0, held.first, held.elements()); }});
    }
  return pieces;
}

// Parts are rows, contiguous in the whole parameter, where ranks with a batch each keep gradients of parts.
std::vector<SharedParameters::Range> SharedParameters::held_by(std::int64_t rank) const {
  std::vector<Range> ranges;
  for (Id id = 0; id < parts_.size(); ++id) {
    const std::int64_t count = own().all()[id].elements();
    const std::int64_t first = parts_[id].dimension < 0 ? 0 : rank * count;
    ranges.push_back({all_.all()[parts_[id].whole].offset + first, own().all()[id].offset, count});
  }
  for (std::size_t block = 0; blocks_ && block < blocks_->count(); ++block)
    for (const BlockShards::Held& held : blocks_->shards(block).held_by(rank % blocks_->ranks()))
      ranges.push_back({all_.all()[held.parameter].offset + held.first, blocks_->kept(block).begin + held.shard.begin,
                        held.elements()});
  return ranges;
}

std::string SharedParameters::take_weights(const std::string& name, const std::string& when,
                                           const parallel::RankSteps& steps) const {
  if (blocks_) return take_blocks(name, when, steps);
  if (mine_.config().model.is_pipelined()) return take_stages(name, when, steps);
  const std::int64_t ranks = steps.communicator().size();
  GatheredCheck gathered_as_kept(backend(), ranks);
  const auto take = [&](const DecoderPart& part, const Tensor& mine_of, const Tensor& whole_of) {
    if (part.dimension < 0) return backend().run(op::Copy{.to = whole_of, .from = mine_of});
    const Tensor gathered = part.dimension == 0 ? whole_of.flat() : room(mine_of.dtype, whole_of.elements());
    comm::Communicator& communicator = steps.communicator();
    communicator.wait(communicator.all_gather(mine_of.flat(), gathered));
    steps.wait(mine_);
    gathered_as_kept.add(mine_of.flat(), gathered);
    if (part.dimension == 0) return;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      DecoderPart of_rank = part;
      of_rank.first = rank * part.count;
      const Tensor from = gathered.slice(0, rank * mine_of.elements(), mine_of.elements());
      backend().run(op::Copy{.to = of_rank.of(whole_of), .from = from.view({mine_of.dim(0), mine_of.dim(1)})});
    }
    backend().synchronize();  // before the next collective writes there
  };
  for (Id id = 0; id < parts_.size(); ++id) {
    take(parts_[id], own().value(id), all_.value(parts_[id].whole));
    if (own().compute_copy()) take(parts_[id], own().compute(id), all_.compute(parts_[id].whole));
  }
  return all_common_ ? std::string() : gathered_as_kept.check(host_, name + ".weights", when);
}

std::string SharedParameters::take_blocks(const std::string& name, const std::string& when,
                                          const parallel::RankSteps& steps) const {
  GatheredCheck gathered_as_kept(backend(), blocks_->ranks());
  for (std::size_t block = 0; block < blocks_->count(); ++block) {
    const Tensor gathered = blocks_->gather(backend(), block);
    steps.wait(mine_);
    gathered_as_kept.add(blocks_->part(block), gathered);
    const bool as_values = block + 1 == blocks_->count();
    for (const BlockShards::Placed& p : blocks_->shards(block).parameters)
      backend().run(op::Copy{.to = (as_values ? all_.value(p.parameter) : all_.compute(p.parameter)).flat(),
                             .from = gathered.slice(0, p.elements.begin, p.elements.elements())});
  }
  return gathered_as_kept.check(host_, name + ".gathered", when);
}

std::string SharedParameters::take_stages(const std::string& name, const std::string& when,
                                          const parallel::RankSteps& steps) const {
  for (Id id = 0; id < parts_.size(); ++id) {
    backend().run(op::Copy{.to = all_.value(parts_[id].whole), .from = own().value(id)});
    if (own().compute_copy()) backend().run(op::Copy{.to = all_.compute(parts_[id].whole), .from = own().compute(id)});
  }
  const std::vector<std::int64_t> owners = models::ranks_of_parameters(mine_.config().model, all_);
  comm::Communicator& communicator = steps.communicator();
  std::uint64_t hash = 0;
  const auto take = [&](const Tensor& whole, std::int64_t owner) {
    communicator.wait(communicator.broadcast(whole.flat(), static_cast<std::int32_t>(owner)));
    steps.wait(mine_);
    hash = std::rotl(hash, 1) ^ hash_of(backend(), whole);
  };
  for (Id id = 0; id < owners.size(); ++id) {
    take(all_.value(id), owners[id]);
    if (own().compute_copy()) take(all_.compute(id), owners[id]);
  }
  require_same(host_, name + ".weights", hash, when + " the weights that their owners have sent");
  return "weights of all stages identical to the bit on " + std::to_string(comm::ranks_of(host_).rank_count) +
         " ranks " + when + "; ";
}

std::uint64_t SharedParameters::hash_of_common(const std::function<Tensor(Id)>& tensor) const {
  std::uint64_t hash = 0;
  for (Id id = 0; id < parts_.size(); ++id)
    if (parts_[id].dimension < 0) hash = std::rotl(hash, 1) ^ hash_of(backend(), tensor(id));
  return hash;
}

}  // namespace assay::verification
