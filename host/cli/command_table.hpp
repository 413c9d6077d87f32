// The subcommands: one row for each, which the dispatch, the help, the answers to mistyped ones and the completion
// follow.
#pragma once
#include <span>

#include "cli/command.hpp"

namespace assay::host::cli {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};
std::span<const Command> all_commands();

}  // namespace assay::host::cli
