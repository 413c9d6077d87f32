// The parameter table of the attention workload, and what one case makes of it.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/document_params.hpp>
#include <assay/workload/execution.hpp>
#include <assay/workload/precision.hpp>

#include "problem.hpp"

namespace attention {

enum class Implementation { naive, flash };
using assay::workload::Execution;
enum class Pass { forward, backward, both };

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  Problem problem;
  assay::workload::PrecisionPolicy precision;
  Implementation implementation = Implementation::flash;
  Execution execution = Execution::graph;
  Pass pass = Pass::both;
  std::uint64_t seed = 0;
};

inline constexpr auto dtype_names = assay::names("fp32", "tf32", "bf16", "fp16");
inline constexpr auto implementations =
    assay::choices<Implementation>({{"naive", Implementation::naive}, {"flash", Implementation::flash}});
inline constexpr auto passes =
    assay::choices<Pass>({{"forward", Pass::forward}, {"backward", Pass::backward}, {"both", Pass::both}});

// Settings refuses what together makes more operations than can be counted.
using assay::Param;
inline constexpr auto params = assay::join(
    assay::table(
        Param::integer("batch_size", 8).at_least(1).at_most(4096).help("sequences"),
        Param::integer("heads", 1).at_least(1).at_most(256).help("of each sequence; 1: no head dimension"),
        Param::integer("seq", 1024)
            .at_least(1)
            .at_most(1 << 20)
            .unit("tokens")
            .help("sequence length, of queries and keys"),
        Param::integer("head_dim", 64).at_least(1).at_most(16384).help("columns of q, k and v of one head"),
        Param::integer("value_dim", 0)
            .at_least(0)
            .at_most(16384)
            .help("columns of v of one head, and of its result (latent attention: 128 of a head_dim of 192); 0: "
                  "head_dim"),
        Param::boolean("projections", false)
            .help("a layer: q, k, v and the result are products with weights [heads head_dim, heads head_dim]"),
        Param::boolean("causal", true).help("key j is visible to query i when j <= i"),
        Param::integer("window", 0)
            .at_least(0)
            .at_most(1 << 20)
            .unit("tokens")
            .help("with causal: key j is visible to query i when i - j < window, too; 0: however far"),
        Param::choice("dtype", "fp32", dtype_names)
            .help("of all tensors; tf32: fp32 tensors, the inputs of products rounded; tf32, fp16: cuda"),
        Param::choice("impl", Implementation::flash, implementations)
            .help("naive: with the matrix of all scores; flash: tiled, without it"),
        Param::choice("execution", Execution::graph, assay::workload::executions)
            .help("eager: one operation at a time; graph: naive with scale, mask and softmax in one pass, in place; a "
                  "pass is captured as one graph on CUDA"),
        Param::choice("pass", Pass::both, passes)
            .help("what a step does; backward: the forward ran once in set-up; both: one after the other")),
    assay::models::document_params);

}  // namespace attention
