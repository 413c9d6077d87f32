// cuDNN's attention by shape: graphs are built, timed and kept while preparing, and only launched while executing.
// cuDNN itself stays behind this border: its frontend is large, and one translation unit includes it.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/backend.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attention_operands.hpp"
#include "common/shared_algorithms.hpp"
#include "kernels/attention_documents.hpp"

namespace assay::cuda {

// One graph: the problem, its scale, what is dropped, and the walk over each operand but lse, which is contiguous
// [B, H, Tq], and the sinks, fp32 [H].
struct AttentionKey {
  struct Strides {  // in elements, of [B, T, H, D] with D contiguous
    std::int64_t batch = 0, time = 0, head = 0;
    auto operator<=>(const Strides&) const = default;
  };
  compute::DType dtype = compute::DType::bf16;
  std::int64_t batch = 0, heads = 0, queries = 0, keys = 0;
  std::int64_t depth = 0, value_depth = 0;  // of q, k and their gradients; of v, out and theirs
  std::int64_t key_heads = 0;               // of k, v, dk and dv; `heads` is a multiple of it
  bool causal = true, backward = false;
  float scale = 1.0F;
  float dropout = 0.0F;  // the probability; 0: a graph without random numbers
  std::int64_t window = 0;
  float soft_cap = 0.0F;
  bool sinks = false;                       // of the forward; the backward finds them in lse
  std::int64_t documents = 0, longest = 0;  // packed in the sequences, and tokens of the longest; 0: none
  std::array<Strides, attention_operands> strides{};
  auto operator<=>(const AttentionKey&) const = default;

  // Elements from token to token, by operand; with documents that of lse is a number for each head.
  std::array<std::int64_t, attention_operands> token_strides() const {
    std::array<std::int64_t, attention_operands> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = strides[i].time;
    all[static_cast<std::size_t>(AttentionOperand::lse)] = heads;
    return all;
  }

  // Dimensions of one entry have no stride that matters: they get the one a packed tensor would have, so that equal
  // problems have equal keys.
  void set_strides(AttentionOperand operand, const compute::Tensor& t);
  // "attention_backward bf16 4x12 heads, 512x512x64 causal window 128 cap 50 sinks dropout 0.1 documents 20 up to 90";
  // "4x14 heads, 2 of keys" where these are fewer; "512x512x192 values 128" where these have another width.
  std::string text() const;
  // And how the operands lie in memory, on which a kernel's speed may depend as well.
  std::string text_with_strides() const;
};

using AttentionPointers = std::array<void*, attention_operands>;

// Device memory that is no operand: with dropout, seed and offset, the same in both passes for the same mask; with
// documents their tables. A kernel that is enqueued before may write both.
struct AttentionTables {
  std::int64_t* random = nullptr;
  DocumentTables documents;
};

class AttentionPlans {
 public:
  // No call of cuDNN before the first start() or prepare(). The plans run on `stream` alone, the main lane's: a handle
  // of cuDNN belongs to one stream, and no workload attends on the side lane. `shared` must outlive it.
  AttentionPlans(int ordinal, cudaStream_t stream, compute::SharedAlgorithms& shared);
  ~AttentionPlans();  // waits for plans that are being built
  AttentionPlans(const AttentionPlans&) = delete;
  AttentionPlans& operator=(const AttentionPlans&) = delete;

  static std::string library();      // cuDNN with its version
  void set_tuning(compute::Tuning);  // of plans that are begun from here on

  // Begins to build the key's plan, unless it is there or begun, on a thread beside the caller: cuDNN compiles kernels
  // for it, a second of a processor. At most 8 are built at a time, and no more than there are processors for. What
  // cuDNN has against the key prepare() throws.
  void start(const AttentionKey& key);
  bool is_building() const;  // since a start(), until wait()
  void wait();               // until nothing is being built
  // Waits, and drops what was begun and never prepared, as after a preparation that has failed: the next start() begins
  // anew, with the tuning of that time.
  void forget_begun();

  // Builds the key's plan unless it is there: up to three candidates of cuDNN's heuristics, timed on memory taken for
  // that moment; ASSAY_ATTENTION_TUNE=0 in the environment, dropout, or too little free memory, takes the first. What
  // was chosen is kept on disk (common/algorithm_cache.hpp), so that the next process runs the same, and builds it
  // alone. With Tuning::first_choice, what is on disk or the first, without timing. Of several ranks one times, where
  // their GPUs are alike. Waits for all that is being built before anything is timed. Returns the bytes of workspace
  // that execute() needs, 256-byte aligned. Throws UNSUPPORTED with cuDNN's text.
  std::size_t prepare(const AttentionKey& key);
  // The same without building: INVALID_ARGUMENT for a key that was never prepared.
  std::size_t workspace_bytes(const AttentionKey& key) const;
  // Enqueues. Waits for nothing, and may be captured into a graph. With documents lse is [B, T, H].
  void execute(const AttentionKey& key, const AttentionPointers& pointers, const AttentionTables& tables,
               void* workspace);

  std::vector<compute::PrimitiveInfo> primitives() const;  // of every plan: graph, and engine with its measured time

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What cuDNN would say to the key on a GPU that is not there, described by the bytes of a serialised
// cudnn_frontend::DeviceProperties.
struct AttentionSupport {
  int candidates = 0;
  std::string reason;  // cuDNN's text when there are none
};
AttentionSupport attention_support(const AttentionKey& key, std::string_view device_properties);
// What it says to each of the keys on the GPU that is current on this thread. Nothing is built.
std::vector<AttentionSupport> attention_support(const std::vector<AttentionKey>& keys, cudaStream_t stream);

}  // namespace assay::cuda
