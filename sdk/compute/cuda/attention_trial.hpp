// What the trial of a plan of attention needs beside the plan: memory for its operands, and a stopwatch.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention_graph.hpp"
#include "cuda_error.hpp"
#include "kernels/attention_documents.hpp"
#include "memory_account.hpp"

namespace assay::cuda {

// Memory and events that end with the trial of a plan.
class TrialMemory {
 public:
  TrialMemory() = default;
  ~TrialMemory() {
    for (void* address : owned_) static_cast<void>(cudaFree(address));
  }
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;
  // Null when there is no room.
  void* take(std::size_t bytes) {
    void* address = nullptr;
    const cudaError_t status = cudaMalloc(&address, std::max<std::size_t>(bytes, 1));
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());  // the runtime would report it again after the next launch
      return nullptr;
    }
    check(status, "allocate memory to time attention");
    owned_.push_back(address);
    accounted_.emplace_back(std::max<std::size_t>(bytes, 1), "timing of attention");
    return address;
  }

 private:
  std::vector<void*> owned_;
  std::vector<AccountedBytes> accounted_;
};

// Documents of equal lengths, as many as the key has; no tables where there is no room.
inline DocumentTables trial_documents(const AttentionKey& key, TrialMemory& memory, cudaStream_t stream) {
  std::vector<std::byte> on_host(document_tables_bytes(key.documents));
  const DocumentTables tables = document_tables_in(on_host.data(), key.documents);
  const std::array<std::int64_t, attention_operands> strides = key.token_strides();
  const auto start = [&](std::int64_t document) { return document * key.batch * key.queries / key.documents; };
  for (std::int64_t d = 0; d <= key.documents; ++d)
    for (std::size_t i = 0; i < strides.size(); ++i) tables.offsets_of(i, key.documents)[d] = start(d) * strides[i];
  for (std::int64_t d = 0; d < key.documents; ++d)
    tables.lengths[d] = static_cast<std::int32_t>(start(d + 1) - start(d));
  void* const there = memory.take(on_host.size());
  if (!there) return {};
  check(cudaMemcpyAsync(there, on_host.data(), on_host.size(), cudaMemcpyHostToDevice, stream),
        "copy documents to time attention");
  check(cudaStreamSynchronize(stream), "copy documents to time attention");
  return document_tables_in(there, key.documents);
}

class Stopwatch {
 public:
  Stopwatch() {
    check(cudaEventCreate(&begin_), "create an event to time attention");
    const cudaError_t status = cudaEventCreate(&end_);
    if (status != cudaSuccess) static_cast<void>(cudaEventDestroy(begin_));
    check(status, "create an event to time attention");
  }
  ~Stopwatch() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void start(cudaStream_t stream) { check(cudaEventRecord(begin_, stream), "time attention"); }
  double stop_us(cudaStream_t stream) {
    check(cudaEventRecord(end_, stream), "time attention");
    check(cudaEventSynchronize(end_), "time attention");
    float ms = 0.0F;
    check(cudaEventElapsedTime(&ms, begin_, end_), "time attention");
    return 1e3 * static_cast<double>(ms);
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

inline std::size_t operand_bytes(const AttentionKey& key, std::size_t operand) {
  if (operand == index_of(AttentionOperand::lse))
    return static_cast<std::size_t>(key.batch * key.heads * key.queries) * sizeof(float);
  if (operand == index_of(AttentionOperand::sinks)) return static_cast<std::size_t>(key.heads) * sizeof(float);
  const AttentionKey::Strides& s = key.strides[operand];
  const bool of_keys = over_keys(static_cast<AttentionOperand>(operand));
  const std::int64_t times = of_keys ? key.keys : key.queries, heads = of_keys ? key.key_heads : key.heads;
  const std::int64_t last = (key.batch - 1) * s.batch + (times - 1) * s.time + (heads - 1) * s.head +
                            width_of(key, static_cast<AttentionOperand>(operand)) - 1;
  return static_cast<std::size_t>(last + 1) * size_of(key.dtype);
}

}  // namespace assay::cuda
