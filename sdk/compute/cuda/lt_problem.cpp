#include "lt_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::cuda {
namespace {

cudaDataType_t type_of(compute::DType t) {
  switch (t) {
    case compute::DType::f32: return CUDA_R_32F;
    case compute::DType::bf16: return CUDA_R_16BF;
    case compute::DType::f8_e4m3: return CUDA_R_8F_E4M3;
    default: return CUDA_R_16F;
  }
}

template <class T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_lt(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), "describe a matrix product");
}
template <class T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  check_lt(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value), "describe a matrix");
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check_lt(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
           "describe what an algorithm may need");
}

// Of `lines` lines of `width` elements, which are its columns.
LtLayout make_layout(compute::DType dtype, std::int64_t width, std::int64_t lines, std::int64_t ld, std::int32_t batch,
                     std::int64_t step) {
  cublasLtMatrixLayout_t made = nullptr;
  check_lt(cublasLtMatrixLayoutCreate(&made, type_of(dtype), static_cast<std::uint64_t>(width),
                                      static_cast<std::uint64_t>(lines), ld),
           "describe a matrix");
  LtLayout layout(made);
  if (batch > 1) {
    set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch);
    set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  return layout;
}

// For reports: "?" if the library does not report it.
template <class T>
std::string config_of(const LtAlgorithm& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm.algorithm, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? std::to_string(value) : "?";
}

struct LtTile {
  std::uint32_t id;
  std::int64_t rows, columns;  // of cuBLASLt's result, which is ours transposed
};
constexpr LtTile lt_tiles[] = {
#include "lt_tiles.inc"
};

// Of the fullest multiprocessor's tiles, in no unit. Of a step along k, a tile reads its edges and multiplies its area:
// small tiles read more for each multiplication.
double estimate(const LtTile& tile, const MatmulKey& key, int multiprocessors) {
  const auto tiles_of = [](std::int64_t extent, std::int64_t edge) { return (extent + edge - 1) / edge; };
  const std::int64_t tiles = tiles_of(key.n, tile.rows) * tiles_of(key.m, tile.columns) * key.batch;
  const auto rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
  constexpr double edge_cost = 40;
  return static_cast<double>(tiles_of(tiles, multiprocessors)) * (rows * columns + edge_cost * (rows + columns));
}

}  // namespace

void check_lt(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? ASSAY_OUT_OF_MEMORY : ASSAY_DEVICE_ERROR,
              fmt::format("{} on the GPU: cuBLASLt says {} ({})", what, cublasLtGetStatusString(status),
                          cublasLtGetStatusName(status)));
}

std::string describe(const LtAlgorithm& a) {
  return fmt::format("algo {} tile {} stages {} cluster {} split-k {}",
                     config_of<std::int32_t>(a, CUBLASLT_ALGO_CONFIG_ID),
                     config_of<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_TILE_ID),
                     config_of<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     config_of<std::uint16_t>(a, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
                     config_of<std::int32_t>(a, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

LtProblem::LtProblem(const MatmulKey& key) : key_(key) {
  const cublasComputeType_t compute_type =
      key.math == compute::ProductMath::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t made = nullptr;
  check_lt(cublasLtMatmulDescCreate(&made, compute_type, CUDA_R_32F), "describe a matrix product");
  description_.reset(made);
  const std::int32_t first = key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const std::int32_t second = key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, first);
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, second);
  if (key.multiprocessors > 0)
    set(made, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(key.multiprocessors));
  a_ = key.transpose_a ? make_layout(key.input, key.m, key.k, key.lda, key.batch, key.a_step)
                       : make_layout(key.input, key.k, key.m, key.lda, key.batch, key.a_step);
  b_ = key.transpose_b ? make_layout(key.input, key.k, key.n, key.ldb, key.batch, key.b_step)
                       : make_layout(key.input, key.n, key.k, key.ldb, key.batch, key.b_step);
  c_ = make_layout(key.output, key.n, key.m, key.ldc, key.batch, key.c_step);
  if (key.scaled) {
    // Scales of outer vectors multiply each element of c, after all sums: cuBLASLt's A is our b, which has none where
    // one number is enough.
    const bool one = key.scaled == 1;
    const std::int32_t mode =
        one ? CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F : CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    set(made, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    set(made, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
    set(made, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(key.fast_accumulation));
    // The heuristics take no product whose scales have no address, and do not read them.
    const std::uintptr_t aligned_alike = 256;
    if (!one) set(made, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, aligned_alike);
    set(made, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, aligned_alike);
  }
  if (!has_bias(key)) return;
  // One number for each of cuBLASLt's rows, which are our columns; the same in each product of the batch.
  set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(key.bias)));
  // The heuristics are asked before there is an address: they see one that is aligned as it will be, and do not read
  // it.
  const auto aligned_alike = static_cast<std::uintptr_t>(key.bias_alignment);
  set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned_alike);
}

