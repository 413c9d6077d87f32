#include "assay/parallel/sharded_blocks.hpp"

#include <algorithm>
#include <assay/train/step_recording.hpp>
#include <utility>

namespace assay::parallel {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;
using train::ElementRange;

// What is kept lies in the order in which reductions end, so that a plan may borrow it until then.
void ShardedBlocks::divide(train::ParameterSet& whole, train::ModelBlocks model, train::ParameterSet& kept) {
  whole_ = &whole, kept_ = &kept;
  for (const train::ParameterBlock& block : model.blocks) blocks_.emplace_back(BlockShards(whole, block, ranks_));
  blocks_.emplace_back(BlockShards(whole, model.resident, ranks_));
  const auto keep = [&](Block& block) {
    block.id = kept.add({train::Parameter{block.shards.name, {block.shards.shard_elements}}});
    const std::int64_t begin = kept.all()[block.id].offset;
    block.kept = {begin, begin + block.shards.shard_elements};
  };
  for (std::size_t i = resident(); i-- > 0;) keep(blocks_[i]);
  keep(blocks_[resident()]);
  if (resident() > 1) stretches_.push_back({0, blocks_[1].kept.end});
  stretches_.push_back({blocks_[0].kept.begin, kept.arena_elements()});

  std::int64_t largest = 0;
  for (const train::Parameter& p : whole.all()) largest = std::max(largest, p.elements());
  drawing_ = messages_.add("parameter.drawn", whole.policy().parameter, {largest});
  plan_visits(model);
  plan_gradients(whole);
}

// Behind the last visit backward follows at once.
void ShardedBlocks::plan_visits(const train::ModelBlocks& model) {
  const std::size_t count = model.blocks.size() + (model.ends_with_first ? 1 : 0);
  const auto gathered = [&](std::size_t block, const char* which, train::BufferPlan::Use use) {
    const BlockShards& shards = blocks_[block].shards;
    return messages_.add(shards.name + which, gathered_type(block), {shards.elements()}, use);
  };
  for (std::size_t i = 0; i < count; ++i) {
    Visit visit{.block = i % model.blocks.size()};
    visit.gathered = i == visit.block || options_.reshard;
    visit.regathered = options_.reshard && model.blocks[visit.block].read_in_backward && i + 1 < count;
    visit.forward = visit.gathered ? gathered(visit.block, i == visit.block ? ".gathered" : ".gathered.at.end",
                                              train::BufferPlan::Use::temporary)
                                   : visits_[visit.block].forward;
    visit.backward =
        visit.regathered ? gathered(visit.block, ".gathered.again", train::BufferPlan::Use::temporary) : visit.forward;
    visits_.push_back(visit);
    blocks_[visit.block].gathered = visit.backward;
  }
  // Micro-batches after the first one have what it has gathered.
  blocks_[resident()].gathered =
      gathered(resident(), ".gathered",
               accumulates() ? train::BufferPlan::Use::outlives_steps : train::BufferPlan::Use::temporary);
}

void ShardedBlocks::plan_gradients(const train::ParameterSet& whole) {
  const compute::DType type = whole.policy().gradient;
  if (converts())
    for (Block& block : blocks_) {
      block.sent = messages_.add(block.shards.name + ".sent", *options_.reduced_in, {block.shards.elements()});
      block.arrived =
          messages_.add(block.shards.name + ".arrived", *options_.reduced_in, {block.shards.shard_elements});
    }
  if (sums_whole_gradients()) {
    std::int64_t elements = 0;
    for (Block& block : blocks_) {
      block.first_gradient = elements;
      elements += block.shards.elements();
    }
    const Id sums = messages_.add("summed.gradients", type, {elements}, train::BufferPlan::Use::outlives_steps);
    for (Block& block : blocks_) block.gradients = sums;
    return;
  }
  for (Block& block : blocks_) {
    block.gradients = messages_.add(block.shards.name + ".gradients", type, {block.shards.elements()});
    if (accumulates())
      block.received = messages_.add(block.shards.name + ".received", type, {block.shards.shard_elements});
  }
}

Tensor ShardedBlocks::whole_gradients(std::size_t block) const {
  const Block& of = blocks_[block];
  return messages_[of.gradients].slice(0, of.first_gradient, of.shards.elements());
}

Tensor ShardedBlocks::summed_gradients() const {
  return sums_whole_gradients() ? messages_[blocks_.front().gradients] : Tensor();
}

void ShardedBlocks::plan(const std::function<void(Backend&)>& step) {
  train::plan_step(messages_, nullptr, [&](Backend& recorder) {
    recorder.upload(messages_[drawing_], nullptr);
    step(recorder);
    finish_reductions(recorder);
  });
}

void ShardedBlocks::bind(void* messages) {
  messages_.bind(nullptr, messages);
  memory_ = messages;
}

Tensor ShardedBlocks::messages() const {
  return Tensor(memory_, compute::DType::u8, {static_cast<std::int64_t>(messages_.total_bytes())});
}

compute::DType ShardedBlocks::gathered_type(std::size_t block) const {
  return block == resident() ? whole_->policy().parameter : whole_->policy().activation;
}

Tensor ShardedBlocks::part(std::size_t block) const {
  const ElementRange& kept = blocks_[block].kept;
  const Tensor copy = kept_->compute_copy();
  return copy && block != resident() ? copy.slice(0, kept.begin, kept.elements()) : kept_->values(kept);
}

std::int64_t ShardedBlocks::padding_elements() const {
  std::int64_t n = -whole_->parameter_count();
  for (const Block& block : blocks_) n += block.shards.elements();
  return n;
}

// Each parameter is drawn whole, since its numbers depend on their places in it, and the part is copied.
void ShardedBlocks::draw(Backend& backend, std::uint64_t seed) const {
  backend.run(op::Fill{.x = kept_->all_values(), .value = 0.0});
  backend.run(op::Fill{.x = kept_->all_gradients(), .value = 0.0});
  for (const Block& block : blocks_)
    for (const BlockShards::Held& held : block.shards.held_by(rank_)) {
      const train::Parameter& p = whole_->all()[held.parameter];
      const Tensor part = kept_->values({block.kept.begin + held.shard.begin, block.kept.begin + held.shard.end});
      if (p.init_std == 0) {
        backend.run(op::Fill{.x = part, .value = p.init_mean});
        continue;
      }
      const Tensor drawn = messages_[drawing_].slice(0, 0, p.elements());
      backend.run(
          op::RandomNormal{.x = drawn, .seed = seed, .stream = held.parameter, .mean = p.init_mean, .std = p.init_std});
      backend.run(op::Copy{.to = part, .from = drawn.slice(0, held.first, held.elements())});
    }
  kept_->refresh_compute_copy(backend);
}

// ---- the step ------------------------------------------------------------------------------------------------------
// A recorder learns what a collective reads and writes, at its start and where it is waited for.

void ShardedBlocks::begin_forward(Backend& backend, std::int64_t micro_batch) {
  const bool first = micro_batch == 0 || is_recording();
  if (first)
    reducing_.clear();  // of steps that are only recorded or prepared, which nobody finishes
  else
    finish_reductions(backend);  // what comes now takes their memory
  micro_batch_ = micro_batch;
  if (micro_batch == 0) backend_ = &backend;
  if (first) resident_ = start_gathering(backend, resident(), blocks_[resident()].gathered);
  for (std::size_t visit = 0; visit < ahead(); ++visit) start_forward(backend, visit);
}

void ShardedBlocks::before_forward(Backend& backend, std::size_t visit) {
  if (visit == 0) {
    if (micro_batch_ == 0 || is_recording()) finish_gathering(backend, resident_);
    place(resident(), resident_, true);
  }
  start_forward(backend, visit + ahead());
  Visit& now = visits_[visit];
  if (now.gathered)
    finish_gathering(backend, now.gathering);
  else
    now.gathering = visits_[now.block].gathering;  // the earlier visit's, which has stayed
  place(now.block, now.gathering, visit == last());
}

void ShardedBlocks::before_backward(Backend& backend, std::size_t visit) {
  // The last visit's forward was not followed by another one's, ahead of which a gathering could have been started.
  if (visit == last())
    for (std::size_t before = 1; before < ahead() && before <= visit; ++before) start_backward(backend, visit - before);
  if (visit >= ahead()) start_backward(backend, visit - ahead());
  const Visit& now = visits_[visit];
  if (now.regathered) finish_gathering(backend, now.gathering);
  place(now.block, now.gathering, true);
}

void ShardedBlocks::after_backward(Backend& backend, std::size_t visit) {
  if (!is_first_visit(visit)) return;
  const std::size_t block = visits_[visit].block;
  fill_gaps(backend, block);
  if (visit == 0) fill_gaps(backend, resident());
  if (sums_whole_gradients() && !is_last_micro_batch()) return;
  finish_reductions(backend);
  start_reduction(backend, block);
  if (visit == 0) start_reduction(backend, resident());
}

// They are reduced, too, and must hold numbers. Nothing else writes them: where gradients stay, so do the zeros.
void ShardedBlocks::fill_gaps(Backend& backend, std::size_t block) const {
  if (sums_whole_gradients() && micro_batch_ > 0) return;
  for (const ElementRange& gap : blocks_[block].shards.gaps)
    backend.run(op::Fill{.x = whole_gradients(block).slice(0, gap.begin, gap.elements()), .value = 0.0});
}

void ShardedBlocks::finish() { finish_reductions(*backend_); }

// The reductions of all blocks but the first one and the resident ones have been waited for within backward.
void ShardedBlocks::finish_stretch(std::size_t index) {
  if (index + 1 == stretches_.size()) finish();
}

void ShardedBlocks::start_forward(Backend& backend, std::size_t visit) {
  if (visit > last() || !visits_[visit].gathered) return;
  visits_[visit].gathering = start_gathering(backend, visits_[visit].block, visits_[visit].forward);
}

void ShardedBlocks::start_backward(Backend& backend, std::size_t visit) {
  if (!visits_[visit].regathered) return;
  visits_[visit].gathering = start_gathering(backend, visits_[visit].block, visits_[visit].backward);
}

ShardedBlocks::Gathering ShardedBlocks::start_gathering(Backend& backend, std::size_t block, Id to) {
  Gathering gathering{messages_[to]};
  if (is_recording())
    backend.upload(gathering.here, nullptr);
  else if (communicator_)
    gathering.ticket = communicator_->all_gather(part(block), gathering.here);
  else
    gathering.here = repeat_part(backend, block, gathering.here);
  return gathering;
}

void ShardedBlocks::finish_gathering(Backend& backend, const Gathering& gathering) {
  if (is_recording()) return backend.download(nullptr, gathering.here);
  if (communicator_) communicator_->wait(gathering.ticket);
}

void ShardedBlocks::start_reduction(Backend& backend, std::size_t block) {
  const Tensor whole = sent_gradients(block), part = arrived_part(block);
  if (converts()) backend.run(op::Copy{.to = whole, .from = whole_gradients(block)});
  if (is_recording()) {
    backend.download(nullptr, whole);
    backend.upload(part, nullptr);
  } else if (communicator_) {
    blocks_[block].reduction = communicator_->reduce_scatter(whole, part, comm::Reduction::average);
  } else {
    const std::int64_t n = blocks_[block].shards.shard_elements;
    backend.run(op::Copy{.to = part, .from = whole.slice(0, rank_ * n, n)});
  }
  reducing_.push_back(block);
}

void ShardedBlocks::finish_reductions(Backend& backend) {
  for (const std::size_t block : reducing_) {
    if (is_recording()) {
      backend.download(nullptr, sent_gradients(block));
      backend.download(nullptr, arrived_part(block));
    } else if (communicator_) {
      communicator_->wait(blocks_[block].reduction);
    }
    if (converts()) backend.run(op::Copy{.to = reduced_part(block), .from = arrived_part(block)});
    const Tensor kept = gradient_part(block);
    if (adds_reduced()) backend.run(op::Add{.a = kept, .b = reduced_part(block), .out = kept});
    if (reduction_listener_ && !is_recording() && is_last_micro_batch())
      reduction_listener_->gradients_ready(blocks_[block].id + 1);
  }
  reducing_.clear();
}

// Weights of the right size and number, if of other places: without a copy where this rank keeps as many elements as
// the block has.
Tensor ShardedBlocks::repeat_part(Backend& backend, std::size_t block, const Tensor& place) {
  const Tensor copy = kept_->compute_copy();
  const Tensor all = copy ? copy : kept_->all_values();
  const std::int64_t n = place.elements();
  if (block != resident() && n <= all.elements())
    return all.slice(0, std::min(blocks_[block].kept.begin, all.elements() - n), n);
  const Tensor own = part(block);
  for (std::int64_t r = 0; r < ranks_; ++r)
    backend.run(op::Copy{.to = place.slice(0, r * own.elements(), own.elements()), .from = own});
  return place;
}

void ShardedBlocks::place(std::size_t index, const Gathering& gathering, bool with_gradients) {
  const Block& block = blocks_[index];
  const auto at = [](const Tensor& whole, std::int64_t element) -> void* { return whole.slice(0, element, 0).data; };
  const bool as_values = index == resident() || !whole_->policy().compute_copy();
  for (const BlockShards::Placed& p : block.shards.parameters) {
    void* const here = at(gathering.here, p.elements.begin);
    whole_->place(p.parameter, {.value = as_values ? here : nullptr,
                                .compute = as_values ? nullptr : here,
                                .gradient = with_gradients ? at(whole_gradients(index), p.elements.begin) : nullptr});
  }
}

Tensor ShardedBlocks::gather(Backend& backend, std::size_t block) {
  const Gathering gathering = start_gathering(backend, block, blocks_[block].gathered);
  finish_gathering(backend, gathering);
  return gathering.here;
}

std::vector<std::size_t> ShardedBlocks::gathered_bytes() const {
  const auto bytes = [&](std::size_t block) {
    return static_cast<std::size_t>(blocks_[block].shards.elements()) * compute::size_of(gathered_type(block));
  };
  std::vector<std::size_t> all{bytes(resident())};
  for (const Visit& visit : visits_)
    if (visit.gathered) all.push_back(bytes(visit.block));
  return all;
}

}  // namespace assay::parallel
