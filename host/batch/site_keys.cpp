#include "batch/site_keys.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string_view>

#include "batch/shell_words.hpp"

namespace assay::host::batch {
namespace {

using experiment::Kind;

// A script has no other control characters than tabs.
bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) && c != '\t'; });
}

Kind<std::string> line_kind_of(std::string expected) {
  Kind<std::string> kind = experiment::any_text(std::move(expected));
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    return text && is_one_line(*text) ? std::optional(*text) : std::nullopt;
  };
  return kind;
}

}  // namespace

TextKind word_kind(std::string expected) {
  Kind<std::string> kind = experiment::any_text(std::move(expected));
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    const auto fits = [](unsigned char c) {
      return std::isalnum(c) ||
             std::string_view("._-:,=&|[]*+@/()").find(static_cast<char>(c)) != std::string_view::npos;
    };
    return text && !text->empty() && std::all_of(text->begin(), text->end(), fits) ? std::optional(*text)
                                                                                   : std::nullopt;
  };
  return kind;
}

TextKind option_kind() {
  Kind<std::string> kind = experiment::any_text("options that begin with '-', without a line end");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    return text && text->starts_with('-') && is_one_line(*text) ? std::optional(*text) : std::nullopt;
  };
  return kind;
}

TextKind shell_option_kind() {
  Kind<std::string> kind = option_kind();
  kind.expected += ", quoted where a shell would read more than words: \"--constraint='[a|b]'\"";
  kind.read = [plain = kind.read](const Value& found) {
    auto option = plain(found);
    return option && shell_words(*option) ? option : std::nullopt;
  };
  return kind;
}

TextKind line_kind() { return line_kind_of("lines of a shell script"); }

namespace {

// "/data", "/data:/inside", "/data:/inside:ro".
Kind<std::string> mount_kind() {
  Kind<std::string> kind = experiment::any_text("folders as \"/data\", \"/data:/inside\" or \"/data:/inside:ro\"");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    if (!text) return std::nullopt;
    const auto is_of_path = [](unsigned char c) {
      return std::isalnum(c) || std::string_view("/._-+=@~").find(static_cast<char>(c)) != std::string_view::npos;
    };
    std::vector<std::string_view> parts;
    for (std::string_view rest = *text;;) {
      const std::size_t colon = rest.find(':');
      parts.push_back(rest.substr(0, colon));
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
    const std::size_t paths = std::min<std::size_t>(parts.size(), 2);
    for (std::size_t i = 0; i < paths; ++i)
      if (!parts[i].starts_with('/') || !std::all_of(parts[i].begin(), parts[i].end(), is_of_path)) return std::nullopt;
    if (parts.size() > 3 || (parts.size() == 3 && parts[2] != "ro" && parts[2] != "rw")) return std::nullopt;
    return *text;
  };
  return kind;
}

// "NAME", or "NAME=value".
Kind<std::string> variable_kind() {
  Kind<std::string> kind = experiment::any_text("names of variables, or \"NAME=value\"");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    if (!text || !is_one_line(*text)) return std::nullopt;
    const std::string_view name = std::string_view(*text).substr(0, text->find('='));
    const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
    const bool is_name = !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
                         std::all_of(name.begin(), name.end(), fits);
    return is_name ? std::optional(*text) : std::nullopt;
  };
  return kind;
}

Kind<std::string> image_kind() {
  Kind<std::string> kind = line_kind_of("the name or file of an image, without blanks or quotes");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    const auto fits = [](unsigned char c) { return std::isgraph(c) && c != '\'' && c != '"' && c != '\\'; };
    return text && !text->empty() && !text->starts_with('-') && std::all_of(text->begin(), text->end(), fits)
               ? std::optional(*text)
               : std::nullopt;
  };
  return kind;
}

Kind<double> above_0() {
  return {"a number above 0",
          [](const Value& found) -> std::optional<double> {
            if (const auto* whole = std::get_if<std::int64_t>(&found); whole && *whole > 0)
              return static_cast<double>(*whole);
            const auto* number = std::get_if<double>(&found);
            return number && *number > 0 && *number < 1e12 ? std::optional(*number) : std::nullopt;
          },
          [](double number) { return Value(number); }};
}

template <class T, class Find>
SiteKey row(std::string section, std::string key, Kind<T> kind, Find find) {
  return {std::move(section), std::move(key), kind.expected, false, [kind, find](const Value& found, Site& site) {
            auto value = kind.read(found);
            if (value) find(site) = *value;
            return value.has_value();
          }};
}

