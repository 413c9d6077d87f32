#include "assay/train/buffer_plan.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace assay::train {

BufferPlan::Id BufferPlan::add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims,
                               int first, int last) {
  assert(first <= last);
  const compute::Tensor tensor(nullptr, dtype, dims);
  const std::size_t bytes = (tensor.bytes() + alignment - 1) / alignment * alignment;
  buffers_.push_back({std::move(name), tensor, first, last, bytes, 0});
  return buffers_.size() - 1;
}

void BufferPlan::borrow(std::size_t bytes) { borrowed_ = bytes; }

void BufferPlan::reserve(std::size_t offset, std::size_t bytes, int first, int last) {
  assert(first <= last);
  reserved_.push_back({offset, bytes, first, last});
}

void BufferPlan::solve() {
  std::vector<std::size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
  const auto by_offset = [](const Taken& a, const Taken& b) { return a.offset < b.offset; };
  std::vector<Taken> taken = reserved_;
  std::stable_sort(taken.begin(), taken.end(), by_offset);
  total_ = own_begin();
  for (const Taken& t : taken) total_ = std::max(total_, t.offset + t.bytes);
  for (const std::size_t id : order) {
    Buffer& buffer = buffers_[id];
    const auto on_one_side = [&](std::size_t at) {
      return at < borrowed_ && at + buffer.bytes > borrowed_ ? own_begin() : at;
    };
    std::size_t offset = on_one_side(0);
    for (const Taken& other : taken) {
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (other.offset >= offset + buffer.bytes) break;
      offset = std::max(offset, on_one_side((other.offset + other.bytes + alignment - 1) / alignment * alignment));
    }
    buffer.offset = offset;
    total_ = std::max(total_, offset + buffer.bytes);
    const Taken placed{offset, buffer.bytes, buffer.first, buffer.last};
    taken.insert(std::upper_bound(taken.begin(), taken.end(), placed, by_offset), placed);
  }
}

std::size_t BufferPlan::lower_bound_bytes() const { return most_alive(reserved_); }

std::size_t BufferPlan::peak_live_bytes() const { return most_alive({}); }

std::size_t BufferPlan::most_alive(std::vector<Taken> all) const {
  for (const Buffer& b : buffers_) all.push_back({0, b.bytes, b.first, b.last});
  std::size_t most = 0;
  for (const Taken& at : all) {  // the sum can only grow where a life begins
    std::size_t alive = 0;
    for (const Taken& t : all)
      if (t.first <= at.first && at.first <= t.last) alive += t.bytes;
    most = std::max(most, alive);
  }
  return most;
}

void BufferPlan::bind(void* borrowed, void* own) {
  for (Buffer& b : buffers_)
    b.tensor.data = is_borrowed(b.offset) ? static_cast<char*>(borrowed) + b.offset
                                          : static_cast<char*>(own) + (b.offset - own_begin());
}

}  // namespace assay::train
