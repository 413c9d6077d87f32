// What `assay run` says of an option that it does not have: the parameters of a workload are no options here.
#pragma once
#include <string>
#include <vector>

namespace assay::host::console {

// For `option` ("--nhead") among the arguments of `assay run`: "parameters and settings are set with --set: --set
// heads=16". The name is the one that the experiment's workload has for it, or the option's own if the arguments name
// no experiment with a known workload.
std::string set_instead(const std::vector<std::string>& arguments, const std::string& option);

}  // namespace assay::host::console
