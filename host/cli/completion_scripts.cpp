#include "cli/completion_scripts.hpp"

#include <fmt/format.h>

namespace assay::host::cli {
namespace {

// Within single quotes, for each of the three shells.
std::string in_quotes(const std::string& text) {
  std::string safe;
  for (const char c : text)
    if (c == '\'')
      safe += "'\\''";
    else
      safe += c;
  return "'" + safe + "'";
}

// In what zsh's _arguments reads, a colon ends a part and a bracket a help text.
std::string in_zsh_help(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string words_of(const std::vector<CompletedCommand>& commands) {
  std::string words;
  for (const CompletedCommand& command : commands) words += (words.empty() ? "" : " ") + command.name;
  return words;
}

}  // namespace

std::string short_help(const std::string& help) {
  const std::size_t end = help.find_first_of("\n;(");
  std::string text = help.substr(0, end);
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

std::string bash_completion(const std::vector<CompletedCommand>& commands) {
  std::string options, with_values;
  for (const CompletedCommand& command : commands) {
    std::string all, valued;
    for (const CompletedOption& option : command.options) {
      all += fmt::format("{}--{}", all.empty() ? "" : " ", option.name);
      if (option.takes_value) valued += fmt::format("{}{}:--{}", valued.empty() ? "" : "|", command.name, option.name);
    }
    options += fmt::format("    {}) options='{}' ;;\n", command.name, all);
    if (!valued.empty()) with_values += fmt::format("    {}) value=1 ;;\n", valued);
  }
  return fmt::format(
      "# bash completion for assay, made by `assay completion bash`\n"
      "_assay() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}\n"
      "  local options='' value=0\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '{} --version --help' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n{}  esac\n"
      "  case $command:$before in\n{}  esac\n"
      "  if ((value == 0)) && [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  else\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}}\n"
      "complete -F _assay assay\n",
      words_of(commands), options, with_values);
}

std::string zsh_completion(const std::vector<CompletedCommand>& commands) {
  std::string list, cases;
  for (const CompletedCommand& command : commands) {
    list += fmt::format("    {}\n", in_quotes(command.name + ":" + in_zsh_help(command.summary)));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const CompletedOption& option : command.options)
      cases +=
          fmt::format(" \\\n        {}", in_quotes(fmt::format("*--{}[{}]{}", option.name, in_zsh_help(option.help),
                                                               option.takes_value ? ":value:_files" : "")));
    cases += " \\\n        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(
      "#compdef assay\n"
      "# zsh completion for assay, made by `assay completion zsh`\n"
      "_assay() {{\n"
      "  local -a commands\n"
      "  commands=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n{}  esac\n"
      "}}\n"
      "if [[ ${{funcstack[1]:-}} == _assay ]]; then _assay \"$@\"; else compdef _assay assay; fi\n",
      list, cases);
}

std::string fish_completion(const std::vector<CompletedCommand>& commands) {
  std::string text =
      "# fish completion for assay, made by `assay completion fish`\n"
      "complete -c assay -n __fish_use_subcommand -f\n"
      "complete -c assay -n __fish_use_subcommand -l version -d 'version and revision'\n";
  for (const CompletedCommand& command : commands) {
    text += fmt::format("complete -c assay -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        in_quotes(command.summary));
    for (const CompletedOption& option : command.options)
      text += fmt::format("complete -c assay -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n", command.name,
                          option.name, option.takes_value ? " -r" : "", in_quotes(option.help));
  }
  return text;
}

}  // namespace assay::host::cli
