// What cuDNN receives of documents packed in sequences: where each begins in every operand, and how long it is. Also
// the log-sum-exps as cuDNN then has them, token by token.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "attention_operands.hpp"

namespace assay::cuda {

struct DocumentTables {
  std::int64_t* offsets = nullptr;  // by operand, documents + 1 each: elements from the operand's beginning
  std::int32_t* lengths = nullptr;  // by document
  std::int64_t* offsets_of(std::size_t operand, std::int64_t documents) const {
    return offsets + static_cast<std::int64_t>(operand) * (documents + 1);
  }
};
// In memory of document_tables_bytes().
inline DocumentTables document_tables_in(void* memory, std::int64_t documents) {
  auto* const offsets = static_cast<std::int64_t*>(memory);
  return {offsets,
          reinterpret_cast<std::int32_t*>(offsets + static_cast<std::int64_t>(attention_operands) * (documents + 1))};
}

// `starts` as in compute::PackedDocuments; `strides`: elements from token to token, by operand.
void launch_document_tables(const std::int32_t* starts, std::int64_t documents,
                            const std::array<std::int64_t, attention_operands>& strides, const DocumentTables& tables,
                            cudaStream_t stream);

// Of log-sum-exps [B, H, T] those [B, T, H], or the other way round.
void launch_lse_by_token(const float* lse, float* by_token, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                         cudaStream_t stream);
void launch_lse_by_head(const float* by_token, float* lse, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                        cudaStream_t stream);

}  // namespace assay::cuda
