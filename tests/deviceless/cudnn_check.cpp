// Asks cuDNN, on a machine without a GPU, for plans of every attention graph that the workloads can want on an H200,
// and compares its answer with the guards: a graph that the guards accept must have candidates. Prints a table.
// Usage: assay_cudnn_check h200.device.json
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cuda/attention_plans.hpp"

namespace {

using assay::compute::DType;
using assay::compute::Tensor;
using assay::cuda::AttentionKey;
using assay::cuda::AttentionOperand;
using assay::cuda::AttentionProblem;

// QKV in one buffer; q apart and KV in one; [B, T, H, D] each; or as DeepSeek-V2-Lite's latent attention has them: q
// beside 576 columns of latents, values behind 128 columns of their head's keys.
enum class Layout { packed, kv_packed, separate, latent };

struct Configuration {
  std::string name;
  AttentionProblem problem;
  Layout layout = Layout::packed;
  bool refused = false;  // the guards must say no
};

// A view of some heads of a [B, T, `of_heads`, D] buffer. It has no address: nothing reads it.
Tensor part(DType type, std::int64_t batch, std::int64_t times, std::int64_t heads, std::int64_t depth,
            std::int64_t of_heads) {
  Tensor t(nullptr, type, {batch, times, of_heads, depth});
  t.shape[2] = heads;
  return t;
}

Tensor queries_beside_latents(const AttentionProblem& p) {
  Tensor t(nullptr, p.dtype, {p.batch, p.queries, p.heads, p.depth});
  t.stride[1] = p.heads * p.depth + 576, t.stride[0] = p.queries * t.stride[1];
  return t;
}

Tensor values_behind_keys(const AttentionProblem& p) {
  Tensor t(nullptr, p.dtype, {p.batch, p.keys, p.heads, 128 + p.value_depth()});
  t.shape[3] = p.value_depth();
  return t;
}

AttentionKey key_of(const Configuration& c) {
  using enum AttentionOperand;
  const AttentionProblem& p = c.problem;
  AttentionKey key;
  key.dtype = p.dtype;
  key.batch = p.batch;
  key.heads = p.heads;
  key.key_heads = p.key_heads();
  key.queries = p.queries;
  key.keys = p.keys;
  key.depth = p.depth;
  key.value_depth = p.value_depth();
  key.causal = p.causal;
  key.backward = p.backward;
  key.dropout = p.dropout;
  key.window = p.window;
  key.soft_cap = p.soft_cap;
  key.sinks = p.sinks && !p.backward;
  key.documents = p.documents;
  key.longest = p.longest;
  key.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(p.depth)));
  const std::int64_t packed = p.heads + 2 * p.key_heads();
  const std::int64_t q_heads = c.layout == Layout::packed ? packed : p.heads;
  const std::int64_t kv_heads = c.layout == Layout::packed      ? packed
                                : c.layout == Layout::kv_packed ? 2 * p.key_heads()
                                                                : p.key_heads();
  const auto of_queries = [&](AttentionOperand operand, std::int64_t width, std::int64_t of_heads) {
    key.set_strides(operand, part(p.dtype, p.batch, p.queries, p.heads, width, of_heads));
  };
  const auto of_keys = [&](AttentionOperand operand, std::int64_t width) {
    key.set_strides(operand, part(p.dtype, p.batch, p.keys, p.key_heads(), width, kv_heads));
  };
  const std::int64_t width = key.depth, value_width = key.value_depth;
  of_queries(q, width, q_heads), of_keys(k, width), of_keys(v, value_width), of_queries(out, value_width, p.heads);
  if (p.backward) {
    of_queries(dout, value_width, p.heads), of_queries(dq, width, q_heads);
    of_keys(dk, width), of_keys(dv, value_width);
  }
  if (c.layout == Layout::latent) {
    key.set_strides(q, queries_beside_latents(p)), key.set_strides(v, values_behind_keys(p));
    if (p.backward) key.set_strides(dq, queries_beside_latents(p)), key.set_strides(dv, values_behind_keys(p));
  }
  return key;
}

