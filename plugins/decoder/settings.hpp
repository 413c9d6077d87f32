// The decoder workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/plugin.hpp>

#include <assay/train/decoder.hpp>
#include <assay/train/optimizer.hpp>
#include <string>

namespace decoder {

enum class Pass { forward, forward_backward, train_step };

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::train::DecoderConfig model;
  Pass pass = Pass::forward_backward;
  assay::train::OptimizerConfig optimizer;
  std::string weights_file, inputs_file, dump_file;  // "" is none
  std::uint64_t seed = 0;
};

struct Size {
  const char* name;
  std::int64_t d_model, d_ff, layers, heads;
};
inline constexpr std::array<Size, 6> sizes{{{"tiny", 128, 512, 2, 4},
                                            {"small", 768, 3072, 12, 12},
                                            {"medium", 1024, 4096, 24, 16},
                                            {"large", 1280, 5120, 36, 20},
                                            {"xl", 1600, 6400, 48, 25},
                                            {"2.7B", 2560, 10240, 32, 32}}};
inline constexpr auto size_names = assay::names("tiny", "small", "medium", "large", "xl", "2.7B");
inline constexpr auto pass_names = assay::names("forward", "forward_backward", "train_step");
inline constexpr auto execution_names = assay::names("eager", "graph");
inline constexpr auto attention_names = assay::names("naive", "flash");

using assay::Param;
inline constexpr auto params = assay::table(
    Param::choice("size", "small", size_names)
        .help("model size; d_model, d_ff, layers and heads override its dimensions one by one"),
    Param::integer("d_model", 0).at_least(0).at_most(1 << 20).help("width of the residual stream; 0: as size says"),
    Param::integer("d_ff", 0).at_least(0).at_most(1 << 22).help("width of the feed-forward; 0: as size says"),
    Param::integer("layers", 0).at_least(0).at_most(4096).help("number of blocks; 0: as size says"),
    Param::integer("heads", 0).at_least(0).at_most(4096).help("attention heads, a divisor of d_model; 0: as size says"),
    Param::integer("vocab_size", 10'000).at_least(2).at_most(1 << 24).unit("tokens").help("vocabulary"),
    Param::integer("batch_size", 4).at_least(1).at_most(1 << 20).unit("sequences").help("sequences in a step"),
    Param::integer("context_length", 512).at_least(1).at_most(1 << 20).unit("tokens").help("tokens in a sequence"),
    Param::choice("pass", "forward_backward", pass_names).help("what a step does; train_step adds the optimizer"),
    Param::choice("precision", "fp32", assay::train::precision_names)
        .help(
            "bf16: fp32 weights and state, bf16 gradients, activations and products; bf16_pure: all bf16; tf32, fp16: "
            "cuda"),
    Param::choice("execution", "graph", execution_names)
        .help("eager: one operation at a time, unfused; graph: fused operations, captured as one graph on CUDA"),
    Param::choice("attention", "flash", attention_names).help("flash: tiled; naive: makes the score matrix"),
    Param::choice("optimizer", "adamw", assay::train::optimizer_names).help("of a train_step"),
    Param::real("lr", 1e-4).at_least(0).help("learning rate"),
    Param::boolean("activation_checkpointing", false)
        .help("keep each block's input alone, recompute the rest in backward"),
    Param::boolean("side_lane", false)
        .help("graph on cuda: gradients by weights on a second stream, beside the gradients by activations"),
    Param::input_path("weights").help("safetensors file to start from; empty: random weights from the seed"),
    Param::input_path("inputs").help(
        "safetensors file with input_ids and labels, int64 [batch, context]; empty: random"),
    Param::output_path("dump").help("safetensors file for logits, loss, gradients and weights after the last step"));

}  // namespace decoder
