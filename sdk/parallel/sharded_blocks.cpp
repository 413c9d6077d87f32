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
  for (std::size_t i = 0; i <= last(); ++i)
    blocks_[i].regathered = reshard_ && model.blocks[i].read_in_backward && i != last();
  const auto keep = [&](Block& block) {
    const train::ParameterSet::Id id = kept.add({train::Parameter{block.shards.name, {block.shards.shard_elements}}});
    block.kept = {kept.all()[id].offset, kept.all()[id].offset + block.shards.shard_elements};
  };
  for (std::size_t i = resident(); i-- > 0;) keep(blocks_[i]);
  keep(blocks_[resident()]);
  if (resident() > 1) stretches_.push_back({0, blocks_[1].kept.end});
  stretches_.push_back({blocks_[0].kept.begin, kept.arena_elements()});

  std::int64_t largest = 0;
  for (const train::Parameter& p : whole.all()) largest = std::max(largest, p.elements());
  drawing_ = messages_.add("parameter.drawn", whole.policy().parameter, {largest});
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    const std::int64_t n = block.shards.elements();
    block.forward = block.backward = messages_.add(block.shards.name + ".gathered", gathered_type(i), {n});
    if (block.regathered) block.backward = messages_.add(block.shards.name + ".gathered.again", gathered_type(i), {n});
    block.gradients = messages_.add(block.shards.name + ".gradients", whole.policy().gradient, {n});
  }
}

void ShardedBlocks::plan(const std::function<void(Backend&)>& step) {
  train::plan_step(messages_, nullptr, [&](Backend& recorder) {
    recorder.upload(messages_[drawing_], nullptr);
    step(recorder);
    for (const std::size_t block : {std::size_t{0}, resident()}) finish_reduction(recorder, block);
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
// A recorder is told of a collective by what it reads and writes, at its start and where it is waited for.

void ShardedBlocks::begin_forward(Backend& backend) {
  start_gathering(backend, resident(), blocks_[resident()].forward);
  start_gathering(backend, 0, blocks_[0].forward);
}

void ShardedBlocks::before_forward(Backend& backend, std::size_t block) {
  if (block == 0) {
    finish_gathering(backend, resident());
    place(resident(), true);
  }
  if (block < last()) start_gathering(backend, block + 1, blocks_[block + 1].forward);
  finish_gathering(backend, block);
  place(block, false);
}

void ShardedBlocks::before_backward(Backend& backend, std::size_t block) {
  // Gaps between its parameters are reduced too, and must hold numbers.
  if (block == last()) backend.run(op::Fill{.x = messages_[blocks_[resident()].gradients], .value = 0.0});
  if (block > 0 && blocks_[block - 1].regathered) start_gathering(backend, block - 1, blocks_[block - 1].backward);
  if (blocks_[block].regathered) finish_gathering(backend, block);
  place(block, true);
}

void ShardedBlocks::after_backward(Backend& backend, std::size_t block) {
  for (const ElementRange& gap : blocks_[block].shards.gaps)
    backend.run(op::Fill{.x = messages_[blocks_[block].gradients].slice(0, gap.begin, gap.elements()), .value = 0.0});
  if (block < last()) finish_reduction(backend, block + 1);
  start_reduction(backend, block);
  if (block == 0) start_reduction(backend, resident());
}

void ShardedBlocks::finish() {
  if (communicator_) communicator_->wait(blocks_[resident()].reduction);  // and with it for those before
}

void ShardedBlocks::finish_stretch(std::size_t index) {
  if (index + 1 == stretches_.size()) return finish();
  if (communicator_) communicator_->wait(blocks_[1].reduction);
}

void ShardedBlocks::start_gathering(Backend& backend, std::size_t block, Id to) {
  blocks_[block].here = messages_[to];
  if (is_recording()) return backend.upload(messages_[to], nullptr);
  if (!communicator_) return repeat_part(backend, block, messages_[to]);
  blocks_[block].gathering = communicator_->all_gather(part(block), messages_[to]);
}

void ShardedBlocks::finish_gathering(Backend& backend, std::size_t block) {
  if (is_recording()) return backend.download(nullptr, blocks_[block].here);
  if (communicator_) communicator_->wait(blocks_[block].gathering);
}

void ShardedBlocks::start_reduction(Backend& backend, std::size_t block) {
  const Tensor whole = messages_[blocks_[block].gradients];
  if (is_recording()) {
    backend.download(nullptr, whole);
    backend.upload(gradient_part(block), nullptr);
  } else if (communicator_) {
    blocks_[block].reduction = communicator_->reduce_scatter(whole, gradient_part(block), comm::Reduction::average);
  } else {
    const std::int64_t n = blocks_[block].shards.shard_elements;
    backend.run(op::Copy{.to = gradient_part(block), .from = whole.slice(0, rank_ * n, n)});
  }
}

void ShardedBlocks::finish_reduction(Backend& backend, std::size_t block) {
  if (is_recording()) {
    backend.download(nullptr, messages_[blocks_[block].gradients]);
    backend.download(nullptr, gradient_part(block));
  } else if (communicator_) {
    communicator_->wait(blocks_[block].reduction);
  }
}

// Weights of the right size and number, if of other places: without a copy where this rank keeps as many elements as
// the block has.
void ShardedBlocks::repeat_part(Backend& backend, std::size_t block, const Tensor& place) {
  const Tensor copy = kept_->compute_copy();
  const Tensor all = copy ? copy : kept_->all_values();
  const std::int64_t n = place.elements();
  if (block != resident() && n <= all.elements()) {
    blocks_[block].here = all.slice(0, std::min(blocks_[block].kept.begin, all.elements() - n), n);
    return;
  }
  const Tensor own = part(block);
  for (std::int64_t r = 0; r < ranks_; ++r)
    backend.run(op::Copy{.to = place.slice(0, r * own.elements(), own.elements()), .from = own});
}

void ShardedBlocks::place(std::size_t index, bool with_gradients) {
  const Block& block = blocks_[index];
  const auto at = [](const Tensor& whole, std::int64_t element) -> void* { return whole.slice(0, element, 0).data; };
  const bool as_values = index == resident() || !whole_->policy().compute_copy();
  for (const BlockShards::Placed& p : block.shards.parameters) {
    void* const here = at(block.here, p.elements.begin);
    whole_->place(p.parameter,
                  {.value = as_values ? here : nullptr,
                   .compute = as_values ? nullptr : here,
                   .gradient = with_gradients ? at(messages_[block.gradients], p.elements.begin) : nullptr});
  }
}

Tensor ShardedBlocks::gather(Backend& backend, std::size_t block) {
  start_gathering(backend, block, blocks_[block].backward);
  finish_gathering(backend, block);
  return blocks_[block].here;
}

}  // namespace assay::parallel