std::vector<Configuration> configurations() {
  std::vector<Configuration> all;
  const auto both = [&](const std::string& name, AttentionProblem p, Layout layout = Layout::packed) {
    for (const bool backward : {false, true}) {
      p.backward = backward;
      all.push_back({name, p, layout, false});
    }
  };
  const struct {
    const char* name;
    std::int64_t heads, depth;
  } sizes[] = {{"small", 12, 64}, {"medium", 16, 64}, {"large", 20, 64}, {"xl", 25, 64}, {"2.7B", 32, 80}};
  const struct {
    const char* name;
    std::int64_t heads, key_heads, depth;
  } public_models[] = {{"qwen2.5-0.5b", 14, 2, 64}, {"qwen2.5-1.5b", 12, 2, 128}, {"qwen2.5-3b", 16, 2, 128},
                       {"qwen2.5-7b", 28, 4, 128},  {"qwen3-0.6b", 16, 8, 128},   {"llama3-8b", 32, 8, 128}};
  // What a rank has of heads that two share (configs/tensor-parallel.toml).
  both("tensor_parallel xl", {DType::bf16, 4, 10, 512, 512, 80, true, false});
  for (const std::int64_t batch : {1, 2})  // a chunk of these sequences (configs/tensor-parallel-chunks.toml)
    all.push_back(
        {"tensor_parallel chunk", {DType::bf16, batch, 10, 512, 512, 80, true, false}, Layout::packed, false});
  both("tensor_parallel 2.7B", {DType::bf16, 4, 16, 512, 512, 80, true, false});
  for (const DType type : {DType::bf16, DType::f16}) {
    for (const auto& model : public_models)
      for (const auto& [batch, context] : {std::pair{1, 128}, {4, 1024}, {16, 1024}, {1, 4096}, {2, 8192}})
        both(std::string("decoder ") + model.name,
             {type, batch, model.heads, context, context, model.depth, true, false, 0.0F, model.key_heads});
    for (const std::int64_t times : {1024, 4096})  // DeepSeek-V2's latent attention
      both("latent", {type, 2, 16, times, times, 192, true, false, 0.0F, 16, 0, 0.0F, false, 128}, Layout::latent);
    // Packed documents: few and many, with groups, windows and sinks.
    for (const auto& [documents, longest] : {std::pair{8, 4096}, {500, 700}})
      for (const std::int64_t depth : {64, 128})
        for (const std::int64_t window : {0, 128})
          both("documents",
               {type, 2, 16, 8192, 8192, depth, true, false, 0.0F, 8, window, 0.0F, window > 0, 0, documents, longest});
    // Windows (Gemma 3, gpt-oss), sinks and caps, at lengths that no block divides, too.
    for (const std::int64_t depth : {64, 128, 256})
      for (const std::int64_t times : {300, 1024, 8192})
        for (const std::int64_t window : {0, 128, 1000}) {
          if (window > 0) both("window", {type, 2, 16, times, times, depth, true, false, 0.0F, 8, window % times});
          if (window < 1000) {
            both("sinks", {type, 2, 16, times, times, depth, true, false, 0.0F, 8, window, 0.0F, true});
            both("cap", {type, 2, 16, times, times, depth, true, false, 0.0F, 8, window, 50.0F});
          }
        }
    both("cap and sinks", {type, 2, 4, 130, 130, 32, true, false, 0.0F, 2, 50, 1.5F, true});
    both("window and dropout", {type, 2, 4, 256, 256, 64, true, false, 0.1F, 2, 50});
    both("window of a rectangle", {type, 2, 3, 64, 128, 64, true, false, 0.0F, 0, 40});
    both("window without causal", {type, 2, 3, 256, 256, 64, false, false, 0.0F, 0, 64});
    // The grouped queries of the conformance suite.
    for (const auto& [queries, keys, heads, depth, key_heads] : std::initializer_list<std::array<std::int64_t, 5>>{
             {33, 33, 4, 16, 2}, {130, 130, 4, 32, 2}, {64, 128, 6, 32, 3}, {200, 200, 7, 16, 1}})
      both("grouped queries", {type, 2, heads, queries, keys, depth, true, false, 0.0F, key_heads});
    for (const auto& size : sizes)
      for (const auto& [batch, context] : {std::pair{4, 128}, {4, 256}, {4, 512}, {4, 1024}, {16, 1024}, {1, 4096}})
        both(std::string("decoder ") + size.name, {type, batch, size.heads, context, context, size.depth, true, false});
    for (const std::int64_t depth : {16, 32, 64, 80, 96, 128, 256})
      for (const std::int64_t times : {128, 256, 1024, 4096, 8192, 16384})
        for (const bool causal : {true, false})
          both("attention", {type, 2, 16, times, times, depth, causal, false}, Layout::separate);
    // The presets of encoder_decoder: the decoder reads all tokens but the last one.
    for (const auto& [batch, heads, depth, times] : std::initializer_list<std::array<std::int64_t, 4>>{
             {128, 4, 32, 256}, {128, 8, 64, 256}, {64, 12, 64, 256}, {8, 32, 64, 512}})
      for (const float dropout : {0.0F, 0.1F}) {
        both("encoder", {type, batch, heads, times, times, depth, false, false, dropout});
        both("cross", {type, batch, heads, times - 1, times, depth, false, false, dropout}, Layout::kv_packed);
        both("encoder-decoder, masked", {type, batch, heads, times - 1, times - 1, depth, true, false, dropout});
      }
    // The tables of the attention workload.
    for (const std::int64_t depth : {16, 32, 64, 128}) {
      for (const std::int64_t times : {256, 1024, 4096, 8192, 16384})
        for (const bool causal : {true, false})
          both("attention grid", {type, 8, 1, times, times, depth, causal, false}, Layout::separate);
      for (std::int64_t times = 128; times <= 65536; times *= 2)
        both("flash against regular", {type, 1, 1, times, times, depth, true, false}, Layout::separate);
    }
    // The shapes of the conformance suite.
    for (const auto& [queries, keys] : {std::pair{17, 17}, {64, 64}, {257, 257}, {300, 300}, {530, 530}})
      for (const std::int64_t depth : {8, 24, 40, 64, 128})
        both("odd length", {type, 2, 3, queries, keys, depth, true, false});
    for (const auto& [queries, keys] : {std::pair{33, 256}, {200, 384}, {97, 128}, {2, 128}})
      for (const bool causal : {true, false})
        if (!causal || queries <= keys)
          both("other keys", {type, 2, 3, queries, keys, 64, causal, false}, Layout::kv_packed);
    for (const auto& [queries, keys] : {std::pair{1, 1}, {1, 130}, {7, 130}, {33, 257}, {97, 129}})
      for (const bool causal : {true, false})
        all.push_back({"forward only", {type, 2, 3, queries, keys, 64, causal, false}, Layout::separate, false});
  }
  const auto refused = [&](const std::string& name, const AttentionProblem& p) {
    all.push_back({name, p, Layout::separate, true});
  };
  refused("fp32", {DType::f32, 4, 12, 512, 512, 64, true, false});
  refused("fp32", {DType::f32, 4, 12, 512, 512, 64, true, true});
  refused("odd head dimension", {DType::bf16, 1, 2, 128, 128, 13, true, false});
  refused("wide head", {DType::bf16, 1, 2, 128, 128, 264, true, false});
  refused("192 keys, no mask", {DType::bf16, 4, 12, 192, 192, 64, false, true});
  refused("one query", {DType::bf16, 4, 12, 1, 128, 64, false, true});
  refused("more queries than keys", {DType::bf16, 1, 2, 256, 128, 64, true, false});
  refused("rectangular mask with dropout", {DType::bf16, 1, 2, 64, 128, 64, true, false, 0.1F});
  refused("window of more queries than keys", {DType::bf16, 1, 2, 256, 128, 64, false, false, 0.0F, 0, 40});
  refused("cap and dropout", {DType::bf16, 1, 2, 128, 128, 64, true, false, 0.1F, 0, 0, 50.0F});
  refused("documents and a cap", {DType::bf16, 1, 2, 256, 256, 64, true, false, 0.0F, 0, 0, 50.0F, false, 0, 4, 80});
  refused("documents without a mask",
          {DType::bf16, 1, 2, 256, 256, 64, false, false, 0.0F, 0, 0, 0.0F, false, 0, 4, 80});
  refused("one query with sinks", {DType::bf16, 1, 2, 1, 128, 64, false, false, 0.0F, 0, 0, 0.0F, true});
  refused("rectangular mask, 130 keys", {DType::bf16, 1, 2, 7, 130, 64, true, true});
  return all;
}

