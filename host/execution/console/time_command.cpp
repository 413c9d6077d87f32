#include "console/time_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "common/usage_error.hpp"
#include "experiment/resolved.hpp"
#include "profile/program.hpp"

namespace assay::host::console {
namespace {

namespace fs = std::filesystem;

// "n" of "sweep.n=[1,2]", "workload.params.n=1" and "n=1"; none of a setting ("measure.timeout=5s").
std::set<std::string> names_given(const std::vector<std::string>& set) {
  std::set<std::string> names;
  for (const std::string& assignment : set) {
    std::string key = assignment.substr(0, assignment.find('='));
    for (const std::string_view prefix : {"sweep.", "workload.params."})
      if (key.starts_with(prefix)) key.erase(0, prefix.size());
    if (key.find('.') == std::string::npos) names.insert(key);
  }
  return names;
}

// With the braces of names that are none of a parameter doubled, which the workload takes for themselves.
std::string with_literal_braces(const std::string& word, const std::set<std::string>& params) {
  std::string text;
  for (std::size_t i = 0; i < word.size();) {
    const std::size_t end = word[i] == '{' ? word.find('}', i) : std::string::npos;
    const std::string name = end == std::string::npos ? "" : word.substr(i + 1, end - i - 1);
    const bool is_name = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                         std::all_of(name.begin(), name.end(),
                                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
    if (!is_name) {
      text += word[i++];
      continue;
    }
    text += params.contains(name) ? fmt::format("{{{}}}", name) : fmt::format("{{{{{}}}}}", name);
    i = end + 1;
  }
  return text;
}

// A line of one word is a line for the command workload, which splits it.
bool is_line(const std::vector<std::string>& words) {
  std::error_code error;
  return words.size() == 1 && words.front().find(' ') != std::string::npos && !fs::exists(words.front(), error);
}

// Why it certainly cannot be started, and the remedy; "" where it can, or where a name with parameters or quotes is
// known when a case is.
std::string why_no_program(const std::string& program, const std::set<std::string>& params) {
  if (program.find_first_of("{}'\"\\") != std::string::npos) return "";
  const bool is_path = program.find('/') != std::string::npos;
  if (is_path && program.front() != '/' && params.contains("directory")) return "";
  const char* const path = std::getenv("PATH");
  if (!is_path && (!path || profile::find_program(program, path))) return "";
  std::error_code error;
  const fs::file_status status = fs::status(program, error);
  if (is_path && fs::is_directory(status)) return fmt::format("'{}' is a folder; name a program in it", program);
  if (is_path && fs::exists(status))
    return ::access(program.c_str(), X_OK) == 0
               ? ""
               : fmt::format(
                     "'{0}' may not be executed; chmod +x '{0}' makes it a program, or start it by its "
                     "interpreter, as in -- sh '{0}'",
                     program);
  return fmt::format("there is no program '{}'; name one on the PATH, or give its path{}", program,
                     !is_path && fs::is_regular_file(status) ? fmt::format(": ./{}", program) : "");
}

void check_count(const char* option, std::int64_t count, std::int64_t least) {
  constexpr std::int64_t most = 10'000'000;  // of [measure] steps and warmup
  if (count < least || count > most)
    throw UsageError(fmt::format("--{} is {}; expected a whole number from {} to {}", option, count, least, most));
}

// The name of the experiment, a folder's: "sleep" of "/usr/bin/sleep".
std::string name_of(const std::string& program) {
  std::string name;
  for (const char c : fs::path(program.substr(0, program.find(' '))).filename().string())
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || (c == '.' && !name.empty())
                ? c
                : '_';
  return name.empty() ? "command" : name.substr(0, 100);
}

}  // namespace

std::string text_of_timed(const TimeRequest& request) {
  const std::set<std::string> params = names_given(request.run.set);
  std::vector<std::string> words;
  for (const std::string& word : request.words)
    words.push_back(experiment::toml_text(with_literal_braces(word, params)));
  const std::string& first = request.words.front();
  return fmt::format(
      "schema = 1\nname = {}\n[workload]\nplugin = \"command\"\n[workload.params]\ncommand = {}\nstep_is = "
      "\"program\"\n[measure]\nwarmup = {}\nsteps = {}\n",
      experiment::toml_text(name_of(first)),
      is_line(request.words) ? words.front() : fmt::format("[{}]", fmt::join(words, ", ")), request.warmup,
      request.runs);
}

int time_program(TimeRequest request) {
  if (request.words.empty() || request.words.front().empty())
    throw UsageError("time needs a program; expected 'assay time [options] -- PROGRAM ARGUMENTS'");
  check_count("runs", request.runs, 1);
  check_count("warmup", request.warmup, 0);
  const std::string& first = request.words.front();
  const std::string program = is_line(request.words) ? first.substr(0, first.find(' ')) : first;
  if (const std::string why = program.empty() ? "" : why_no_program(program, names_given(request.run.set));
      !why.empty())
    throw UsageError(fmt::format("time: {}; expected 'assay time [options] -- PROGRAM ARGUMENTS'", why));
  request.run.text = text_of_timed(request);
  request.run.experiments = {name_of(request.words.front())};
  return run_experiments(request.run);
}

}  // namespace assay::host::console
