// From a record to JSON, by the lists of its fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "record/json.hpp"
#include "record/json_fields.hpp"

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;

void write(std::string& out, std::nullptr_t) { out += "null"; }
void write(std::string& out, bool value) { out += value ? "true" : "false"; }
void write(std::string& out, double value) {
  if (!std::isfinite(value)) return write(out, nullptr);
  std::array<char, 64> digits{};  // as many as nlohmann::json has for it
  out.append(digits.data(), nlohmann::detail::to_chars(digits.data(), digits.data() + digits.size(), value));
}
template <class T>
requires std::is_integral_v<T>
void write(std::string& out, T value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}
void write(std::string& out, std::string_view text) {
  const bool is_plain = std::all_of(text.begin(), text.end(),
                                    [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  if (is_plain)
    out.append(1, '"').append(text).append(1, '"');
  else
    out += json_text(Json(text));
}
void write(std::string& out, const std::string& text) { write(out, std::string_view(text)); }
void write(std::string& out, const char* text) { write(out, std::string_view(text)); }
void write(std::string& out, Direction direction) { write(out, static_cast<int>(direction)); }
void write(std::string& out, Stage stage) { write(out, name_of(stage)); }
void write(std::string& out, Status status) { write(out, name_of(status)); }
void write(std::string& out, Verification verification) { write(out, name_of(verification)); }
void write(std::string& out, ValidityVerdict verdict) { write(out, name_of(verdict)); }
void write(std::string& out, const Value& value) {
  std::visit([&out](const auto& v) { write(out, v); }, value);
}
template <class T>
void write(std::string& out, const Named<T>& list);
template <class T>
void write(std::string& out, const std::vector<T>& list);
template <class T>
requires requires { sizeof(Fields<T>); }
void write(std::string& out, const T& object);

// Members between braces that others write. Keys of fields need no escapes.
class Writer {
 public:
  explicit Writer(std::string& out, bool has_members = false) : out_(out), has_members_(has_members) {}
  template <class T>
  void operator()(const char* key, const T& value) {
    out_.append(has_members_ ? ",\"" : "\"").append(key).append("\":");
    has_members_ = true;
    write(out_, value);
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) (*this)(key, *value);
  }
  void measured(const char* key, const auto& value) { (*this)(key, value); }
  template <class T>
  void unless_empty(const char* key, const T& value) {
    if (!value.empty()) (*this)(key, value);
  }
  template <class T>
  void or_null(const char* key, const std::optional<T>& value) {
    if (value)
      (*this)(key, *value);
    else
      (*this)(key, nullptr);
  }
  template <class T>
  void or_empty(const char* key, const std::optional<T>& value) {
    if (value)
      (*this)(key, *value);
    else
      (*this)(key, "");
  }
  void status(const CaseResult& result) { (*this)("status", result.status_text()); }
  void count(const char* key, double value) { (*this)(key, count_if_whole(value)); }

 private:
  std::string& out_;
  bool has_members_;
};

// One of 64 bits. Names whose bits differ are different; the others are compared.
std::uint64_t bit_of_name(std::string_view name) {
  auto hash = static_cast<unsigned>(name.size());
  for (const char c : name) hash = hash * 31 + static_cast<unsigned char>(c);
  return std::uint64_t{1} << ((hash ^ (hash >> 6)) % 64);
}

// Of several of one name the last one counts.
template <class T>
bool stands_again(const Named<T>& list, std::size_t at) {
  return std::any_of(list.begin() + static_cast<std::ptrdiff_t>(at) + 1, list.end(),
                     [&](const auto& later) { return later.first == list[at].first; });
}

template <class T>
void write(std::string& out, const Named<T>& list) {
  std::uint64_t seen = 0;
  bool may_repeat = false;
  for (const auto& [name, value] : list) {
    const std::uint64_t bit = bit_of_name(name);
    may_repeat |= (seen & bit) != 0;
    seen |= bit;
  }
  out += '{';
  bool has_members = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (may_repeat && stands_again(list, i)) continue;
    if (has_members) out += ',';
    has_members = true;
    write(out, list[i].first);
    out += ':';
    write(out, list[i].second);
  }
  out += '}';
}
template <class T>
void write(std::string& out, const std::vector<T>& list) {
  out += '[';
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    write(out, list[i]);
  }
  out += ']';
}
template <class T>
requires requires { sizeof(Fields<T>); }
void write(std::string& out, const T& object) {
  out += '{';
  Fields<T>::visit(Writer(out), object);
  out += '}';
}

template <class T>
std::string text_of(const T& value) {
  std::string out;
  write(out, value);
  return out;
}

}  // namespace

std::string to_line(const CaseRecord& record) {
  std::string out = R"({"schema":1)";
  out.reserve(4096);
  Fields<CaseRecord>::visit(Writer(out, true), record);
  return out += '}';
}
Json to_json(const CaseRecord& record) { return Json::parse(to_line(record)); }
Json to_json(const CaseResult& result) { return Json::parse(text_of(result)); }
Json to_json(const Device& device) { return Json::parse(text_of(device)); }

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : text_of(value);
}

Named<std::string> items_of(const Device& device) {
  Named<std::string> items;
  const Json json = to_json(device);  // items() keeps no JSON alive
  for (const auto& [name, value] : json.items())
    if (!value.is_null()) items.emplace_back(name, value.is_string() ? value.get<std::string>() : json_text(value));
  return items;
}

}  // namespace assay::host::record
