// Rows of the parameter tables that workloads around the decoder share, and what a case's values make of them. A
// workload's table is join(model_params, its own rows, ...).
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_trainer.hpp>
#include <assay/train/optimizer_params.hpp>

namespace assay::models {

struct DecoderSize {
  const char* name;
  std::int64_t d_model, d_ff, layers, heads;
};
inline constexpr std::array<DecoderSize, 6> decoder_sizes{{{"tiny", 128, 512, 2, 4},
                                                           {"small", 768, 3072, 12, 12},
                                                           {"medium", 1024, 4096, 24, 16},
                                                           {"large", 1280, 5120, 36, 20},
                                                           {"xl", 1600, 6400, 48, 25},
                                                           {"2.7B", 2560, 10240, 32, 32}}};
inline constexpr auto size_names = std::apply([](const auto&... size) { return names(size.name...); }, decoder_sizes);
inline constexpr auto model_params = table(
    Param::choice("size", "small", size_names)
        .help("model size; d_model, d_ff, layers and heads override its dimensions one by one"),
    Param::integer("d_model", 0)
        .at_least(0)
        .at_most(1 << 20)
        .help("width of the residual stream; absent: as size says"),
    Param::integer("d_ff", 0).at_least(0).at_most(1 << 22).help("width of the feed-forward; absent: as size says"),
    Param::integer("layers", 0).at_least(0).at_most(4096).help("number of blocks; absent: as size says"),
    Param::integer("heads", 0)
        .at_least(0)
        .at_most(4096)
        .help("attention heads, a divisor of d_model; absent: as size says"),
    Param::integer("vocab_size", 10'000).at_least(2).at_most(1 << 24).unit("tokens").help("vocabulary"),
    Param::integer("batch_size", 4)
        .at_least(1)
        .at_most(1 << 20)
        .unit("sequences")
        .help("sequences in a step, on each rank"),
    Param::integer("context_length", 512).at_least(1).at_most(1 << 20).unit("tokens").help("tokens in a sequence"));

// What each size stands for, to go with model_params.
inline constexpr auto model_presets = [] {
  std::array<Preset, 4 * decoder_sizes.size()> presets{};
  std::size_t i = 0;
  for (const DecoderSize& size : decoder_sizes) {
    presets[i++] = Preset::integer("size", size.name, "d_model", size.d_model);
    presets[i++] = Preset::integer("size", size.name, "d_ff", size.d_ff);
    presets[i++] = Preset::integer("size", size.name, "layers", size.layers);
    presets[i++] = Preset::integer("size", size.name, "heads", size.heads);
  }
  return presets;
}();

inline constexpr auto checkpointing_params =
    table(Param::boolean("activation_checkpointing", false)
              .help("keep each block's input alone, recompute the rest in backward"));

// Reads model_params and the rows `precision`, `attention` and `activation_checkpointing`; the result has a backward
// and is fused. It is not yet validated. Throws assay::Error.
DecoderConfig decoder_config(const Case& c);
// Reads all three, with the case's seed and its rank's part of the batch; the result is validated.
DecoderTrainerConfig decoder_trainer_config(const Case& c);

}  // namespace assay::models