// Returns whether cuDNN and the guards agree.
bool check(const Configuration& c, const std::string& device, int& served) {
  const AttentionKey key = key_of(c);
  const std::string refusal = assay::cuda::attention_refusal(c.problem);
  std::string verdict;
  bool good = c.refused == !refusal.empty();
  if (!refusal.empty()) {
    verdict = "refused: " + refusal;
  } else {
    const assay::cuda::AttentionSupport support = assay::cuda::attention_support(key, device);
    verdict = support.candidates > 0 ? std::to_string(support.candidates) : "NONE: " + support.reason;
    good = good && support.candidates > 0;
    served += support.candidates > 0;
  }
  if (!good) verdict = "UNEXPECTED: " + verdict;
  std::printf("| %s | %s | %s |\n", c.name.c_str(), key.text().c_str(), verdict.c_str());
  return good;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: assay_cudnn_check DEVICE.json\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string device{std::istreambuf_iterator<char>(file), {}};
  if (device.empty()) {
    std::fprintf(stderr, "assay_cudnn_check: %s cannot be read, or is empty\n", argv[1]);
    return 2;
  }
  std::printf("| configuration | graph | candidates, or the reason |\n| --- | --- | --- |\n");
  int wrong = 0, served = 0, count = 0;
  for (const Configuration& c : configurations()) {
    ++count;
    wrong += !check(c, device, served);
  }
  std::printf("%d graphs: %d served, %d refused by the guards, %d unexpected\n", count, served, count - served - wrong,
              wrong);
  return wrong ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "assay_cudnn_check: %s\n", e.what());
  return 1;
}
