// What a subcommand of `assay` gets: the arguments after its name.
#pragma once
#include <string>
#include <vector>

namespace assay::host::cli {

using Arguments = std::vector<std::string>;

}  // namespace assay::host::cli
