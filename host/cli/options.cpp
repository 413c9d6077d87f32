#include "cli/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <system_error>
#include <type_traits>
#include <utility>

#include "cli/option_mistakes.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {

namespace po = boost::program_options;

namespace {

// Leaves a command at the place where it would read its arguments. No exception that a command catches.
struct OptionsAsked {};
bool asks_for_options = false;
std::optional<po::options_description> asked_options;

// Checks the folders of --plugin-path. One value may hold several, with colons, as in ASSAY_PLUGIN_PATH.
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

// "metric,m" is --metric and -m.
std::string long_name(const char* name) {
  const std::string whole = name;
  return whole.substr(0, whole.find(','));
}

// What a variable of this type takes.
template <typename T>
std::string expected_of() {
  if constexpr (std::is_same_v<T, std::string>)
    return "a text";
  else if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else
    return fmt::format("a whole number, at most {}", std::numeric_limits<T>::max());
}

}  // namespace

Options::Options(std::string usage, std::string about) : usage_(std::move(usage)), about_(std::move(about)) {}

void Options::add(const char* name, bool& flag, const std::string& help) {
  visible_.add_options()(name, help.c_str());
  notice(name, flag);
}

void Options::notice(const char* name, bool& given) {
  takers_.emplace_back([name = long_name(name), &given](const Values& values) {
    given = values.count(name) > 0 && !values[name].defaulted();
  });
}

void Options::add(const char* name, std::string& value, const std::string& help) {
  visible_.add_options()(name, po::value(&value)->default_value(value), help.c_str());
}
void Options::add(const char* name, double& value, const std::string& help) {
  expected_[long_name(name)] = expected_of<double>();
  visible_.add_options()(name, po::value(&value)->default_value(value, fmt::format("{}", value)), help.c_str());
}
void Options::add(const char* name, int& value, const std::string& help) {
  expected_[long_name(name)] = expected_of<int>();
  visible_.add_options()(name, po::value(&value)->default_value(value), help.c_str());
}
void Options::add(const char* name, std::int64_t& value, const std::string& help) {
  expected_[long_name(name)] = expected_of<std::int64_t>();
  visible_.add_options()(name, po::value(&value)->default_value(value), help.c_str());
}

template <typename T>
void Options::add_plain(const char* name, std::optional<T>& value, const std::string& help) {
  expected_[long_name(name)] = expected_of<T>();
  visible_.add_options()(name, po::value<T>(), help.c_str());
  takers_.emplace_back([name = long_name(name), &value](const Values& values) {
    if (values.count(name)) value = values[name].template as<T>();
  });
}
void Options::add(const char* name, std::optional<std::string>& value, const std::string& help) {
  add_plain(name, value, help);
}
void Options::add(const char* name, std::optional<double>& value, const std::string& help) {
  add_plain(name, value, help);
}
void Options::add(const char* name, std::optional<int>& value, const std::string& help) {
  add_plain(name, value, help);
}
void Options::add(const char* name, std::optional<std::int64_t>& value, const std::string& help) {
  add_plain(name, value, help);
}

template <typename T>
void Options::add_list(const char* name, std::vector<T>& values, const std::string& help) {
  expected_[long_name(name)] = expected_of<T>();
  visible_.add_options()(name, po::value(&values)->composing(), help.c_str());
}
void Options::add(const char* name, std::vector<std::string>& values, const std::string& help) {
  add_list(name, values, help);
}
void Options::add(const char* name, std::vector<std::int64_t>& values, const std::string& help) {
  add_list(name, values, help);
}
void Options::add_words(const char* name, std::vector<std::string>& values, const std::string& help) {
  visible_.add_options()(name, po::value(&values)->multitoken(), help.c_str());
}

namespace {

// Throws UsageError where --format names another form.
bool asks_for_json(const po::variables_map& values) {
  if (!values.count("json")) return false;
  if (values.count("format") && !values["format"].defaulted())
    if (const auto* text = boost::any_cast<std::string>(&values["format"].value()); text && *text != "json")
      throw UsageError(fmt::format("--json and --format {} are two forms; expected one of them", *text));
  return true;
}

constexpr const char* help_of_json = "as --format json";

}  // namespace

