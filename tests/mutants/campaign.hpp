// Runs cases through the real executable, with the libraries of mutants in place of the device and the communicator or
// with mutated plugins in place of the workloads, several at a time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "all_mutants.hpp"
#include "e2e/support/sandbox.hpp"
#include "workloads.hpp"

namespace assay::mutants {

struct Trial {
  static constexpr std::size_t none = ~std::size_t{0};

  const TriedCase* tried;
  std::size_t mutant = none;  // that is alive, of all_mutants()

  // What came of it.
  std::string status;                  // of the record; "no record" when there is none
  std::string said;                    // by the verification, or why the case failed
  std::vector<std::uint64_t> reached;  // how often each mutant's place was
};

void run_trials(std::vector<Trial>& trials, const test::Sandbox& sandbox);

}  // namespace assay::mutants
