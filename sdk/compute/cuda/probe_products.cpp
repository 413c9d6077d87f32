#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "common/probe_parts.hpp"
#include "probe_product.hpp"
#include "probes.hpp"

namespace assay::cuda {
namespace {

constexpr std::size_t probe_workspace_bytes = std::size_t{64} << 20;
constexpr int most_algorithms = 8;

std::size_t bytes_of(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 ? 1 : 2; }

LtHandle open_lt() {
  cublasLtHandle_t made = nullptr;
  check_lt(cublasLtCreate(&made), "open cuBLASLt for a probe");
  return LtHandle(made);
}

LtLayout layout_of(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check_lt(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                      static_cast<std::uint64_t>(columns), rows),
           "describe a matrix of a probe");
  return LtLayout(made);
}

LtDescription description_of(const ProductForm& form) {
  cublasLtMatmulDesc_t made = nullptr;
  check_lt(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product of a probe");
  LtDescription description(made);
  const std::int32_t a = form.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, b = form.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  check_lt(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a), "describe a product");
  check_lt(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b), "describe a product");
  if (bytes_of(form.a) == 1) {
    // Of fp8 a probe asks the heuristics alone, which do not read the scales.
    const std::uintptr_t aligned_alike = 256;
    for (const auto scale : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
      check_lt(cublasLtMatmulDescSetAttribute(made, scale, &aligned_alike, sizeof aligned_alike), "describe a product");
  }
  return description;
}

std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A few numbers over and over, as many as a prime: no column of a matrix is like another.
void fill(const DeviceMemory& memory, std::size_t elements, ProbeData data) {
  if (data == ProbeData::zeros) {
    check(cudaMemset(memory.get(), 0, elements * 2), "fill a matrix of a probe");
    return;
  }
  constexpr std::size_t block = 1'000'003;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, data == ProbeData::weights ? 0.02F : 1.0F);
  std::vector<std::uint16_t> numbers(std::min(block, elements));
  for (std::uint16_t& number : numbers) number = bf16_of(normal(random));
  auto* const bytes = static_cast<std::byte*>(memory.get());
  for (std::size_t at = 0; at < elements; at += numbers.size())
    check(
        cudaMemcpy(bytes + at * 2, numbers.data(), std::min(numbers.size(), elements - at) * 2, cudaMemcpyHostToDevice),
        "fill a matrix of a probe");
}

bool is_taken(cublasLtHandle_t handle, const ProductForm& form) {
  return !ProbeProblem(form).algorithms(handle, 1).empty();
}

// The least step of 1, 2, 4, 8 and 16 by which an extent may differ from a multiple of 32; 0: none.
int step_of(cublasLtHandle_t handle, ProductForm form, std::int64_t ProductForm::*extent) {
  const std::int64_t base = form.*extent;
  for (const int step : {1, 2, 4, 8, 16}) {
    form.*extent = base + step;
    if (is_taken(handle, form)) return step;
  }
  return 0;
}

}  // namespace

ProbeProblem::ProbeProblem(const ProductForm& form)
    : description_(description_of(form)),
      a_(form.transpose_a ? layout_of(form.a, form.k, form.m) : layout_of(form.a, form.m, form.k)),
      b_(form.transpose_b ? layout_of(form.b, form.n, form.k) : layout_of(form.b, form.k, form.n)),
      d_(layout_of(form.d, form.m, form.n)) {}

std::vector<cublasLtMatmulHeuristicResult_t> ProbeProblem::algorithms(cublasLtHandle_t handle, int most) const {
  cublasLtMatmulPreference_t made = nullptr;
  check_lt(cublasLtMatmulPreferenceCreate(&made), "describe what an algorithm may need");
  const Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(made);
  const std::uint64_t workspace = probe_workspace_bytes;
  check_lt(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                sizeof workspace),
           "describe what an algorithm may need");
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int returned = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, description_.get(), a_.get(), b_.get(), d_.get(),
                                                               d_.get(), made, most, results.data(), &returned);
  if (status != CUBLAS_STATUS_SUCCESS) returned = 0;  // that is the answer
  results.resize(static_cast<std::size_t>(returned));
  return results;
}

void ProbeProblem::run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b,
                       void* d, void* workspace, std::size_t workspace_bytes, cudaStream_t stream) const {
  const float one = 1, zero = 0;
  check_lt(cublasLtMatmul(handle, description_.get(), &one, a, a_.get(), b, b_.get(), &zero, d, d_.get(), d, d_.get(),
                          &algorithm, workspace, workspace_bytes, stream),
           "run a product of a probe");
}

