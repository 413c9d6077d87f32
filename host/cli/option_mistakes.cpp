#include "cli/option_mistakes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/usage_error.hpp"

namespace assay::host::cli {

namespace po = boost::program_options;

namespace {

// "output" of "--output".
std::string without_dashes(const std::string& option) {
  return option.substr(std::min(option.find_first_not_of('-'), option.size()));
}

// The last value that the option has been given.
std::string value_of(const std::string& name, const po::parsed_options* parsed) {
  std::string value;
  if (parsed)
    for (const po::option& option : parsed->options)
      if (option.string_key == name && !option.value.empty()) value = option.value.back();
  return value;
}

std::string text_of_syntax(const po::invalid_syntax& error) {
  const std::string option = error.get_option_name();
  switch (error.kind()) {
    case po::invalid_syntax::missing_parameter: return fmt::format("{} needs a value, and none follows", option);
    case po::invalid_syntax::empty_adjacent_parameter:
      return fmt::format("{0} needs a value, and none stands behind '='; expected {0}=VALUE or {0} VALUE", option);
    case po::invalid_syntax::extra_parameter:
      return fmt::format("{0} takes no value; expected {0} alone, without '='", option);
    default: return error.what();
  }
}

}  // namespace

void check_values_are_no_options(const Arguments& arguments, const po::options_description& known) {
  const auto is_option = [&known](const std::string& word) {
    return word.starts_with("--") || (word.size() == 2 && word[0] == '-' && known.find_nothrow(word, /*approx=*/false));
  };
  for (std::size_t i = 0; i + 1 < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& given = arguments[i];
    const std::string& next = arguments[i + 1];
    if (given.size() < 2 || given[0] != '-' || !is_option(next)) continue;
    const bool is_long = given.starts_with("--");
    const po::option_description* option = known.find_nothrow(is_long ? given.substr(2) : given, /*approx=*/false);
    if (!option || option->semantic()->min_tokens() == 0) continue;
    throw UsageError(fmt::format("{0} needs a value, and {1} stands in its place; give one, or {0}={1} if that is it",
                                 is_long ? given : "--" + option->long_name(), next));
  }
}

void check_dashes(const Arguments& arguments, const po::options_description& known) {
  bool is_value = false;  // of the option before it
  for (const std::string& given : arguments) {
    if (given == "--") return;
    const std::string name = given.substr(0, given.find('='));
    const bool has_one_dash = name.size() > 2 && name[0] == '-' && name[1] != '-';
    if (!is_value && has_one_dash && known.find_nothrow(name.substr(1), /*approx=*/false))
      throw UsageError(fmt::format("unknown option '{0}'; did you mean '-{0}'?", name));
    const po::option_description* const option = given.starts_with("--")
                                                     ? known.find_nothrow(given.substr(2), /*approx=*/false)
                                                 : given.size() == 2 ? known.find_nothrow(given, /*approx=*/false)
                                                                     : nullptr;
    is_value = option && option->semantic()->min_tokens() > 0;
  }
}

void check_number_of_words(const po::parsed_options& parsed, int most, const std::string& usage) {
  if (most < 0) return;
  int count = 0;
  for (const po::option& option : parsed.options) {
    if (option.position_key < 0) continue;
    for (const std::string& word : option.value)
      if (++count > most) throw UsageError(fmt::format("'{}' is one argument too many; expected: {}", word, usage));
  }
}

std::string text_of_mistake(const po::error& error, const po::parsed_options* parsed,
                            const std::map<std::string, std::string>& expected) {
  if (const auto* syntax = dynamic_cast<const po::invalid_syntax*>(&error)) return text_of_syntax(*syntax);
  const auto* named = dynamic_cast<const po::error_with_option_name*>(&error);
  if (!named) return error.what();
  const std::string option = named->get_option_name();
  if (dynamic_cast<const po::multiple_occurrences*>(named))
    return fmt::format("{} is given more than once; expected one value", option);
  const std::string name = without_dashes(option);
  if (const auto found = expected.find(name); found != expected.end())
    return fmt::format("{} is '{}'; expected {}", option, value_of(name, parsed), found->second);
  return error.what();
}

}  // namespace assay::host::cli
