#include "assay/train/buffer_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <assay/plugin.hpp>

#include <assay/compute/checked_size.hpp>
#include <assay/train/unbound_memory.hpp>

#include "placement.hpp"
#include "remembered_placements.hpp"

namespace assay::train {
namespace {

constexpr int no_life = -1;
constexpr std::size_t most_in_sum = std::size_t{1} << 62;    // up to here no sum wraps
constexpr std::size_t beyond_all = 2 * compute::most_bytes;  // the bytes of a buffer that has more than any memory

}  // namespace

void BufferPlan::refuse_beyond_all(const Buffer& b) {
  if (b.bytes == beyond_all)
    compute::checked_bytes("the buffer '" + b.name + "'", b.tensor.dtype,
                           {b.tensor.shape.data(), static_cast<std::size_t>(b.tensor.rank)});
}

BufferPlan::Id BufferPlan::add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims,
                               Use use) {
  // One that is beyond all memory may be of a form of the step that is not taken: solve() refuses it where it is used.
  const std::optional<std::size_t> exact = compute::bytes_of(dtype, dims);
  const std::size_t bytes = exact ? PlacementProblem::rounded_up(*exact) : beyond_all;
  compute::Tensor tensor(nullptr, dtype, dims);
  tensor.data = unbound_place(memory_, unbound_end_);
  unbound_end_ += exact ? std::max(bytes, alignment) : alignment;
  buffers_.push_back({std::move(name), tensor, no_life, no_life, bytes, 0, use});
  return buffers_.size() - 1;
}

BufferPlan::Id BufferPlan::add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims,
                               int first, int last) {
  const Id id = add(std::move(name), dtype, dims);
  set_life(id, first, last);
  return id;
}

void BufferPlan::set_life(Id id, int first, int last) {
  assert(first <= last);
  buffers_[id].first = first, buffers_[id].last = last;
}

void BufferPlan::leave_out(Id id) { buffers_[id].first = buffers_[id].last = 0, buffers_[id].bytes = 0; }

std::size_t BufferPlan::buffer_at(const void* data) const {
  const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), data, [](const void* at, const Buffer& b) {
    return std::less<const void*>()(at, b.tensor.data);
  });
  if (after == buffers_.begin()) return buffers_.size();
  const Buffer& found = *(after - 1);
  const bool inside =
      std::less<const void*>()(data, static_cast<const char*>(found.tensor.data) + std::max(found.bytes, alignment));
  return inside ? static_cast<std::size_t>(after - 1 - buffers_.begin()) : buffers_.size();
}

void BufferPlan::borrow(std::size_t bytes) { borrowed_ = bytes; }

void BufferPlan::reserve(std::size_t offset, std::size_t bytes, int first, int last) {
  assert(first <= last);
  reserved_.push_back({offset, bytes, first, last});
}

PlacementProblem BufferPlan::problem() const {
  PlacementProblem problem{{}, reserved_, borrowed_};
  for (const Buffer& b : buffers_) problem.lives.push_back({b.bytes, b.first, b.last});
  std::stable_sort(problem.reserved.begin(), problem.reserved.end(),
                   [](const Taken& a, const Taken& b) { return a.offset < b.offset; });
  return problem;
}

void BufferPlan::require_lives() const {
  std::size_t sum = borrowed_;
  for (const Buffer& b : buffers_) {
    if (b.bytes > 0 && b.first == no_life)
      throw Error(ASSAY_INTERNAL, "the buffer '" + b.name + "' of a plan has no life; expected plan_step()");
    refuse_beyond_all(b);
    if (b.bytes > most_in_sum - std::min(sum, most_in_sum))
      throw Error(ASSAY_OUT_OF_MEMORY, "the buffers of a plan come to more than 2^62 bytes with '" + b.name + "'");
    sum += b.bytes;
  }
}

void BufferPlan::solve() {
  require_lives();
  static RememberedPlacements remembered;
  RememberedPlacements::Key key{borrowed_, buffers_.size()};
  for (const Buffer& b : buffers_)
    key.insert(key.end(), {b.bytes, static_cast<std::uint64_t>(b.first), static_cast<std::uint64_t>(b.last)});
  for (const Taken& t : reserved_)
    key.insert(key.end(), {t.offset, t.bytes, static_cast<std::uint64_t>(t.first), static_cast<std::uint64_t>(t.last)});
  std::optional<RememberedPlacements::Placed> known = remembered.find(key);
  if (!known) {
    Placement found = best_placement(problem());
    known = {std::move(found.offsets), found.total};
    remembered.keep(std::move(key), *known);
  }
  for (Id id = 0; id < buffers_.size(); ++id) buffers_[id].offset = known->offsets[id];
  total_ = known->total;
}

void BufferPlan::solve_around(int moment) {
  require_lives();
  const auto stays = [&](const Buffer& b) { return b.first <= moment && moment < b.last; };
  const auto place = [&](bool those_that_stay) {
    PlacementProblem part = problem();
    for (Id id = 0; id < buffers_.size(); ++id)
      if (stays(buffers_[id]) != those_that_stay) part.lives[id].bytes = 0;
    return best_placement(part);
  };
  const Placement own = place(true), borrowed = place(false);
  borrowed_ = borrowed.total;
  for (Id id = 0; id < buffers_.size(); ++id)
    buffers_[id].offset = stays(buffers_[id]) ? own_begin() + own.offsets[id] : borrowed.offsets[id];
  total_ = own_begin() + own.total;
}

std::size_t BufferPlan::lower_bound_bytes() const { return fullest_moment(problem(), true).bytes; }

std::size_t BufferPlan::peak_live_bytes() const { return fullest_moment(problem(), false).bytes; }

void BufferPlan::bind(void* borrowed, void* own) {
  for (Buffer& b : buffers_) {
    b.tensor.data = is_borrowed(b.offset) ? static_cast<char*>(borrowed) + b.offset
                                          : static_cast<char*>(own) + (b.offset - own_begin());
    if (b.bytes == 0 && b.tensor.elements() > 0) b.tensor.data = nullptr;
  }
}

}  // namespace assay::train
