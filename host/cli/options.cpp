#include "cli/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {

namespace po = boost::program_options;

UnknownOption::UnknownOption(const std::string& option, const std::string& near)
    : UsageError(
          fmt::format("unknown option '{}'{}", option, near.empty() ? "" : fmt::format("; did you mean '{}'?", near))),
      option_(option),
      has_near_(!near.empty()) {}

namespace {

// Leaves a command at the place where it would parse its arguments. No exception that a command catches.
struct OptionsTold {};
bool tells_options = false;
std::optional<po::options_description> told_options;

// Checks the folders of --plugin-path, of which several may stand in one value with colons, as in ASSAY_PLUGIN_PATH.
void check_plugin_folders(const po::variables_map& values) {
  if (!values.count("plugin-path")) return;
  for (const std::string& list : values["plugin-path"].as<Arguments>())
    for (std::size_t begin = 0; begin < list.size();) {
      const std::size_t end = std::min(list.find(':', begin), list.size());
      const std::string folder = list.substr(begin, end - begin);
      std::error_code error;
      if (!folder.empty() && !std::filesystem::is_directory(folder, error))
        throw UsageError(fmt::format("--plugin-path is {}, which is no folder; expected one with plugins", folder));
      begin = end + 1;
    }
}

}  // namespace

std::optional<po::options_description> options_of(int (*command)(const Arguments&)) {
  told_options.reset();
  tells_options = true;
  try {
    command({});
  } catch (const OptionsTold&) {
  } catch (...) {
    tells_options = false;
    throw;
  }
  tells_options = false;
  return std::move(told_options);
}

ParsedOptions parse_options(const Arguments& arguments, const std::string& usage, const std::string& about,
                            po::options_description visible, const std::string& positional, int positional_count) {
  visible.add_options()("help,h", "this text");
  if (tells_options) {
    told_options.emplace(visible);
    throw OptionsTold{};
  }
  po::options_description all;
  all.add(visible);
  po::positional_options_description places;
  if (!positional.empty()) {
    all.add_options()(positional.c_str(), po::value<std::vector<std::string>>());
    places.add(positional.c_str(), positional_count);
  }
  ParsedOptions parsed;
  try {
    // No abbreviations: an option added later must not change what an old script means.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(all).positional(places).style(style).run(), parsed.values);
    po::notify(parsed.values);
  } catch (const po::unknown_option& e) {
    std::vector<std::string> known;
    for (const auto& option : visible.options()) known.push_back(option->long_name());
    const std::string whole = e.get_option_name();
    const std::string given = whole.substr(0, whole.find('='));
    const auto near = nearest(given.substr(std::min(given.find_first_not_of('-'), given.size())), known);
    throw UnknownOption(given, near ? "--" + *near : "");
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
  check_plugin_folders(parsed.values);
  if (parsed.values.count("help")) {
    // Beyond a hundred columns a line of text is hard to follow.
    const std::size_t width = std::min<std::size_t>(results::terminal_width(STDOUT_FILENO, 100), 100);
    po::options_description fitting("Options", static_cast<unsigned>(width), static_cast<unsigned>(width / 2));
    for (const auto& option : visible.options()) fitting.add(option);
    std::ostringstream text;
    text << "Usage: " << usage << "\n\n" << refilled(about, width) << "\n\n" << fitting;
    fmt::print("{}", text.str());
    parsed.help = true;
  }
  return parsed;
}

Arguments list_of(const po::variables_map& values, const char* name) {
  return values.count(name) ? values[name].as<Arguments>() : Arguments{};
}

}  // namespace assay::host::cli
