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

void BufferPlan::solve() {
  std::vector<std::size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
  std::vector<std::size_t> placed;  // sorted by offset
  total_ = 0;
  for (const std::size_t id : order) {
    Buffer& buffer = buffers_[id];
    std::size_t offset = 0;
    for (const std::size_t other_id : placed) {
      const Buffer& other = buffers_[other_id];
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (other.offset >= offset + buffer.bytes) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    buffer.offset = offset;
    total_ = std::max(total_, offset + buffer.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](std::size_t o, std::size_t p) { return o < buffers_[p].offset; }),
                  id);
  }
}

std::size_t BufferPlan::lower_bound_bytes() const {
  std::size_t most = 0;
  for (const Buffer& at : buffers_) {  // the sum can only grow where a life begins
    std::size_t alive = 0;
    for (const Buffer& b : buffers_)
      if (b.first <= at.first && at.first <= b.last) alive += b.bytes;
    most = std::max(most, alive);
  }
  return most;
}

void BufferPlan::bind(void* base) {
  for (Buffer& b : buffers_) b.tensor.data = static_cast<char*>(base) + b.offset;
}

}  // namespace assay::train
