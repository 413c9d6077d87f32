#include "experiment/document.hpp"

#include "common/suggest.hpp"
#include "experiment/range.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <sstream>
#include <tuple>

namespace assay::host::experiment {
namespace {

Place place_of(const toml::source_region& region, const std::string& file) {
  return {file, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

Node convert(const toml::node& from, const std::string& file) {
  Node node;
  node.place = place_of(from.source(), file);
  if (const auto* table = from.as_table()) {
    node.kind = Node::Kind::table;
    for (auto&& [key, value] : *table)
      node.members.push_back({std::string(key.str()), place_of(key.source(), file), convert(value, file)});
    // toml++ sorts its tables by name; the order of a sweep's axes is that of the file.
    std::stable_sort(node.members.begin(), node.members.end(), [](const TableMember& a, const TableMember& b) {
      return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
    });
  } else if (const auto* array = from.as_array()) {
    node.kind = Node::Kind::array;
    for (auto&& element : *array) node.elements.push_back(convert(element, file));
  } else {
    node.kind = Node::Kind::scalar;
    if (const auto* flag = from.as_boolean())
      node.value = flag->get();
    else if (const auto* integer = from.as_integer())
      node.value = integer->get();
    else if (const auto* real = from.as_floating_point())
      node.value = real->get();
    else if (const auto* text = from.as_string())
      node.value = text->get();
    else {
      node.kind = Node::Kind::other;
      std::ostringstream written;
      if (const auto* date = from.as_date()) written << date->get();
      if (const auto* time = from.as_time()) written << time->get();
      if (const auto* date_time = from.as_date_time()) written << date_time->get();
      node.value = written.str();
    }
  }
  return node;
}

void set_places(Node& node, const Place& place) {
  node.place = place;
  for (auto& element : node.elements) set_places(element, place);
  for (auto& member : node.members) {
    member.place = place;
    set_places(member.node, place);
  }
}

using Kept = std::function<bool(const TableMember&)>;

void flatten_into(std::vector<TableMember>& out, const std::string& prefix, TableMember&& member, const Kept& kept) {
  member.key = prefix + member.key;
  if (!member.node.is_table() || member.node.members.empty() || kept(member)) {
    out.push_back(std::move(member));
    return;
  }
  const std::string inner = member.key + ".";
  for (auto& child : member.node.members) flatten_into(out, inner, std::move(child), kept);
}

// Makes every dotted path through nested tables one member of `table`, except below a member that is `kept`.
void flatten(Node& table, const Kept& kept) {
  std::vector<TableMember> flat;
  for (auto& member : table.members) flatten_into(flat, "", std::move(member), kept);
  table.members = std::move(flat);
}

void flatten_sections(Node& root) {
  const Kept none = [](const TableMember&) { return false; };
  const Kept ranges = [](const TableMember& member) { return is_range(member.node); };
  if (TableMember* workload = root.find("workload"))
    if (TableMember* params = workload->node.find("params")) flatten(params->node, none);
  TableMember* sweep = root.find("sweep");
  if (!sweep) return;
  flatten(sweep->node,
          [&](const TableMember& member) { return member.key == "zip" || member.key == "exclude" || ranges(member); });
  if (TableMember* groups = sweep->node.find("zip"))
    for (auto& group : groups->node.elements) flatten(group, ranges);
  if (TableMember* groups = sweep->node.find("exclude"))
    for (auto& group : groups->node.elements) flatten(group, none);
}

}  // namespace

const TableMember* Node::find(std::string_view key) const {
  const auto it = std::find_if(members.begin(), members.end(), [&](const TableMember& m) { return m.key == key; });
  return it == members.end() ? nullptr : &*it;
}

TableMember* Node::find(std::string_view key) {
  const auto it = std::find_if(members.begin(), members.end(), [&](const TableMember& m) { return m.key == key; });
  return it == members.end() ? nullptr : &*it;
}

std::string shown(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("\"{}\"", *text);
  std::string text = to_text(value);
  const auto* real = std::get_if<double>(&value);
  if (real && std::isfinite(*real) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Node::shown() const {
  switch (kind) {
    case Kind::scalar: return experiment::shown(value);
    case Kind::array: return "an array";
    case Kind::table: return "a table";
    case Kind::other: return std::get<std::string>(value) + " (a date or time)";
  }
  return "";
}

namespace {

// The line `name = quick start # mine` with quotes around its text; "" where the value does not lack them.
std::string with_quotes(std::string_view line) {
  const auto trimmed = [](std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
    return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
  };
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return "";
  const std::string_view key = trimmed(line.substr(0, equals));
  const std::string_view value = trimmed(line.substr(equals + 1, line.find('#', equals) - equals - 1));
  const bool is_word = !value.empty() && (std::isalpha(static_cast<unsigned char>(value.front())) != 0 ||
                                          std::string_view("./~_").find(value.front()) != std::string_view::npos);
  if (!is_word || value.find_first_of("\"'[]{}\\") != std::string_view::npos) return "";
  return fmt::format("{} = \"{}\"", key, value);
}

// The text from the beginning of a line on, counted from 1.
std::string_view from_line(std::string_view text, toml::source_index line) {
  std::size_t begin = 0;
  for (; line > 1; --line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return "";
    begin = end + 1;
  }
  return text.substr(begin);
}

// What a value is written as: "1e-400". Columns count characters.
std::string_view literal_at(std::string_view text, const toml::source_region& region) {
  if (region.begin.line != region.end.line) return "";
  const std::string_view line = from_line(text, region.begin.line);
  const auto place_of_column = [line](toml::source_index column) {
    std::size_t at = 0;
    for (toml::source_index i = 1; i < column && at < line.size(); ++i)
      for (++at; at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U;) ++at;
    return at;
  };
  const std::size_t begin = place_of_column(region.begin.column), end = place_of_column(region.end.column);
  return begin < end ? line.substr(begin, end - begin) : "";
}

// What a double that is 0 or infinite has lost of the number that is written; "" where nothing.
std::string lost_in_double(double value, std::string_view literal) {
  const std::string_view mantissa = literal.substr(0, literal.find_first_of("eE"));
  if (value == 0 && mantissa.find_first_of("123456789") != std::string_view::npos)
    return fmt::format("{} is nearer to 0 than any number of 64 bits; expected 0, or 2.3e-308 or more", literal);
  if (std::isinf(value) && literal.find("inf") == std::string_view::npos)
    return fmt::format("{} is larger than any number of 64 bits; expected at most 1.7e308", literal);
  return "";
}

void check_numbers(const toml::node& node, std::string_view text, const std::string& file, Mistakes& mistakes) {
  if (const auto* table = node.as_table()) {
    for (auto&& [key, value] : *table) check_numbers(value, text, file, mistakes);
  } else if (const auto* array = node.as_array()) {
    for (auto&& element : *array) check_numbers(element, text, file, mistakes);
  } else if (const auto* real = node.as_floating_point()) {
    if (const std::string lost = lost_in_double(real->get(), literal_at(text, node.source())); !lost.empty())
      mistakes.add(place_of(node.source(), file), lost);
  }
}

// The mistake of a number beyond what TOML's parser has room for; nothing where that is not what it says.
std::optional<Mistake> number_beyond(std::string_view text, const std::string& file, const toml::parse_error& error) {
  const std::string said(error.description());
  const std::size_t begin = said.find('\''), end = said.find('\'', begin == std::string::npos ? begin : begin + 1);
  if (end == std::string::npos) return std::nullopt;
  // Of a real that is too large the parser says only that it could not be interpreted.
  const bool is_beyond =
      said.find("not representable", end) != std::string::npos ||
      (said.find("floating-point") < begin && said.find("could not be interpreted", end) != said.npos);
  if (!is_beyond) return std::nullopt;
  const std::string number = said.substr(begin + 1, end - begin - 1);
  const auto line = error.source().begin.line;
  const std::string_view rest = from_line(text, line);
  const std::size_t at = rest.substr(0, rest.find('\n')).find(number);
  const int column = static_cast<int>(at == std::string_view::npos ? error.source().begin.column : at + 1);
  const bool is_integer = said.find("integer") != std::string::npos;
  return Mistake{file, static_cast<int>(line), column,
                 is_integer ? fmt::format("{} is beyond the integers of 64 bits; expected at most 9223372036854775807 "
                                          "on either side of 0",
                                          number)
                            : fmt::format("{} is beyond the numbers of 64 bits; expected 0, or a size from 2.3e-308 to "
                                          "1.7e308",
                                          number)};
}

std::string why_not_toml(std::string_view text, const toml::parse_error& error) {
  const std::string said(error.description());
  if (said.find("cannot redefine existing") != std::string::npos) {
    const std::size_t name = said.find('\''), end = said.rfind('\'');
    if (name < end) return fmt::format("{} stands twice; expected each key once", said.substr(name, end + 1 - name));
  }
  const std::string_view rest = from_line(text, error.source().begin.line);
  const std::string_view key = rest.substr(0, std::min(rest.find('='), rest.find('\n')));
  const std::string foreign = foreign_letter(key);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  if (const std::string quoted = with_quotes(line); foreign.empty() && !quoted.empty())
    return fmt::format("not TOML: {}; expected TOML 1.0, where a text stands in quotes; did you mean {}?", said,
                       quoted);
  return fmt::format("not TOML: {}; expected TOML 1.0{}", said,
                     foreign.empty() ? "" : ", whose keys have ASCII letters where they have no quotes: " + foreign);
}

}  // namespace

std::optional<Node> parse_document(std::string_view text, const std::string& file, Mistakes& mistakes) {
  try {
    const toml::table table = toml::parse(text, std::string_view(file));
    check_numbers(table, text, file, mistakes);
    Node root = convert(table, file);
    flatten_sections(root);
    return root;
  } catch (const toml::parse_error& error) {
    if (const auto beyond = number_beyond(text, file, error))
      mistakes.add({beyond->file, beyond->line, beyond->column}, beyond->text);
    else
      mistakes.add(place_of(error.source(), file), why_not_toml(text, error));
    return std::nullopt;
  }
}

std::optional<Node> parse_argument(std::string_view text, const Place& place, Mistakes& mistakes) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.place = place;
  node.value = std::string(text);
  std::string problem = "more than one value";
  try {
    const std::string assigned = fmt::format("value = {}", text);
    const toml::table table = toml::parse(assigned, std::string_view(place.source));
    if (table.size() == 1) {
      if (const auto* real = table.get("value")->as_floating_point())
        if (const std::string lost = lost_in_double(real->get(), text); !lost.empty()) {
          mistakes.add(place, lost);
          return std::nullopt;
        }
      Node parsed = convert(*table.get("value"), place.source);
      if (parsed.kind == Node::Kind::other) return node;
      set_places(parsed, place);
      if (parsed.kind == Node::Kind::scalar && !std::holds_alternative<std::string>(parsed.value))
        parsed.as_text = Value(std::string(text));
      return parsed;
    }
  } catch (const toml::parse_error& error) {
    if (const auto beyond = number_beyond(text, place.source, error)) {
      mistakes.add(place, beyond->text);
      return std::nullopt;
    }
    problem = error.description();
  }
  const bool meant_as_toml = !text.empty() && std::string_view("[{\"'").find(text.front()) != std::string_view::npos;
  if (!meant_as_toml && text.find('\n') == std::string_view::npos) return node;
  mistakes.add(place, fmt::format("the value is not TOML: {}; expected a TOML value or a bare word", problem));
  return std::nullopt;
}

}  // namespace assay::host::experiment
