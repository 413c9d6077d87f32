#include <fmt/format.h>

#include "attention_plans.hpp"
#include "common/probe_parts.hpp"
#include "cuda_handles.hpp"
#include "probes.hpp"

namespace assay::cuda {
namespace {

// As a step has it: [B, T, H, D] without gaps.
void lay_out_packed(AttentionKey& key) {
  for (std::size_t i = 0; i < attention_operands; ++i) {
    const auto operand = static_cast<AttentionOperand>(i);
    using enum AttentionOperand;
    const bool of_keys = operand == k || operand == v || operand == dk || operand == dv;
    const bool of_values = operand == v || operand == out || operand == dout || operand == dv;
    const std::int64_t heads = of_keys ? key.key_heads : key.heads, times = of_keys ? key.keys : key.queries;
    const std::int64_t width = of_values ? key.value_depth : key.depth;
    key.strides[i] = {times * heads * width, heads * width, width};
  }
}

AttentionKey usual_key(bool backward) {
  AttentionKey key;
  key.batch = 2;
  key.heads = key.key_heads = 8;
  key.queries = key.keys = 512;
  key.depth = key.value_depth = 64;
  key.backward = backward;
  key.scale = 0.125F;
  return key;
}

struct NamedKey {
  std::string name;
  AttentionKey key;
};

std::vector<NamedKey> keys_by_depth(bool backward) {
  std::vector<NamedKey> all;
  for (const auto& [depth, values] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {8, 8},     {12, 12},  {16, 16},   {32, 32},   {40, 40},   {64, 64},   {72, 72},
           {80, 80},   {96, 96},  {128, 128}, {144, 144}, {192, 192}, {256, 256}, {264, 264},
           {512, 512}, {128, 64}, {64, 128},  {192, 128}, {128, 192}, {576, 512}}) {
    AttentionKey key = usual_key(backward);
    key.depth = depth;
    key.value_depth = values;
    all.push_back({depth == values ? fmt::format("{}", depth) : fmt::format("{}/{}", depth, values), key});
  }
  return all;
}

std::vector<NamedKey> keys_by_mask(bool backward) {
  std::vector<NamedKey> all;
  const auto add = [&](const char* name, auto&& change) {
    AttentionKey key = usual_key(backward);
    change(key);
    all.push_back({name, key});
  };
  add("causal", [](AttentionKey&) {});
  add("no mask", [](AttentionKey& key) { key.causal = false; });
  add("fewer key heads", [](AttentionKey& key) { key.key_heads = 2; });
  add("window", [](AttentionKey& key) { key.window = 128; });
  add("soft cap", [](AttentionKey& key) { key.soft_cap = 50; });
  add("sinks", [](AttentionKey& key) { key.sinks = true; });
  add("dropout", [](AttentionKey& key) { key.dropout = 0.1F; });
  add("soft cap and dropout", [](AttentionKey& key) { key.soft_cap = 50, key.dropout = 0.1F; });
  add("documents", [](AttentionKey& key) { key.documents = 8, key.longest = 256; });
  add("more keys", [](AttentionKey& key) { key.keys = 1024; });
  add("more queries", [](AttentionKey& key) { key.queries = 1024; });
  add("more queries without a mask", [](AttentionKey& key) { key.queries = 1024, key.causal = false; });
  add("448 keys without a mask", [](AttentionKey& key) { key.queries = key.keys = 448, key.causal = false; });
  add("500 of each", [](AttentionKey& key) { key.queries = key.keys = 500; });
  add("one query", [](AttentionKey& key) { key.queries = 1; });
  add("fp16", [](AttentionKey& key) { key.dtype = compute::DType::f16; });
  return all;
}

// Names of those that cuDNN takes, and of those that it refuses.
void ask_cudnn(const compute::ProbeFindings& found, const char* what, std::vector<NamedKey> named,
               const Stream& stream) {
  std::vector<AttentionKey> keys;
  for (NamedKey& each : named) {
    lay_out_packed(each.key);
    keys.push_back(each.key);
  }
  const std::vector<AttentionSupport> supports = attention_support(keys, stream.get());
  std::string taken, refused;
  for (std::size_t i = 0; i < named.size(); ++i) {
    std::string& list = supports[i].candidates > 0 ? taken : refused;
    list += (list.empty() ? "" : ", ") + named[i].name;
  }
  found.text(what, taken);
  found.text(fmt::format("{}_refused", what), refused);
}

}  // namespace

void probe_attention(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "attention");
  const Stream stream = make_stream(priority_of_steps);
  ask_cudnn(found, "forward_depths", keys_by_depth(false), stream);
  ask_cudnn(found, "backward_depths", keys_by_depth(true), stream);
  ask_cudnn(found, "forward_masks", keys_by_mask(false), stream);
  ask_cudnn(found, "backward_masks", keys_by_mask(true), stream);
}

}  // namespace assay::cuda
