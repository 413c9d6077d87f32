#include "profile/kernel_class.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <initializer_list>

namespace assay::host::profile {
namespace {

struct Rule {
  const char* kind;
  std::initializer_list<const char*> parts;  // in lower case; one of them is in the name
};

// The first rule that fits counts: a kernel of fused attention may have a softmax and a matrix product in its name, and
// the loss a softmax.
constexpr Rule rules[] = {
    {"communication", {"nccl"}},
    {"loss", {"cross_entropy", "crossentropy"}},
    {"optimizer", {"adamw", "adam_", "sgd", "muon", "optimizer"}},
    // The last two are parts of the backward pass: its row sums, and the gradient of the queries to its own type.
    {class_of_attention, {"sdpa", "fmha", "flash", "attention", "attn", "dot_do_o", "convert_dq"}},
    {class_of_softmax, {"softmax"}},
    {"embedding", {"embed"}},
    {"routing", {"route_", "routing_loss", "group_rows", "gather_rows", "combine_rows"}},
    {"norms", {"norm", "ln_fwd", "ln_bwd"}},
    {class_of_products, {"gemm", "gemv", "cutlass", "xmma", "nvjet", "cublas", "splitk", "matmul"}},
    {"copies and fills", {"copy", "fill", "memset", "memcpy", "cast", "transpose", "convert"}},
};

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

}  // namespace

const char* kernel_class(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Rule& rule : rules)
    for (const char* part : rule.parts)
      if (lower.find(part) != std::string::npos) return rule.kind;
  return "element-wise";
}

std::string short_kernel_name(const std::string& name, std::size_t most_chars) {
  std::string text = name;
  int status = 0;
  if (char* readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status)) {
    text = readable;
    std::free(readable);
    erase_all(text, "(anonymous namespace)::");
    // Before the parameters go: what they name is not needed, and they end the text.
    if (text.ends_with(')')) {
      int depth = 0;
      std::size_t at = text.size();
      while (at > 0) {
        const char c = text[--at];
        if (c == ')') ++depth;
        if (c == '(' && --depth == 0) break;
      }
      if (at > 0) text.resize(at);
    }
    if (text.starts_with("void ")) text.erase(0, 5);
    for (const char* space : {"assay::cuda::", "assay::compute::", "kernels::"}) erase_all(text, space);
  }
  if (text.size() > most_chars) text = text.substr(0, most_chars - 3) + "...";
  return text;
}

}  // namespace assay::host::profile
