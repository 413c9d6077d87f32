// What a case may answer to a mutant other than `wrong_result`, and why.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::mutants {

struct Exception {
  std::string mutant;
  std::string where;  // "workload", or "workload/variant"
  std::string reason;

  bool is_of(std::string_view mutant_name, const std::string& case_name) const;
};

// explained.txt: mutants that change no result. That they survive is right, and that one is found is a mistake of this
// list. Each line has the mutant, where, and why.
const std::vector<Exception>& explained();
// known_to_survive.txt: mutants that change a result and are not found. Each line has the mutant, where, and what is
// missing.
const std::vector<Exception>& known_to_survive();

}  // namespace assay::mutants
