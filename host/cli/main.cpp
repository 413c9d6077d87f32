// The executable: finds the subcommand, and turns what it throws into a message and an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "batch/hosts_runner.hpp"
#include "cli/command.hpp"
#include "cli/command_table.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/sha256.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "common/utf8.hpp"
#include "hosts/rank_keeper.hpp"
#include "results/terminal.hpp"
#include "telemetry/environment.hpp"
#include "worker/worker_process.hpp"

namespace {

using namespace assay::host::cli;
using namespace assay::host;

// "  run             run an experiment file ...", what is longer below the beginning of its text.
void print_entry(const std::string& name, const std::string& text, std::size_t width) {
  fmt::print("{}", hanging("  " + name + " ", text, 18, width));
}

void print_help() {
  const std::size_t width = std::min<std::size_t>(results::terminal_width(STDOUT_FILENO, 100), 100);
  fmt::print(
      "assay {}: a plugin-based benchmark host for training workloads\n\n"
      "Usage: assay COMMAND [arguments]\n\nCommands:\n",
      telemetry::assay_version());
  for (const Command& command : all_commands()) print_entry(command.name, command.summary, width);
  fmt::print("\n");
  print_entry("--version", "version, source revision, compiler, and the ABIs of plugins and devices", width);
  print_entry("--help", "this text; 'assay COMMAND --help' for one command", width);
  fmt::print("\n{}\n", refilled("Exit codes: 0 every case is ok or allowed, 1 a case failed, 2 wrong command line or "
                                "experiment, 130 interrupted (finished cases are kept).",
                                width));
}

// Guesses what the first word was meant to be: a command, one that is cut short, or an experiment that is to be run.
std::string unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) names.emplace_back(command.name);
  if (name.ends_with(".toml")) return fmt::format("'{0}' is no command; did you mean 'assay run {0}'?", name);
  std::vector<std::string> known = names;
  known.insert(known.end(), {"--version", "--help"});
  std::optional<std::string> meant;
  const auto begins = [&](const std::string& each) { return name.size() > 1 && each.starts_with(name); };
  if (std::count_if(names.begin(), names.end(), begins) == 1) meant = *std::find_if(names.begin(), names.end(), begins);
  if (!meant) meant = nearest(name, known);
  if (meant) return fmt::format("unknown command '{}'; did you mean '{}'?", name, *meant);
  return fmt::format("unknown command '{}'; expected {}", name, fmt::join(names, ", "));
}

// A file that is opened while one of the three is closed would get its number, and take what is printed: started so by
// a daemon, assay reads and writes nothing there.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd) std::_Exit(exit_failed);
}

// With each byte that is no ASCII letter as \xE9.
std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text)
    shown += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  return shown;
}

// Records and tables hold names as UTF-8 text, and the host finds files by what is recorded.
void check_names(const Arguments& arguments) {
  for (const std::string& argument : arguments)
    if (!is_utf8(argument))
      throw UsageError(fmt::format("'{}' is not UTF-8, and a record cannot hold it; name the file or folder in UTF-8",
                                   printable(argument)));
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (!error && !is_utf8(folder))
    throw UsageError(
        fmt::format("the working folder '{}' is not UTF-8, and a record cannot hold it; rename it, or call "
                    "assay from another one",
                    printable(folder)));
}

void print_error(const std::string& text) {
  fmt::print(stderr, "{}", results::lines_on_terminal("assay: " + text, STDERR_FILENO));
}

int dispatch(const std::string& name, const Arguments& arguments) {
  if (name == "--help" || name == "-h" || (name == "help" && arguments.empty())) return print_help(), exit_ok;
  if (name == "help") return dispatch(arguments.front(), {"--help"});  // "assay help run"
  if (name == "--version") {
    fmt::print("assay {} (revision {}, {})\nplugin ABI {}, device ABI {}\n", telemetry::assay_version(),
               telemetry::assay_revision(), telemetry::assay_compiler(), telemetry::assay_abi(),
               telemetry::assay_device_abi());
    return exit_ok;
  }
  if (name == "host-keeper") return hosts::keep_ranks();  // started by `assay run --hosts` over ssh
  if (name == "batch-runner" && arguments.size() == 3)    // by `assay submit`, on a host of a site of ssh
    return batch::run_shards_of_host(arguments[0], arguments[1], arguments[2]);
  if (name == "worker") return worker::worker_main();  // started by the host itself, never by a user
  for (const Command& command : all_commands())
    if (name == command.name) return command.run(arguments);
  throw UsageError(unknown_command(name));
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  const Arguments all(argv + 1, argv + argc);
  if (all.empty()) {
    print_help();
    return exit_usage;
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of the write, with a message
  try {
    check_names(all);
    const int code = dispatch(all.front(), Arguments(all.begin() + 1, all.end()));
    if (std::fflush(stdout) == 0) return code;
    throw std::system_error(errno, std::generic_category(), "the standard output cannot be written");
  } catch (const UsageError& e) {
    const auto commands = all_commands();
    const bool is_command =
        std::any_of(commands.begin(), commands.end(), [&](const Command& each) { return each.name == all.front(); });
    const std::string said = e.what();
    print_error(fmt::format("{}{} 'assay {}--help'", said, said.ends_with('?') ? " See also" : "; see",
                            is_command ? all.front() + " " : ""));
    return exit_usage;
  } catch (const ReadingStopped& e) {
    print_error(e.what());
    return exit_interrupted;
  } catch (const std::system_error& e) {
    // Whoever read the output has gone, as `head` does. Nobody needs a message, unless cases are left out.
    if (e.code() != std::errc::broken_pipe)
      print_error(e.what());
    else if (all.front() == "run" || all.front() == "time")
      print_error(
          "whoever read the output has closed it, and the run stops; finished cases are kept, and --resume runs the "
          "rest");
    return exit_failed;
  } catch (const std::exception& e) {
    print_error(e.what());
    return exit_failed;
  }
}
