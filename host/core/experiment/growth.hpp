// An experiment may grow by values of its axes between a run and its resumption.
#pragma once
#include <string>
#include <vector>

namespace assay::host::experiment {

// What else differs between two resolved experiments of one name (Experiment::resolved_toml), a line each: "key: 128 in
// the run, 256 now". Settings that change no figure (a timeout, the columns of tables) may differ, and so may the
// values of an axis; which keys are swept may not. Throws std::invalid_argument where `of_run` is no TOML.
std::vector<std::string> differences_but_growth(const std::string& of_run, const std::string& now);

}  // namespace assay::host::experiment