ProbeProduct::ProbeProduct(const ProductForm& form, ProbeData data)
    : form_(form),
      handle_(open_lt()),
      problem_(form),
      algorithms_(problem_.algorithms(handle_.get(), most_algorithms)),
      stream_(make_stream(priority_of_steps)) {
  if (algorithms_.empty()) throw Error(ASSAY_UNSUPPORTED, "cuBLASLt has no algorithm for the product of a probe");
  const auto elements = [](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns);
  };
  a_ = probe_memory(elements(form.m, form.k) * bytes_of(form.a));
  b_ = probe_memory(elements(form.k, form.n) * bytes_of(form.b));
  d_ = probe_memory(elements(form.m, form.n) * bytes_of(form.d));
  workspace_ = probe_memory(probe_workspace_bytes);
  fill(a_, elements(form.m, form.k), data);
  fill(b_, elements(form.k, form.n), data);
  check(cudaDeviceSynchronize(), "fill the matrices of a probe");
}

double ProbeProduct::time_us(int times) const {
  const Event begin = make_event(cudaEventDefault), end = make_event(cudaEventDefault);
  check(cudaEventRecord(begin.get(), stream_.get()), "time a product");
  for (int i = 0; i < times; ++i)
    problem_.run(handle_.get(), algorithms_.front().algo, a_.get(), b_.get(), d_.get(), workspace_.get(),
                 probe_workspace_bytes, stream_.get());
  check(cudaEventRecord(end.get(), stream_.get()), "time a product");
  check(cudaStreamSynchronize(stream_.get()), "wait for a product");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "read the time of a product");
  return static_cast<double>(ms) * 1e3;
}

std::vector<std::uint16_t> ProbeProduct::result_of(int algorithm) const {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(form_.m * form_.n));
  problem_.run(handle_.get(), algorithms_[static_cast<std::size_t>(algorithm)].algo, a_.get(), b_.get(), d_.get(),
               workspace_.get(), probe_workspace_bytes, stream_.get());
  check(cudaStreamSynchronize(stream_.get()), "wait for a product");
  check(cudaMemcpy(bits.data(), d_.get(), bits.size() * 2, cudaMemcpyDeviceToHost), "read the result of a product");
  return bits;
}

void probe_products(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings rate(sink, "rate"), determinism(sink, "determinism");
  const ProductForm cube = ProbeProduct::large_cube();
  const double flops = 2.0 * static_cast<double>(cube.m) * static_cast<double>(cube.n) * static_cast<double>(cube.k);
  const auto rate_of = [&](ProbeData data) {
    const ProbeProduct product(cube, data);
    product.time_us(500);  // until the power cap has settled the clock
    constexpr int times = 300;
    return flops * times / product.time_us(times) * 1e-6;
  };
  rate.number("bf16_zeros_tflop_per_s", rate_of(ProbeData::zeros));
  rate.number("bf16_normal_tflop_per_s", rate_of(ProbeData::normal));
  rate.number("bf16_weights_tflop_per_s", rate_of(ProbeData::weights));

  const ProbeProduct deep({.m = 256, .n = 256, .k = 65'536}, ProbeData::normal);
  std::set<std::vector<std::uint16_t>> results;
  int varying = 0;
  for (int algorithm = 0; algorithm < deep.algorithms(); ++algorithm) {
    std::set<std::vector<std::uint16_t>> own;
    for (int repeat = 0; repeat < 20; ++repeat) own.insert(deep.result_of(algorithm));
    varying += own.size() > 1 ? 1 : 0;
    results.insert(own.begin(), own.end());
  }
  determinism.number("deep_product_algorithms", deep.algorithms());
  determinism.number("deep_product_results", static_cast<double>(results.size()));
  determinism.number("deep_product_algorithms_that_vary", varying);
}

void probe_fp8(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "fp8");
  const LtHandle handle = open_lt();
  const ProductForm form{.a = CUDA_R_8F_E4M3, .b = CUDA_R_8F_E4M3, .d = CUDA_R_16BF, .m = 256, .n = 256, .k = 256};
  std::string transposes, types;
  const auto add = [](std::string& list, const std::string& word) { list += (list.empty() ? "" : ", ") + word; };
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      ProductForm other = form;
      other.transpose_a = a;
      other.transpose_b = b;
      if (is_taken(handle.get(), other)) add(transposes, fmt::format("{}{}", a ? 'T' : 'N', b ? 'T' : 'N'));
    }
  found.text("transposes", transposes.empty() ? "none" : transposes);
  const auto name_of = [](cudaDataType_t type) { return type == CUDA_R_8F_E4M3 ? "e4m3" : "e5m2"; };
  for (const cudaDataType_t a : {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2})
    for (const cudaDataType_t b : {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2}) {
      ProductForm other = form;
      other.a = a;
      other.b = b;
      if (is_taken(handle.get(), other)) add(types, fmt::format("{} x {}", name_of(a), name_of(b)));
    }
  found.text("types", types.empty() ? "none" : types);
  if (!is_taken(handle.get(), form)) return;
  found.number("m_multiple", step_of(handle.get(), form, &ProductForm::m));
  found.number("n_multiple", step_of(handle.get(), form, &ProductForm::n));
  found.number("k_multiple", step_of(handle.get(), form, &ProductForm::k));
}

}  // namespace assay::cuda
