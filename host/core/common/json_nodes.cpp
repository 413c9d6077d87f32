#include "common/json_nodes.hpp"

#include "common/foreign_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace assay::host {
namespace {

// As the text says it; what is below the least number is 0, what is above the largest is infinite.
double number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : std::strtod(std::string(text).c_str(), nullptr);
}

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// The bytes of the UTF-8 character that begins there; 0 where it is none (Unicode, table 3-7).
std::size_t utf8_length(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xbf; };
  const unsigned first = byte(0), second = byte(1);
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned least = first == 0xe0 ? 0xa0 : 0x80, most = first == 0xed ? 0x9f : 0xbf;
    return second >= least && second <= most && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned least = first == 0xf0 ? 0x90 : 0x80, most = first == 0xf4 ? 0x8f : 0xbf;
    return second >= least && second <= most && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void add_utf8(std::string& text, unsigned code) {
  const auto add = [&text](unsigned byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | (code >> 6)), add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | (code >> 12)), add(0x80 | ((code >> 6) & 0x3f)), add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | (code >> 18)), add(0x80 | ((code >> 12) & 0x3f)), add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

}  // namespace

class JsonNodesParser {
 public:
  using Node = JsonNodes::Node;
  using Kind = JsonNodes::Kind;

  JsonNodesParser(std::string_view text, std::vector<Node>& nodes) : text_(text), nodes_(nodes) {}

