// How a workload carries out its operations: one at a time, or fused and, on CUDA, captured as one graph.
#pragma once
#include <assay/plugin/case.hpp>
#include <assay/plugin/choices.hpp>

namespace assay::workload {

enum class Execution { eager, graph };
inline constexpr auto executions = choices<Execution>({{"eager", Execution::eager}, {"graph", Execution::graph}});

// Reads the parameter `execution`.
inline bool is_graph(const Case& c) { return c.choice("execution", executions) == Execution::graph; }

}  // namespace assay::workload