void Options::add_json(std::string& format) {
  visible_.add_options()("json", help_of_json);
  takers_.emplace_back([&format](const Values& values) {
    if (asks_for_json(values)) format = "json";
  });
}
void Options::add_json(std::optional<std::string>& format) {
  visible_.add_options()("json", help_of_json);
  takers_.emplace_back([&format](const Values& values) {
    if (asks_for_json(values)) format = "json";
  });
}

void Options::positional(const char* name, std::vector<std::string>& values, int most, const char* missing) {
  positional_ = name, most_ = most;
  if (missing) missing_ = missing;
  takers_.emplace_back([this, &values](const Values& given) {
    if (given.count(positional_)) values = given[positional_].as<Arguments>();
    if (values.empty() && !missing_.empty()) throw UsageError(missing_);
  });
}

void Options::positional(const char* name, std::string& value, const char* missing) {
  positional_ = name, missing_ = missing, most_ = 1;
  takers_.emplace_back([this, &value](const Values& given) {
    if (!given.count(positional_)) throw UsageError(missing_);
    value = given[positional_].as<Arguments>().front();
  });
}

bool Options::read(const Arguments& arguments) {
  visible_.add_options()("help,h", "this text");
  if (asks_for_options) {
    asked_options.emplace(visible_);
    throw OptionsAsked{};
  }
  po::options_description all;
  all.add(visible_);
  po::positional_options_description places;
  const std::string words = positional_.empty() ? "argument" : positional_;
  all.add_options()(words.c_str(), po::value<Arguments>());
  places.add(words.c_str(), -1);
  Values values;
  std::optional<po::parsed_options> parsed;
  check_values_are_no_options(arguments, visible_);
  check_dashes(arguments, visible_);
  try {
    // No abbreviations: an option added later must not change what an old script means.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    parsed = po::command_line_parser(arguments).options(all).positional(places).style(style).run();
    // The name that words have in a command without any is none of its options.
    const auto is_named = [&](const po::option& o) { return o.string_key == words && o.position_key < 0; };
    if (positional_.empty() && std::any_of(parsed->options.begin(), parsed->options.end(), is_named))
      throw po::unknown_option("--" + words);
    po::store(*parsed, values);
    po::notify(values);
  } catch (const po::unknown_option& e) {
    std::vector<std::string> known;
    for (const auto& option : visible_.options()) known.push_back(option->long_name());
    const std::string whole = e.get_option_name();
    const std::string given = whole.substr(0, whole.find('='));
    const auto near = nearest(given.substr(std::min(given.find_first_not_of('-'), given.size())), known);
    std::string said = fmt::format("unknown option '{}'", given);
    if (near)
      said += fmt::format("; did you mean '--{}'?", *near);
    else if (hint_)
      said += "; " + hint_(given);
    throw UsageError(said);
  } catch (const po::error& e) {
    throw UsageError(text_of_mistake(e, parsed ? &*parsed : nullptr, expected_));
  }
  check_plugin_folders(values);
  if (values.count("help")) return print_help(), false;
  check_number_of_words(*parsed, most_, usage_);
  for (const auto& take : takers_) take(values);
  return true;
}

void Options::print_help() const {
  // Beyond a hundred columns a line of text is hard to follow.
  const std::size_t width = std::min<std::size_t>(results::terminal_width(STDOUT_FILENO, 100), 100);
  po::options_description fitting("Options", static_cast<unsigned>(width), static_cast<unsigned>(width / 2));
  for (const auto& option : visible_.options()) fitting.add(option);
  std::ostringstream text;
  text << "Usage: " << usage_ << "\n\n" << refilled(about_, width) << "\n\n" << fitting;
  fmt::print("{}", text.str());
}

std::optional<po::options_description> options_of(int (*command)(const Arguments&)) {
  asked_options.reset();
  asks_for_options = true;
  try {
    command({});
  } catch (const OptionsAsked&) {
  } catch (...) {
    asks_for_options = false;
    throw;
  }
  asks_for_options = false;
  return std::move(asked_options);
}

}  // namespace assay::host::cli