template <class Find>
SiteKey list(std::string section, std::string key, Kind<std::string> kind, Find find) {
  return {std::move(section), std::move(key), "an array of " + kind.expected, true,
          [kind, find](const Value& found, Site& site) {
            auto value = kind.read(found);
            if (value) find(site).push_back(*value);
            return value.has_value();
          }};
}

TextKind text_of_file() { return line_kind_of("the file of an experiment, as configs/node-check.toml"); }

// 8, or "h100:8".
bool store_gpus(const Value& found, Site& site) {
  const auto store = [&](const Value& count) {
    const auto number = experiment::integer(0, 1024).read(count);
    if (number) site.gpus_per_node = *number;
    return number.has_value();
  };
  const auto* text = std::get_if<std::string>(&found);
  if (!text) return store(found);
  const std::size_t colon = text->find(':');
  const std::string type = text->substr(0, colon), count = colon == std::string::npos ? "" : text->substr(colon + 1);
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c); };
  if (type.empty() || !std::all_of(type.begin(), type.end(), is_of_name)) return false;
  if (count.empty() || count.size() > 4 || !std::all_of(count.begin(), count.end(), is_digit)) return false;
  site.gpu_type = type;
  return store(Value(static_cast<std::int64_t>(std::stoll(count))));
}

// The sections are those below the kind's table: "" is the table itself.
std::vector<SiteKey> all_shared_keys() {
  using namespace experiment;
  return {
      {"", "gpus_per_node", "an integer from 0 to 1024, or \"TYPE:NUMBER\" as \"h100:8\"", false, store_gpus},
      row(
          "", "time_max", duration(), [](Site & s) -> auto& { return s.time_max; }),
      list(
          "", "exclude", word_kind("names of nodes"), [](Site & s) -> auto& { return s.exclude; }),
      list(
          "", "environment", variable_kind(), [](Site & s) -> auto& { return s.environment; }),
      list(
          "", "prologue", line_kind(), [](Site & s) -> auto& { return s.prologue; }),
      row(
          "", "assay", word_kind("the path of the program assay on the nodes, without blanks"),
          [](Site & s) -> auto& { return s.assay; }),
      row(
          "limits", "array_parallel", integer(1, 100000), [](Site & s) -> auto& { return s.limits.array_parallel; }),
      row(
          "limits", "attempts", integer(1, 100), [](Site & s) -> auto& { return s.limits.attempts; }),
      row(
          "limits", "node_hours", above_0(), [](Site & s) -> auto& { return s.limits.node_hours; }),
      row(
          "limits", "case_budget", duration(), [](Site & s) -> auto& { return s.limits.case_budget; }),
      row(
          "limits", "margin", duration(), [](Site & s) -> auto& { return s.limits.margin; }),
      row(
          "health", "experiment", text_of_file(), [](Site & s) -> auto& { return s.health.experiment; }),
      row(
          "health", "tflop_per_s_min", above_0(), [](Site & s) -> auto& { return s.health.tflop_per_s_min; }),
      row(
          "health", "gbytes_per_s_min", above_0(), [](Site & s) -> auto& { return s.health.gbytes_per_s_min; }),
      row(
          "health", "timeout_s", integer(1, 86400), [](Site & s) -> auto& { return s.health.timeout_s; }),
      row(
          "container", "image", image_kind(), [](Site & s) -> auto& { return s.container.image; }),
      row(
          "container", "runtime", word_kind("the name of a runtime"),
          [](Site & s) -> auto& { return s.container.runtime; }),
      row(
          "container", "assay", word_kind("the path of the program assay in the image, without blanks"),
          [](Site & s) -> auto& { return s.container.assay; }),
      list(
          "container", "mounts", mount_kind(), [](Site & s) -> auto& { return s.container.mounts; }),
      list(
          "container", "options", shell_option_kind(), [](Site & s) -> auto& { return s.container.options; }),
      row(
          "canary", "enable", flag(), [](Site & s) -> auto& { return s.canary; }),
  };
}

}  // namespace

std::vector<SiteKey> shared_keys(const std::string& kind, std::initializer_list<const char*> names) {
  const std::vector<SiteKey> all = all_shared_keys();
  std::vector<SiteKey> rows;
  for (const std::string name : names) {
    const std::size_t before = rows.size();
    for (const SiteKey& row : all) {
      if (name != row.section && name != (row.section.empty() ? "" : row.section + ".") + row.key) continue;
      rows.push_back(row);
      rows.back().section = kind + (row.section.empty() ? "" : "." + row.section);
    }
    if (rows.size() == before) throw std::logic_error("no key of sites is named " + name);
  }
  return rows;
}

}  // namespace assay::host::batch