std::vector<LtAlgorithm> LtProblem::candidates(cublasLtHandle_t handle, int most) const {
  cublasLtMatmulPreference_t made = nullptr;
  check_lt(cublasLtMatmulPreferenceCreate(&made), "describe what an algorithm may need");
  const Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(made);
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_limit_bytes});
  // Parts of a sum that is split over k are added in fp32: in a 16-bit result they would each be rounded.
  const std::uint32_t reductions =
      key_.output == compute::DType::f32
          ? std::uint32_t{CUBLASLT_REDUCTION_SCHEME_INPLACE} | std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}
          : std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE};
  set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(key_.b_alignment));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(key_.a_alignment));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      static_cast<std::uint32_t>(key_.residual ? key_.residual_alignment : key_.c_alignment));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(key_.c_alignment));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int returned = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, description_.get(), b_.get(), a_.get(), c_.get(),
                                                               c_.get(), made, most, results.data(), &returned);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_lt(status, "ask for algorithms of " + describe(key_));
  std::vector<LtAlgorithm> found;
  for (int i = 0; i < returned; ++i) {
    const cublasLtMatmulHeuristicResult_t& r = results[static_cast<std::size_t>(i)];
    if (r.state == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= workspace_limit_bytes)
      found.push_back({r.algo, r.workspaceSize});
  }
  return found;
}

std::vector<LtAlgorithm> LtProblem::with_other_tiles(cublasLtHandle_t handle, const LtAlgorithm& like,
                                                     int multiprocessors, int most) const {
  std::size_t bytes = 0;
  if (cublasLtMatmulAlgoCapGetAttribute(&like.algorithm, CUBLASLT_ALGO_CAP_TILE_IDS, nullptr, 0, &bytes) !=
      CUBLAS_STATUS_SUCCESS)
    return {};
  std::vector<std::uint32_t> offered(bytes / sizeof(std::uint32_t));
  check_lt(
      cublasLtMatmulAlgoCapGetAttribute(&like.algorithm, CUBLASLT_ALGO_CAP_TILE_IDS, offered.data(), bytes, &bytes),
      "ask for the tiles of an algorithm");
  std::uint32_t own = 0;
  check_lt(
      cublasLtMatmulAlgoConfigGetAttribute(&like.algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &own, sizeof own, &bytes),
      "ask for the tile of an algorithm");
  std::vector<std::pair<double, std::uint32_t>> by_time;
  for (const LtTile& tile : lt_tiles) {
    if (tile.id == own || std::find(offered.begin(), offered.end(), tile.id) == offered.end()) continue;
    by_time.emplace_back(estimate(tile, key_, multiprocessors), tile.id);
  }
  std::sort(by_time.begin(), by_time.end());
  std::vector<LtAlgorithm> found;
  for (const auto& [time, id] : by_time) {
    if (found.size() == static_cast<std::size_t>(most)) break;
    LtAlgorithm other = like;
    if (cublasLtMatmulAlgoConfigSetAttribute(&other.algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &id, sizeof id) ==
            CUBLAS_STATUS_SUCCESS &&
        accepts(handle, other))
      found.push_back(other);
  }
  return found;
}

bool LtProblem::accepts(cublasLtHandle_t handle, LtAlgorithm& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, description_.get(), b_.get(), a_.get(), c_.get(),
                                                        c_.get(), &algorithm.algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace_limit_bytes) return false;
  algorithm.workspace_bytes = result.workspaceSize;
  return true;
}

cublasStatus_t LtProblem::run(cublasLtHandle_t handle, const LtAlgorithm& algorithm, float alpha, const LtOperands& at,
                              void* workspace, cudaStream_t stream) const {
  // Addresses are part of a description: this product has a separate one, which the library allows to be copied.
  cublasLtMatmulDescOpaque_t description = *description_.get();
  if (has_bias(key_)) set(&description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, at.bias);
  if (key_.scaled) {
    if (key_.scaled == 2) set(&description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, at.b_scale);
    set(&description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, at.a_scale);
  }
  const float beta = key_.residual ? at.residual_scale : key_.accumulate ? 1.0F : 0.0F;
  const void* const added = key_.residual ? at.residual : at.c;
  return cublasLtMatmul(handle, &description, &alpha, at.b, b_.get(), at.a, a_.get(), &beta, added, c_.get(), at.c,
                        c_.get(), &algorithm.algorithm, workspace, algorithm.workspace_bytes, stream);
}

}  // namespace assay::cuda
