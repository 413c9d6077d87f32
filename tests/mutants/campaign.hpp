// Runs cases through the real executable with the libraries of mutants in place of the device and the communicator,
// several at a time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"
#include "mutants.hpp"
#include "workloads.hpp"

namespace assay::mutants {

struct Trial {
  const TriedCase* tried;
  std::size_t mutant = none;  // that is alive

  // What came of it.
  std::string status;                  // of the record; "no record" when there is none
  std::string said;                    // by the verification, or why the case failed
  std::vector<std::uint64_t> reached;  // how often each mutant's place was

  static constexpr std::size_t none = mutants.size();
};

void run_trials(std::vector<Trial>& trials, const test::Sandbox& sandbox);

}  // namespace assay::mutants
