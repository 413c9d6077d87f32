// Where each temporary tensor of a step lies in one arena, decided once before anything runs.
//
// A buffer is alive from moment `first` to moment `last`, both included, in the order of a step. Buffers that are never
// alive together may share addresses. Greedy by size: largest first, each at the lowest offset that is free over its
// whole life. For the two-sided stack that a forward and a backward pass make, this comes within a few percent of the
// largest sum of live bytes, which lower_bound_bytes() states.
#pragma once
#include <assay/compute/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::train {

class BufferPlan {
 public:
  static constexpr std::size_t alignment = 256;
  using Id = std::size_t;

  struct Buffer {
    std::string name;
    compute::Tensor tensor;  // data stays null until bind()
    int first, last;
    std::size_t bytes;   // rounded up to the alignment
    std::size_t offset;  // after solve()
  };

  Id add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims, int first, int last);
  void solve();
  std::size_t total_bytes() const { return total_; }  // after solve()
  std::size_t lower_bound_bytes() const;              // the largest sum of bytes alive at one moment
  void bind(void* base);                              // `total_bytes` at `base`
  const compute::Tensor& operator[](Id id) const { return buffers_[id].tensor; }  // after bind()
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  std::vector<Buffer> buffers_;
  std::size_t total_ = 0;
};

}  // namespace assay::train
