// Names that people know from other tools, and the name that the same thing has here.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::experiment {

// The name among `known` that `word` has here: "nhead" is "heads" or "num_heads", whichever is known, "--d-model" is
// "d_model", "epochs" is "measure.steps" and, where the keys of a section are known, "steps". Nothing when no name of
// the table is meant.
std::optional<std::string> synonym(std::string_view word, const std::vector<std::string>& known);

// The key that was meant: a synonym, or else the nearest name.
std::optional<std::string> meant_key(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 'x'?", or nothing.
std::string did_you_mean_key(std::string_view word, const std::vector<std::string>& known);

}  // namespace assay::host::experiment
