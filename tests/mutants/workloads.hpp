// The cases in which mutants are tried: every workload, small, in the ways that reach its operations and collectives.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "all_mutants.hpp"

namespace assay::mutants {

struct TriedCase {
  std::string workload;
  std::string variant;  // of it, as the table names it
  std::string params;   // TOML of [workload.params]
  int ranks = 1;
  bool starts_cold = false;  // what a workload measures of the device before it starts is left out
  std::string device =
      "cpu";  // or "cuda"; "fp16" is the CPU, which passes for one of kind "cuda"; "bf16" the CPU, which has it
  std::string inputs = "";  // the file `inputs.safetensors` beside the experiment, if there is to be one

  // The operations whose mutants are tried; none: all. A case that shares its operations with another of its workload
  // needs them once.
  std::vector<std::string> only = {};
  // Of those the ones that are not tried, since they change nothing that the workload looks at.
  std::vector<std::string> except = {};

  bool of_sources = false;  // it runs the mutated plugins, and tries the mutants of sources that name it

  bool tries(const AnyMutant& mutant) const;
  std::string name() const { return workload + "/" + variant; }
  // The text of the experiment.
  std::string experiment() const;
};

// Those of operations and collectives, and behind them, on the CPU, those of sources.
// On a GPU one operation at a time: a mutant looks at memory, which no graph may do while it is captured.
const std::vector<TriedCase>& tried_cases(const std::string& device);

}  // namespace assay::mutants
