// What all operations of the CPU backend share: mode, workspace, argument checks, and the choice of instruction set.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cpu_backend.hpp"
#include "matmul.hpp"

namespace assay::cpu {
namespace {

Isa best_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

std::string shape_text(const Tensor& t) {
  std::string text = std::string(name_of(t.dtype)) + " [";
  for (int i = 0; i < t.rank; ++i) text += (i ? ", " : "") + std::to_string(t.dim(i));
  return text + "]";
}

}  // namespace

const char* name_of(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline"; }

Isa machine_isa() {
  const Isa best = best_isa();
  const char* const wanted = std::getenv("ASSAY_CPU_ISA");
  if (!wanted || !*wanted) return best;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (std::string_view(wanted) != name_of(isa)) continue;
    if (isa > best)
      throw Error(ASSAY_UNSUPPORTED,
                  fmt::format("ASSAY_CPU_ISA is {}, but this machine's best is {}; unset it", wanted, name_of(best)));
    return isa;
  }
  throw Error(ASSAY_INVALID_ARGUMENT,
              fmt::format("ASSAY_CPU_ISA is \"{}\"; expected baseline, avx2 or avx512, or leave it unset", wanted));
}

CpuBackend::CpuBackend() : isa_(machine_isa()), matmuls_(std::make_unique<MatmulCache>()) {}
CpuBackend::~CpuBackend() = default;

void CpuBackend::set_mode(Mode mode) { mode_ = mode; }

std::size_t CpuBackend::workspace_bytes() const { return workspace_needed_; }

void CpuBackend::set_workspace(void* address, std::size_t bytes) {
  workspace_ = address;
  workspace_size_ = bytes;
}

std::vector<PrimitiveInfo> CpuBackend::primitives() const { return matmuls_->primitives(); }

void* CpuBackend::scratch(std::size_t bytes) {
  if (preparing()) {
    workspace_needed_ = std::max(workspace_needed_, bytes);
    return nullptr;
  }
  if (bytes > workspace_size_)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("an operation needs {} bytes of workspace, but {} were given; run it once in prepare mode, "
                            "then give workspace_bytes() to set_workspace()",
                            bytes, workspace_size_));
  return workspace_;
}

void reject(const char* operation, const std::string& what) {
  throw Error(ASSAY_UNSUPPORTED, fmt::format("{} on the CPU: {}", operation, what));
}

void require_dtype(const char* operation, const Tensor& t, std::initializer_list<DType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), t.dtype) != allowed.end()) return;
  std::string names;
  for (const DType d : allowed) names += (names.empty() ? "" : " or ") + std::string(name_of(d));
  reject(operation, fmt::format("tensor {} given; expected {}", shape_text(t), names));
}

void require_same_shape(const char* operation, const Tensor& a, const Tensor& b) {
  if (a.rank == b.rank && std::equal(a.shape.begin(), a.shape.begin() + a.rank, b.shape.begin())) return;
  throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("{} on the CPU: tensors {} and {} given; expected equal shapes",
                                                  operation, shape_text(a), shape_text(b)));
}

void require_contiguous(const char* operation, const Tensor& t) {
  if (!t.contiguous())
    reject(operation, fmt::format("tensor {} has gaps or a permuted order; expected a contiguous one: copy it first",
                                  shape_text(t)));
}

void require_rank(const char* operation, const Tensor& t, int rank) {
  if (t.rank != rank)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the CPU: tensor {} given; expected {} dimensions", operation, shape_text(t), rank));
}

Rows as_rows(const char* operation, const Tensor& t) {
  if (t.rank == 0) return {1, 1, 1};
  Rows rows{1, t.dim(-1), t.dim(-1)};
  bool regular = t.step(-1) == 1 || t.dim(-1) == 1;
  std::int64_t span = 0;  // what the next dimension outwards must step by
  for (int i = t.rank - 2; i >= 0; --i) {
    if (t.dim(i) == 1) continue;
    if (rows.count == 1) {
      rows.stride = t.step(i);
    } else {
      regular = regular && t.step(i) == span;
    }
    rows.count *= t.dim(i);
    span = t.step(i) * t.dim(i);
  }
  if (!regular)
    reject(operation, fmt::format("the rows of tensor {} are not evenly spaced runs; expected a contiguous last "
                                  "dimension and one stride from row to row: copy it first",
                                  shape_text(t)));
  return rows;
}

}  // namespace assay::cpu
