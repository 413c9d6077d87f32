// Writes the scripts by which shells complete a command line, from the table of commands and their options.
#pragma once
#include <string>
#include <vector>

namespace assay::host::cli {

struct CompletedOption {
  std::string name;  // without dashes: "filter"
  std::string help;  // its first line
  bool takes_value = false;
};
struct CompletedCommand {
  std::string name, summary;
  std::vector<CompletedOption> options;
};

// A help text up to the end of its first sentence, in one line: a shell shows it beside the option.
std::string short_help(const std::string& help);

std::string bash_completion(const std::vector<CompletedCommand>& commands);
std::string zsh_completion(const std::vector<CompletedCommand>& commands);
std::string fish_completion(const std::vector<CompletedCommand>& commands);

}  // namespace assay::host::cli
