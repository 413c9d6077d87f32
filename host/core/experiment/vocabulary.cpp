#include "experiment/vocabulary.hpp"

#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "experiment/model_files.hpp"
#include "experiment/output_path.hpp"
#include "experiment/overrides.hpp"
#include "experiment/sharded_input.hpp"
#include "experiment/synonyms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <system_error>

namespace assay::host::experiment {
namespace {

using Hint = std::function<std::string(const std::string& word)>;

std::string suggestion_for(const Node& node, const std::vector<std::string>& choices, const Hint& hint) {
  const auto* text = std::get_if<std::string>(&node.value);
  if (node.kind != Node::Kind::scalar || !text) return "";
  std::string in_words = hint ? hint(*text) : "";
  return in_words.empty() ? did_you_mean(*text, choices) : in_words;
}

// `axis`: the key of [sweep] that takes several such values; "": none does.
std::string wrong(const std::string& label, const Node& node, const std::string& expected,
                  const std::vector<std::string>& choices, std::string_view axis, const Hint& hint = {}) {
  const std::string of_axis = node.kind == Node::Kind::array && !axis.empty()
                                  ? fmt::format("; several values are an axis: sweep.{}=[...]", axis)
                                  : "";
  return one_line(fmt::format("{} is {}; expected {}{}{}", label, node.shown(), expected,
                              suggestion_for(node, choices, hint), of_axis));
}

bool in_range(const plugin::ParamSpec& spec, double number) {
  return std::isfinite(number) && (!spec.min || number >= *spec.min) && (!spec.max || number <= *spec.max);
}

// The value as the parameter's type has it, or nothing when it is not one of its values.
std::optional<Value> typed(const plugin::ParamSpec& spec, const Value& found) {
  switch (spec.type) {
    case plugin::ParamType::boolean:
      if (std::holds_alternative<bool>(found)) return found;
      break;
    case plugin::ParamType::integer:
      if (const auto* number = std::get_if<std::int64_t>(&found))
        if (in_range(spec, static_cast<double>(*number))) return found;
      break;
    case plugin::ParamType::real: {
      std::optional<double> number;
      if (const auto* whole = std::get_if<std::int64_t>(&found)) number = static_cast<double>(*whole);
      if (const auto* real = std::get_if<double>(&found)) number = *real;
      if (number && in_range(spec, *number)) return *number;
      break;
    }
    case plugin::ParamType::text:
      if (const auto* text = std::get_if<std::string>(&found))
        if (spec.choices.empty() || std::find(spec.choices.begin(), spec.choices.end(), *text) != spec.choices.end())
          return found;
      break;
  }
  return std::nullopt;
}

std::optional<Value> check_output(const std::string& name, const Node& node, const std::string& label,
                                  Mistakes& mistakes) {
  const auto problem = problem_of_output(name);
  if (!problem) return Value(name);
  mistakes.add(node.place, fmt::format("{} is {}, which {}; expected the name of a file below the run folder, as "
                                       "\"x.bin\" or \"dumps/x.bin\", or \"\" for none",
                                       label, node.shown(), *problem));
  return std::nullopt;
}

// The words of a command line as one text (ASSAY_PARAM_WORDS); nothing where an element is no text.
std::optional<Value> joined_words(const Node& node) {
  std::string line;
  for (const Node& element : node.elements) {
    const auto* word = std::get_if<std::string>(&element.value);
    if (element.kind != Node::Kind::scalar || !word) return std::nullopt;
    if (&element != &node.elements.front()) line += ' ';
    if (!word->empty() && word->find_first_of(" \t\r\n\v\f\"'\\") == std::string::npos) {
      line += *word;
      continue;
    }
    line += '"';
    for (const char c : *word) {
      if (c == '"' || c == '\\') line += '\\';
      line += c;
    }
    line += '"';
  }
  return line;
}

bool is_of_whole_run(const std::string& key) {
  const std::vector<Setting>& all = all_settings();
  return std::any_of(all.begin(), all.end(), [&](const Setting& setting) {
    return setting.name == key && std::holds_alternative<Storage<OutputSettings>>(setting.storage);
  });
}

// Where the section itself has the value, not its axis.
std::string axis_of(const Setting& setting, const std::string& label) {
  const bool may_be_axis = !is_of_whole_run(setting.name);
  return may_be_axis && label == fmt::format("[{}] {}", setting.section, setting.key) ? setting.name : "";
}

}  // namespace

std::string expectation(const plugin::ParamSpec& spec) {
  std::string text;
  switch (spec.type) {
    case plugin::ParamType::boolean: text = "true or false"; break;
    case plugin::ParamType::integer: text = "an integer"; break;
    case plugin::ParamType::real: text = "a number"; break;
    case plugin::ParamType::text: text = "a string"; break;
  }
  if (spec.words) text += ", or an array of strings";
  if (!spec.choices.empty()) text = fmt::format("one of {}", fmt::join(spec.choices, ", "));
  if (spec.min) text += fmt::format(" >= {}", *spec.min);
  if (spec.max) text += fmt::format("{} <= {}", spec.min ? " and" : "", *spec.max);
  if (spec.required) return text + " (required)";
  const bool empty_text = spec.default_value == Value(std::string());
  return text + fmt::format(" (default {})", empty_text ? "\"\"" : to_text(spec.default_value));
}

std::optional<Value> check_setting(const Setting& setting, const Node& node, const std::string& label,
                                   Mistakes& mistakes) {
  auto value = node.kind == Node::Kind::scalar ? setting.accept(node.value) : std::nullopt;
  if (!value && node.as_text) value = setting.accept(*node.as_text);
  const bool is_empty = node.kind == Node::Kind::scalar && node.value == Value(std::string());
  const bool of_empty = is_empty && !setting.expected_of_empty.empty();
  if (!value)
    mistakes.add(node.place, wrong(label, node, of_empty ? setting.expected_of_empty : setting.expected,
                                   setting.choices, axis_of(setting, label), setting.hint));
  return value;
}

Vocabulary::Vocabulary(const plugin::WorkloadSchema* schema, std::filesystem::path folder)
    : schema_(schema), folder_(std::move(folder)) {}

const plugin::ParamSpec* Vocabulary::param(const std::string& key) const {
  if (!schema_) return nullptr;
  const auto& params = schema_->params;
  const auto it = std::find_if(params.begin(), params.end(), [&](const plugin::ParamSpec& p) { return p.name == key; });
  return it == params.end() ? nullptr : &*it;
}

bool Vocabulary::knows(const std::string& key) const { return param(key) || find_setting(key); }

bool Vocabulary::can_judge(const std::string& key) const { return schema_ || is_layout_key(key); }

std::vector<std::string> Vocabulary::param_names() const {
  std::vector<std::string> names;
  if (schema_)
    for (const auto& spec : schema_->params) names.push_back(spec.name);
  return names;
}

std::vector<std::string> Vocabulary::names() const {
  auto names = param_names();
  const auto settings = setting_names();
  names.insert(names.end(), settings.begin(), settings.end());
  return names;
}

std::string Vocabulary::unknown_key(const std::string& key, const std::string& where) const {
  if (is_of_whole_run(key))
    return fmt::format(
        "'{}'{}{} is of the run as a whole: its cases do not differ in it; expected it as a fixed value "
        "in its section, or by --set {}=...",
        key, where.empty() ? "" : " in ", where, key);
  const bool as_setting = is_layout_key(key) || !schema_;
  const std::string expected = as_setting ? fmt::format("a setting: {}", fmt::join(setting_names(), ", "))
                                          : fmt::format("a parameter ({}) or a dotted setting as measure.warmup",
                                                        fmt::join(param_names(), ", "));
  const std::string meant = did_you_mean_key(key, names());
  return fmt::format("unknown key '{}'{}{}{}{}{}", key, where.empty() ? "" : " in ", where,
                     meant.empty() ? "; expected " + expected : "", meant, own_param_rule(meant));
}

std::string Vocabulary::own_param_rule(const std::string& meant) const {
  if (!schema_ || !schema_->is_open) return "";
  return fmt::format(
      "{} parameter of your own has a name of letters, digits, '_' and '-' that is no column of every table "
      "(docs/record.md) and not nearly a known one",
      meant.ends_with('?') ? " A" : "; a");
}

std::optional<Value> Vocabulary::check_param(const plugin::ParamSpec& spec, const Node& node, const std::string& label,
                                             Mistakes& mistakes) const {
  auto value = node.kind == Node::Kind::scalar ? typed(spec, node.value)
               : spec.words && node.is_array() ? joined_words(node)
                                               : std::nullopt;
  if (!value && node.as_text) value = typed(spec, *node.as_text);
  if (!value) {
    const auto file_of_model = [&](const std::string& word) {
      const bool has_files =
          std::find(spec.choices.begin(), spec.choices.end(), model_file_param) != spec.choices.end();
      if (!has_files || !word.ends_with(".json")) return std::string();
      return fmt::format("; did you mean {} = \"{}\", in place of {}?", model_file_param, word, spec.name);
    };
    mistakes.add(node.place, wrong(label, node, expectation(spec), spec.choices,
                                   label == "[workload.params] " + spec.name ? spec.name : "", file_of_model));
    return std::nullopt;
  }
  const auto* path = std::get_if<std::string>(&*value);
  if (!path || path->empty()) return value;
  if (spec.output_path) return check_output(*path, node, label, mistakes);
  if (!spec.input_path) return value;
  const auto absolute = (folder_ / *path).lexically_normal();
  std::error_code error;
  const auto status = std::filesystem::status(absolute, error);
  if (std::filesystem::is_regular_file(status)) {
    const std::string problem = shards_of(absolute.string()).problem;
    if (problem.empty()) return absolute.string();
    mistakes.add(node.place, fmt::format("{} is {}: {}", label, node.shown(), problem));
    return std::nullopt;
  }
  mistakes.add(
      node.place,
      fmt::format("{} is {}, but {} {}; expected an existing file, relative to the experiment file's folder, or "
                  "\"\" for none",
                  label, node.shown(), absolute.string(),
                  std::filesystem::is_directory(status) ? "is a folder"
                  : std::filesystem::exists(status)     ? "is no regular file, which could be read twice"
                                                        : "does not exist"));
  return std::nullopt;
}

std::optional<Value> Vocabulary::check(const std::string& key, const Node& node, const std::string& label,
                                       Mistakes& mistakes) const {
  if (const plugin::ParamSpec* spec = param(key)) return check_param(*spec, node, label, mistakes);
  return check_setting(*find_setting(key), node, label, mistakes);
}

void Vocabulary::set(Case& into, const std::string& key, const Value& value) const {
  if (param(key)) {
    into.params[key] = value;
    into.given_params.insert(key);
  } else {
    find_setting(key)->store(value, into);
  }
}

std::string Vocabulary::filter_text(const std::string& key, const std::string& text) const {
  if (!knows(key)) return text;
  Mistakes ignored;  // a text that is no value of the key simply matches no case, which the caller reports
  const auto node = parse_argument(text, {}, ignored);
  const auto value = node ? check(key, *node, "", ignored) : std::nullopt;
  return value ? to_text(*value) : text;
}

}  // namespace assay::host::experiment
