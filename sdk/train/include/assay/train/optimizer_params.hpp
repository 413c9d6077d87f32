// The rows of a parameter table by which an optimizer is chosen, and what a case's values make of them.
#pragma once
#include <assay/plugin.hpp>
#include <assay/train/optimizer.hpp>

namespace assay::train {

inline constexpr auto optimizer_params =
    table(Param::choice("optimizer", "adamw", optimizer_names).help("of a training step"),
          Param::real("lr", 1e-4).at_least(0).help("learning rate"));

// Reads optimizer_params.
OptimizerConfig optimizer_config(const Case& c);

}  // namespace assay::train
