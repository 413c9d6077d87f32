// A BufferPlan decides, once and before anything runs, where each temporary tensor of a step lies in one arena.
//
// A buffer is alive from moment `first` to moment `last`, both included, in the order of a step. Buffers that are never
// alive together may share addresses. A part of the arena may be reserved for a time: a gradient arena, whose pieces
// are written one after the other in backward, holds activations until then. Each buffer is placed at the lowest offset
// that is free over its whole life, one after the other, in several orders, until one comes near the least that is
// known to be needed, or else the best counts. The first two orders begin with the fullest moment, at which the
// borrowed memory is filled as far as whole buffers can fill it. Steps of more than 10,000 buffers are placed in the
// order of time, without the borrowed memory, and take up to a third more. For the two-sided stack that a forward and a
// backward pass make, this comes within a few percent of the largest sum of live bytes, which lower_bound_bytes()
// states.
//
// Lives are given, or derived from the step by plan_step() (step_recording.hpp). Until bind() a buffer's tensor has an
// address of no memory, by which the recorded step knows it.
#pragma once
#include <assay/compute/tensor.hpp>

#include <assay/train/unbound_memory.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace assay::train {

struct PlacementProblem;

class BufferPlan {
 public:
  static constexpr std::size_t alignment = 256;
  using Id = std::size_t;

  enum class Use {
    temporary,
    result,          // is read after the step
    outlives_steps,  // was filled before the step, and stays
  };
  struct Buffer {
    std::string name;
    compute::Tensor tensor;  // in memory after bind()
    int first, last;
    std::size_t bytes;   // rounded up to the alignment; 0 where the step uses it nowhere
    std::size_t offset;  // after solve()
    Use use = Use::temporary;
  };

  struct Taken {
    std::size_t offset, bytes;
    int first, last;
  };

  // `memory`: distinguishes the buffers of one plan from those of another that the same step uses.
  explicit BufferPlan(UnboundMemory memory = UnboundMemory::buffers) : memory_(memory) {}

  // For plan_step(). solve() refuses a buffer that has more bytes than any memory (checked_size.hpp).
  Id add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims, Use use = Use::temporary);
  void set_life(Id id, int first, int last);
  void leave_out(Id id);                          // takes no memory; its tensor is empty after bind()
  std::size_t buffer_at(const void* data) const;  // before bind(): the buffer of a tensor; their number if it has none

  // With a life that is known.
  Id add(std::string name, compute::DType dtype, std::initializer_list<std::int64_t> dims, int first, int last);

  // Throws Error(OUT_OF_MEMORY) that names the buffer if it has more bytes than any memory.
  static void refuse_beyond_all(const Buffer& buffer);

  // To be called before solve(): the arena begins with `bytes` of borrowed memory, where a buffer may lie while its
  // place is not reserved. No buffer crosses the end of this memory, because the rest of the arena is a separate
  // allocation.
  void borrow(std::size_t bytes);
  // To be called before solve(): something placed already has these bytes from moment `first` to moment `last`.
  void reserve(std::size_t offset, std::size_t bytes, int first, int last);
  void solve();
  // In the place of borrow() and solve(), of a step in two parts: what is alive both at `moment`, the last one of the
  // first part, and behind it has own memory, all else borrowed memory, as much as it needs. So steps between whose
  // parts others run need own memory each, and share the borrowed one.
  void solve_around(int moment);
  std::size_t borrowed_bytes() const { return borrowed_; }
  std::size_t total_bytes() const { return total_; }  // after solve(), borrowed ones included
  std::size_t own_bytes() const { return total_ - own_begin(); }
  std::size_t lower_bound_bytes() const;  // the largest sum of bytes alive at one moment, reserved ones too
  std::size_t peak_live_bytes() const;    // the same for the buffers only: those alive at the fullest moment
  void bind(void* borrowed, void* own);   // own_bytes() at `own`
  bool is_borrowed(std::size_t offset) const { return offset < borrowed_; }
  std::size_t own_begin() const { return (borrowed_ + alignment - 1) / alignment * alignment; }  // its offset
  const compute::Tensor& operator[](Id id) const { return buffers_[id].tensor; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<Taken>& reserved() const { return reserved_; }

 private:
  PlacementProblem problem() const;
  void require_lives() const;

  UnboundMemory memory_;
  std::vector<Buffer> buffers_;
  std::vector<Taken> reserved_;
  std::size_t borrowed_ = 0, total_ = 0;
  std::size_t unbound_end_ = 0;  // of the addresses of no memory that have been given out
};

}  // namespace assay::train
