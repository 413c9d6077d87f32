// assay completion SHELL
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "cli/command_table.hpp"
#include "cli/completion_scripts.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "common/suggest.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_completion =
    "Prints what a shell completes assay's commands, options and files with. Installations have it in\n"
    "share/bash-completion, share/zsh and share/fish; without one:\n"
    "  bash:  source <(assay completion bash)\n"
    "  zsh:   source <(assay completion zsh)\n"
    "  fish:  assay completion fish | source";

std::vector<CompletedCommand> completed_commands() {
  std::vector<CompletedCommand> all;
  for (const Command& command : all_commands()) {
    CompletedCommand completed{command.name, command.summary, {}};
    if (const auto options = options_of(command.run))
      for (const auto& option : options->options())
        completed.options.push_back(
            {option->long_name(), short_help(option->description()), option->semantic()->max_tokens() > 0});
    all.push_back(std::move(completed));
  }
  return all;
}

}  // namespace

int completion_command(const Arguments& arguments) {
  Arguments shells;
  Options options("assay completion bash | zsh | fish", about_completion);
  options.positional("shell", shells, 1);
  if (!options.read(arguments)) return exit_ok;
  const std::string shell = shells.empty() ? "" : shells.front();
  std::string (*const script)(const std::vector<CompletedCommand>&) = shell == "bash"   ? bash_completion
                                                                      : shell == "zsh"  ? zsh_completion
                                                                      : shell == "fish" ? fish_completion
                                                                                        : nullptr;
  if (!script)
    throw UsageError(shell.empty() ? "completion needs the name of a shell: bash, zsh or fish"
                                   : fmt::format("completion is of '{}'; expected bash, zsh or fish{}", shell,
                                                 did_you_mean(shell, {"bash", "zsh", "fish"})));
  fmt::print("{}", script(completed_commands()));
  return exit_ok;
}

}  // namespace assay::host::cli
