// The rows of a parameter table by which a model's attention is chosen.
#pragma once
#include <assay/plugin.hpp>

namespace assay::models {

enum class AttentionPath { naive, flash };
inline constexpr auto attention_paths =
    choices<AttentionPath>({{"naive", AttentionPath::naive}, {"flash", AttentionPath::flash}});

inline constexpr auto attention_params = table(Param::choice("attention", AttentionPath::flash, attention_paths)
                                                   .help("flash: tiled; naive: makes the score matrix"));

}  // namespace assay::models
