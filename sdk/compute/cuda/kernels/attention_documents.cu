#include "kernels/attention_documents.hpp"

#include "cuda_error.hpp"

namespace assay::cuda {
namespace {

constexpr int threads_each = 256;

unsigned blocks_for(std::int64_t count) {
  const std::int64_t blocks = (count + threads_each - 1) / threads_each;
  if (blocks > INT32_MAX)
    refuse_count("attention", count, "log-sum-exps beside documents; at most 549755813632 are served");
  return static_cast<unsigned>(blocks);
}

struct Strides {
  std::int64_t of[attention_operands];
};

__global__ void __launch_bounds__(threads_each)
    document_tables_kernel(const std::int32_t* starts, std::int64_t documents, Strides strides, DocumentTables tables) {
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (i > documents) return;
  const std::int64_t start = starts[i];
  for (std::size_t operand = 0; operand < attention_operands; ++operand)
    tables.offsets[static_cast<std::int64_t>(operand) * (documents + 1) + i] = start * strides.of[operand];
  if (i < documents) tables.lengths[i] = starts[i + 1] - starts[i];
}

// y[b, c, r] = x[b, r, c]. There are as many numbers as tokens and heads: a tile would save nothing that counts.
__global__ void __launch_bounds__(threads_each)
    transpose_kernel(const float* x, float* y, std::int64_t count, std::int64_t rows, std::int64_t columns) {
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  const std::int64_t matrix = i / (rows * columns), in_matrix = i % (rows * columns);
  const std::int64_t row = in_matrix % rows, column = in_matrix / rows;
  y[i] = x[matrix * rows * columns + row * columns + column];
}

void transpose(const float* x, float* y, std::int64_t batch, std::int64_t rows, std::int64_t columns,
               cudaStream_t stream) {
  const std::int64_t count = batch * rows * columns;
  if (count == 0) return;
  transpose_kernel<<<blocks_for(count), threads_each, 0, stream>>>(x, y, count, rows, columns);
  check_launch("attention");
}

}  // namespace

void launch_document_tables(const std::int32_t* starts, std::int64_t documents,
                            const std::array<std::int64_t, attention_operands>& strides, const DocumentTables& tables,
                            cudaStream_t stream) {
  Strides all{};
  for (std::size_t i = 0; i < attention_operands; ++i) all.of[i] = strides[i];
  document_tables_kernel<<<blocks_for(documents + 1), threads_each, 0, stream>>>(starts, documents, all, tables);
  check_launch("attention");
}

void launch_lse_by_token(const float* lse, float* by_token, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                         cudaStream_t stream) {
  transpose(lse, by_token, batch, heads, tokens, stream);
}
void launch_lse_by_head(const float* by_token, float* lse, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                        cudaStream_t stream) {
  transpose(by_token, lse, batch, tokens, heads, stream);
}

}  // namespace assay::cuda
