// What all operations of the CPU backend share: mode, workspace, and the choice of instruction set.
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
  if (avx2 && avx512) return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

}  // namespace

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512_bf16: return "avx512_bf16";
    default: return "baseline";
  }
}

Isa machine_isa() {
  const Isa best = best_isa();
  const char* const wanted = std::getenv("ASSAY_CPU_ISA");
  if (!wanted || !*wanted) return best;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (std::string_view(wanted) != name_of(isa)) continue;
    if (isa > best)
      throw Error(ASSAY_UNSUPPORTED,
                  fmt::format("ASSAY_CPU_ISA is {}, but this machine's best is {}; unset it", wanted, name_of(best)));
    return isa;
  }
  throw Error(ASSAY_INVALID_ARGUMENT,
              fmt::format("ASSAY_CPU_ISA is \"{}\"; expected baseline, avx2, avx512 or avx512_bf16, or leave it unset",
                          wanted));
}

CpuBackend::CpuBackend() : isa_(machine_isa()), matmuls_(std::make_unique<MatmulCache>()) {}
CpuBackend::~CpuBackend() = default;

void CpuBackend::set_mode(Mode mode) {
  if (preparing() && mode != Mode::prepare) matmuls_->end_preparing();
  mode_ = mode;
}

void CpuBackend::run_any(const AnyOperation& operation) {
  run_checked(operation, [this](const auto& op) { execute(op); });
}

std::size_t CpuBackend::workspace_bytes() const { return workspace_needed_; }

void CpuBackend::set_workspace(void* address, std::size_t bytes) {
  workspace_ = address;
  workspace_size_ = bytes;
}

std::vector<PrimitiveInfo> CpuBackend::primitives() const { return matmuls_->primitives(); }

void CpuBackend::set_product_math(ProductMath math) {
  if (math != ProductMath::exact) reject("set_product_math", "there is no tf32 arithmetic; expected exact");
}

void CpuBackend::set_tuning(Tuning tuning) { matmuls_->set_tuning(tuning); }

void CpuBackend::share_tuning(AlgorithmExchange* with) { matmuls_->share_tuning(with); }

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

}  // namespace assay::cpu
