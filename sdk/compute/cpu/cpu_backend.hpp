// The CPU backend: oneDNN for matrix products, our own loops (OpenMP over rows, vectorised inside) for the rest.
// The operations are spread over backend_*.cpp by theme; each calls a kernel of kernels/ for
// the instruction set found at start.
#pragma once
#include <assay/compute/backend.hpp>

#include <algorithm>

#include "common/kernel_arguments.hpp"
#include "common/operation_checks.hpp"
#include "kernels/dropout.hpp"
#include "kernels/isa.hpp"

namespace assay::cpu {

// The interface and the shared checks, by their own names.
using namespace compute;

// A kernel's arguments of a checked dropout. Reads the step: while executing alone.
inline DropoutArgs dropout_args(const Dropout& d) {
  const DropoutRule rule = dropout_rule(d.probability);
  DropoutArgs args{rule.drop_below, rule.factor, d.seed, d.stream, 0};
  if (d.probability > 0.0F) args.step = static_cast<std::uint64_t>(*data_of<std::int64_t>(d.step));
  return args;
}

// Kernels are kept in tables by data type.
inline std::size_t index_of(DType t) { return static_cast<std::size_t>(t); }

class MatmulCache;  // oneDNN primitives by shape, see matmul.hpp

class CpuBackend final : public compute::Backend {
 public:
  CpuBackend();
  ~CpuBackend() override;

  const char* kind() const override { return "cpu"; }
  void set_mode(Mode) override;
  void synchronize() override {}  // every call has done its work when it returns
  std::size_t workspace_bytes() const override;
  void set_workspace(void* address, std::size_t bytes) override;
  std::vector<PrimitiveInfo> primitives() const override;
  void set_product_math(ProductMath) override;
  void set_tuning(Tuning) override;
  void share_tuning(AlgorithmExchange* with) override;
  std::unique_ptr<Graph> capture(const std::function<void()>&) override { return nullptr; }

  // backend_data.cpp
  void upload(const Tensor& to, const void* host_source) override;
  void download(void* host_target, const Tensor& from) override;

  // backend_feed.cpp
  std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) override;

  // backend.cpp: checks the operation, then carries it out by the function for its kind.
  void run_any(const AnyOperation& operation) override;

  bool preparing() const { return mode_ == Mode::prepare; }

 private:
  // Each carries a checked operation out; they are spread over backend_*.cpp, matmul.cpp and ordered_sum.cpp.
#define ASSAY_DECLARE_EXECUTE(Name) void execute(const op::Name& op);
  ASSAY_OPERATIONS(ASSAY_DECLARE_EXECUTE)
#undef ASSAY_DECLARE_EXECUTE

  // Scratch for the operations that need it: asks for `bytes` while preparing, hands them out while executing. One
  // region serves all operations, since none outlives its call.
  void* scratch(std::size_t bytes);
  // Scratch for an operation that is made of others, which have theirs behind it: calls part(address).
  template <class F>
  void with_scratch(std::size_t bytes, F&& part);

  // A product of bf16 where oneDNN has none for this processor: by fp32 copies of its operands.
  void matmul_widened(const op::Matmul& op);
  // Of what an operation may leave out: the tensor, or scratch for [rows, columns] of that type.
  Tensor or_scratch(const Tensor& result, DType type, std::int64_t rows, std::int64_t columns);
  void quantize(const op::EightBitRows& to, const Tensor& result);  // nothing where they are left out

  Isa isa_;
  Mode mode_ = Mode::execute;
  std::size_t workspace_needed_ = 0;
  void* workspace_ = nullptr;
  std::size_t workspace_size_ = 0;
  std::unique_ptr<MatmulCache> matmuls_;
};

template <class F>
void CpuBackend::with_scratch(std::size_t bytes, F&& part) {
  struct Behind {
    CpuBackend& backend;
    const std::size_t own, needed = backend.workspace_needed_, size = backend.workspace_size_;
    void* const workspace = backend.workspace_;
    ~Behind() {
      backend.workspace_size_ = size, backend.workspace_ = workspace;
      if (backend.preparing()) backend.workspace_needed_ = std::max(needed, own + backend.workspace_needed_);
    }
  };
  char* const memory = static_cast<char*>(scratch(bytes));
  const Behind behind{*this, bytes};
  if (preparing())
    workspace_needed_ = 0;
  else
    workspace_ = memory + bytes, workspace_size_ -= bytes;
  part(memory);
}

}  // namespace assay::cpu