  bool parse() {
    if (text_.size() >= std::numeric_limits<std::uint32_t>::max()) return false;
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    nodes_.reserve(text_.size() / 10 + 4);
    if (!value(1)) return false;
    skip_space();
    return at_ == text_.size() || text_[at_] == '\0';  // as nlohmann::json, which takes it for the end
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (here() != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  std::uint32_t add(Kind kind) {
    nodes_.emplace_back().kind = kind;
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  void end(std::uint32_t node, std::size_t begin) {
    nodes_[node].text = text_.substr(begin, at_ - begin);
    nodes_[node].after = static_cast<std::uint32_t>(nodes_.size());
  }

  bool value(int level) {
    skip_space();
    switch (here()) {
      case '{': return level <= deepest_json && object(level);
      case '[': return level <= deepest_json && list(level);
      case '"': return text();
      case 't': return word("true", Kind::boolean);
      case 'f': return word("false", Kind::boolean);
      case 'n': return word("null", Kind::null);
      default: return number();
    }
  }

  bool word(std::string_view word, Kind kind) {
    if (!text_.substr(at_).starts_with(word)) return false;
    const std::size_t begin = at_;
    at_ += word.size();
    end(add(kind), begin);
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  bool digits() {
    if (!is_digit(here())) return false;
    while (is_digit(here())) ++at_;
    return true;
  }

  bool number() {
    const std::size_t begin = at_;
    take('-');
    if (!take('0') && !digits()) return false;
    Kind kind = Kind::whole_number;
    if (take('.')) {
      kind = Kind::fraction;
      if (!digits()) return false;
    }
    if (here() == 'e' || here() == 'E') {
      kind = Kind::fraction;
      ++at_;
      if (here() == '+' || here() == '-') ++at_;
      if (!digits()) return false;
    }
    const std::uint32_t node = add(kind);
    end(node, begin);
    const std::string_view spelt = nodes_[node].text;
    // No type of a whole number has more than 20 digits; what needs more than 300 may be infinite.
    if (kind == Kind::whole_number && spelt.size() >= 19 && !JsonNodes::whole_in<std::int64_t>(spelt) &&
        !JsonNodes::whole_in<std::uint64_t>(spelt))
      nodes_[node].kind = kind = Kind::fraction;
    const bool may_be_infinite =
        kind == Kind::fraction && (spelt.size() > 300 || spelt.find_first_of("eE") != spelt.npos);
    return !may_be_infinite || std::isfinite(number_in(spelt));
  }

  // Four hexadecimal digits; -1 where there are none.
  int hexadecimal() {
    int code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = here();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return -1;
      code = code * 16 + digit;
    }
    return code;
  }

  bool escape() {
    ++at_;
    const char c = here();
    ++at_;
    if (c != 'u') return c != '\0' && std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    const int code = hexadecimal();
    if (code < 0 || (code >= 0xdc00 && code <= 0xdfff)) return false;
    if (code < 0xd800 || code > 0xdbff) return true;
    if (!take('\\') || !take('u')) return false;
    const int low = hexadecimal();
    return low >= 0xdc00 && low <= 0xdfff;
  }

  bool text() {
    const std::size_t begin = ++at_;
    bool has_escapes = false;
    for (; at_ < text_.size() && text_[at_] != '"';) {
      if (is_plain(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '\\') {
        has_escapes = true;
        if (!escape()) return false;
      } else {
        const std::size_t length = utf8_length(text_.substr(at_));
        if (length == 0) return false;
        at_ += length;
      }
    }
    if (at_ == text_.size()) return false;
    const std::uint32_t node = add(Kind::text);
    nodes_[node].has_escapes = has_escapes;
    end(node, begin);
    ++at_;
    return true;
  }

  bool list(int level) {
    const std::size_t begin = at_++;
    const std::uint32_t node = add(Kind::list);
    skip_space();
    if (here() != ']') do {
        if (!value(level + 1)) return false;
        ++nodes_[node].count;
        skip_space();
      } while (take(','));
    if (!take(']')) return false;
    end(node, begin);
    return true;
  }

  bool object(int level) {
    const std::size_t begin = at_++;
    const std::uint32_t node = add(Kind::object);
    std::uint64_t seen = 0;  // a bit for each name; some names share one
    skip_space();
    if (here() != '}') do {
        skip_space();
        const auto name = static_cast<std::uint32_t>(nodes_.size());
        if (here() != '"' || !text()) return false;
        const std::uint64_t bit = bit_of(nodes_[name]);
        if ((seen & bit) != 0) replace_by(name, node + 1);
        seen |= bit;
        skip_space();
        if (!take(':') || !value(level + 1)) return false;
        ++nodes_[node].count;
        skip_space();
      } while (take(','));
    if (!take('}')) return false;
    end(node, begin);
    return true;
  }

  // A name with escapes may be any.
  static std::uint64_t bit_of(const Node& name) {
    return name.has_escapes ? ~std::uint64_t{0} : bit_of_name(name.text);
  }

  // Of the members from `first` on, one of the same name as the one that is being read counts no more.
  void replace_by(std::uint32_t name, std::uint32_t first) {
    const std::string text = text_of(nodes_[name]);
    for (std::uint32_t i = first; i < name; i = nodes_[i + 1].after)
      if (text_of(nodes_[i]) == text) nodes_[i].is_replaced = true;
  }

 public:
  static std::string text_of(const Node& node);

 private:
  std::string_view text_;
  std::vector<Node>& nodes_;
  std::size_t at_ = 0;
};

std::string JsonNodesParser::text_of(const Node& node) {
  std::string text;
  if (!node.has_escapes) return text = node.text;
  const auto code_at = [&](std::size_t i) {
    unsigned code = 0;
    std::from_chars(node.text.data() + i, node.text.data() + i + 4, code, 16);
    return code;
  };
  for (std::size_t i = 0; i < node.text.size(); ++i) {
    if (node.text[i] != '\\') {
      text += node.text[i];
      continue;
    }
    switch (const char c = node.text[++i]) {
      case 'b': text += '\b'; break;
      case 'f': text += '\f'; break;
      case 'n': text += '\n'; break;
      case 'r': text += '\r'; break;
      case 't': text += '\t'; break;
      case 'u': {
        unsigned code = code_at(i + 1);
        i += 4;
        if (code >= 0xd800 && code <= 0xdbff) {  // with its low half, which was looked for before
          code = 0x10000 + ((code - 0xd800) << 10) + (code_at(i + 3) - 0xdc00);
          i += 6;
        }
        add_utf8(text, code);
        break;
      }
      default: text += c;
    }
  }
  return text;
}

std::optional<JsonNodes> JsonNodes::parse(std::string_view text) {
  JsonNodes nodes;
  if (!JsonNodesParser(text, nodes.nodes_).parse()) return std::nullopt;
  return nodes;
}

double JsonNodes::Value::number() const { return number_in(node().text); }
std::string JsonNodes::Value::text() const { return JsonNodesParser::text_of(node()); }

std::optional<JsonNodes::Value> JsonNodes::Value::find(std::string_view name, std::uint32_t& from) const {
  const std::uint32_t first = at_ + 1, begin = std::max(from, first);
  auto found = find_between(name, begin, node().after);
  if (!found) found = find_between(name, first, begin);
  if (found) from = nodes_->nodes_[found->at_].after;
  return found;
}

std::optional<JsonNodes::Value> JsonNodes::Value::find_between(std::string_view name, std::uint32_t begin,
                                                               std::uint32_t end) const {
  const std::vector<Node>& nodes = nodes_->nodes_;
  for (std::uint32_t i = begin; i < end; i = nodes[i + 1].after) {
    const Node& each = nodes[i];
    if (each.is_replaced) continue;
    if (each.has_escapes ? JsonNodesParser::text_of(each) == name : each.text == name) return Value(*nodes_, i + 1);
  }
  return std::nullopt;
}

}  // namespace assay::host
