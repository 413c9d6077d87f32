// What cuDNN's attention is trusted with. cuDNN says itself what it has no kernel for; these guards refuse what it
// accepts and then computes wrongly, and word the refusals for users. No CUDA headers: tests of any machine use this.
#pragma once
#include <assay/compute/tensor.hpp>

#include <cstdint>
#include <string>

namespace assay::cuda {

struct AttentionProblem {
  compute::DType dtype = compute::DType::bf16;
  std::int64_t batch = 0, heads = 0, queries = 0, keys = 0, depth = 0;
  bool causal = true;  // key j is visible to query i when j <= i + (keys - queries)
  bool backward = false;
  float dropout = 0.0F;                // the probability that one is dropped
  std::int64_t fewer_key_heads = 0;    // heads of keys and values; 0: as many as `heads`
  std::int64_t window = 0;             // fewer than `keys`; 0: a query sees all that `causal` lets it see
  float soft_cap = 0.0F;               // of the scores; 0: none
  bool sinks = false;                  // one more score for each head
  std::int64_t other_value_depth = 0;  // the width of values; 0: as `depth`
  std::int64_t documents = 0;          // packed in the sequences; 0: none
  std::int64_t longest = 0;            // tokens of the longest one

  std::int64_t value_depth() const { return other_value_depth > 0 ? other_value_depth : depth; }
  std::int64_t key_heads() const { return fewer_key_heads > 0 ? fewer_key_heads : heads; }
};

// Why the problem cannot go to cuDNN, as a sentence without its subject that says what is served; empty when it can.
inline std::string attention_refusal(const AttentionProblem& p) {
  using std::to_string;
  // The frontend would run fp32 tensors through a kernel for 16-bit ones, which faults.
  if (p.dtype != compute::DType::bf16 && p.dtype != compute::DType::f16)
    return std::string(name_of(p.dtype)) + " tensors given; cuDNN's attention serves fp16 and bf16";
  if (p.depth < 8 || p.depth > 256 || p.depth % 8 != 0)
    return "head dimension " + to_string(p.depth) +
           " given; 16-bit attention serves multiples of 8 from 8 to 256: change the number of heads, or use fp32";
  // Of other widths none has been looked at on a GPU.
  if (p.value_depth() != p.depth &&
      (p.depth != 192 || p.value_depth() != 128 || p.window > 0 || p.soft_cap > 0 || p.sinks))
    return "values of width " + to_string(p.value_depth()) + " beside queries of " + to_string(p.depth) +
           " given; 16-bit attention serves 128 beside 192, without windows, sinks and a soft cap: use fp32, or the "
           "naive attention";
  if (p.batch < 1 || p.heads < 1 || p.queries < 1 || p.keys < 1)
    return "batch " + to_string(p.batch) + ", " + to_string(p.heads) + " heads, " + to_string(p.queries) +
           " queries and " + to_string(p.keys) + " keys given; 16-bit attention serves at least one of each";
  if (p.causal && p.queries > p.keys)
    return to_string(p.queries) + " queries and " + to_string(p.keys) +
           " keys given; 16-bit causal attention serves no more queries than keys: the first queries would see none";
  if (p.window > 0 && p.queries > p.keys)
    return to_string(p.queries) + " queries and " + to_string(p.keys) +
           " keys given; 16-bit attention with a window serves no more queries than keys: use fp32";
  // Not looked at on a GPU: the graph of the backward has both on the gradient of a score.
  if (p.soft_cap > 0.0F && p.dropout > 0.0F)
    return "a soft cap and dropout given; 16-bit attention serves one of them: use fp32";
  // cuDNN takes each document as a separate sequence ("packed" or THD layout). What is refused here has not been tried
  // on a GPU.
  if (p.documents > 0) {
    if (!p.causal || p.queries != p.keys)
      return "documents given without a causal mask of as many queries as keys; 16-bit attention serves packed "
             "documents with one";
    if (p.soft_cap > 0.0F || p.dropout > 0.0F)
      return "documents given beside a soft cap or dropout; 16-bit attention serves them alone: use fp32, or the naive "
             "attention";
    if (p.depth % 16 != 0)
      return "head dimension " + to_string(p.depth) +
             " given beside documents; 16-bit attention serves multiples of 16: use fp32, or the naive attention";
    if (p.longest < 2)
      return "documents of one token each given; 16-bit attention serves a longest one of two tokens or more";
  }
  // The mask of a rectangle begins in its lower right corner, which cuDNN's graphs do not combine with dropout.
  if (p.dropout > 0.0F && p.causal && p.queries != p.keys)
    return to_string(p.queries) + " queries and " + to_string(p.keys) +
           " keys given; 16-bit causal attention with dropout serves as many queries as keys: use fp32, or the naive "
           "attention";
  if (p.sinks && p.queries == 1)
    return "1 query and sinks given; 16-bit attention with sinks serves two or more: use fp32, or the naive attention";
  if (!p.backward) return "";
  // Seen to give NaN gradients in cuDNN 9.25 and 9.26.
  if (p.queries == 1)
    return "1 query given; the backward of 16-bit attention serves two or more: use fp32, or the naive attention";
  // cuDNN 9.19 to 9.25 give NaN in dq where keys % 128 is 64 and the log-sum-exp is below -88.7, unless the mask of the
  // square causal case covers what lies past the last key. The other remainders are not trusted either.
  if (p.keys % 128 != 0 && !(p.causal && p.queries == p.keys))
    return to_string(p.keys) +
           " keys given; the backward of 16-bit attention serves multiples of 128 unless it is causal with as many "
           "queries as keys: change the sequence length, or use fp32";
  return "";
}

// The same for how an operand [B, T, H, D] lies in memory: kernels read 16 bytes at a time, and reach documents from
// token to token through all sequences.
inline std::string attention_refusal(const char* name, const compute::Tensor& t, bool has_documents = false) {
  if (has_documents && t.dim(0) > 1 && t.step(0) != t.dim(1) * t.step(1))
    return std::string(name) + " has stride " + std::to_string(t.step(0)) + " from sequence to sequence beside " +
           std::to_string(t.step(1)) + " from token to token; 16-bit attention of documents serves sequences one " +
           "behind the other: copy it first";
  // Sums on the way lie as the gradients do, in memory for a token's heads beside each other.
  if (has_documents && t.dim(1) > 1 && (t.dim(2) - 1) * t.step(2) + t.dim(3) > t.step(1))
    return std::string(name) + " has stride " + std::to_string(t.step(1)) +
           " from token to token; 16-bit attention of " +
           "documents serves tokens whose heads lie beside each other: copy it first";
  if (t.dim(3) > 1 && t.step(3) != 1)
    return std::string(name) + " has stride " + std::to_string(t.step(3)) +
           " over the head dimension; expected 1: copy it first";
  if (reinterpret_cast<std::uintptr_t>(t.data) % 16 != 0)
    return std::string(name) + " lies at an address that is no multiple of 16; expected one that is: copy it first";
  const std::int64_t elements = 16 / static_cast<std::int64_t>(size_of(t.dtype));
  for (int d = 0; d < 3; ++d)
    if (t.dim(d) > 1 && t.step(d) % elements != 0)
      return std::string(name) + " has stride " + std::to_string(t.step(d)) + " in dimension " + std::to_string(d) +
             "; 16-bit attention serves multiples of " + std::to_string(elements) + " elements: copy it first";
  return "";
}

}  // namespace assay::cuda
