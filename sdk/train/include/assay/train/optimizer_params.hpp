// The rows of a parameter table by which an optimizer is chosen, and what a case's values make of them.
#pragma once
#include <assay/plugin.hpp>
#include <assay/train/optimizer.hpp>

namespace assay::train {

// Of workloads that serve optimizers of single elements alone.
inline constexpr auto elementwise_optimizer_names = names("adamw", "sgd");
inline constexpr auto elementwise_optimizer_params =
    table(Param::choice("optimizer", "adamw", elementwise_optimizer_names)
              .help("of a training step; decoder, moe, ddp and sharded_optimizer also have muon"),
          Param::real("lr", 1e-4).at_least(0).help("learning rate"),
          Param::real("weight_decay", 0.01).at_least(0).help("of AdamW and SGD"));

inline constexpr auto optimizer_params =
    table(Param::choice("optimizer", "adamw", optimizer_names)
              .help("of a training step; muon: of matrices, and AdamW of embeddings, head, norms and biases"),
          Param::real("lr", 1e-4).at_least(0).help("learning rate; of muon that of what is no matrix"),
          Param::real("weight_decay", 0.01).at_least(0).help("of AdamW and SGD"),
          Param::real("muon_lr", 1e-3).at_least(0).help("learning rate of muon's matrices"),
          Param::real("muon_weight_decay", 0.1).at_least(0).help("of muon's matrices"),
          Param::real("muon_momentum", 0.95).at_least(0).at_most(1).help("share of the momentum that stays"),
          Param::boolean("muon_nesterov", true).help("the gradient looks ahead by the momentum"),
          Param::integer("muon_steps", 5).at_least(1).at_most(100).help("of Newton and Schulz"),
          Param::choice("muon_adjust", "original", muon_adjusts)
              .help("factor of muon_lr; original: sqrt(max(1, rows / columns)); match_rms_adamw: 0.2 sqrt(max(rows, "
                    "columns))"));

// Whether a workload serves optimizers that update whole matrices (muon). It does where the rank that updates a matrix
// has all of its gradient and of its momentum.
enum class WholeMatrixOptimizers { refused, served };

// Reads optimizer_params where such optimizers are served, or else elementwise_optimizer_params. UNSUPPORTED for an
// optimizer that the workload refuses.
OptimizerConfig optimizer_config(const Case& c, WholeMatrixOptimizers of_matrices = WholeMatrixOptimizers::refused);

}  // namespace assay::train
