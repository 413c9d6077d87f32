// From JSON to a record, by the lists of its fields. A value of another type than its field's counts as absent.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "common/json_nodes.hpp"
#include "record/json.hpp"
#include "record/json_fields.hpp"

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;
using Node = JsonNodes::Value;
using Kind = JsonNodes::Kind;

// Each `read` is false where the JSON is of another type, and then nothing is set.
bool read(const Node& json, bool& out) {
  if (json.kind() == Kind::boolean) out = json.boolean();
  return json.kind() == Kind::boolean;
}
bool read(const Node& json, double& out) {
  if (json.kind() == Kind::null) out = std::numeric_limits<double>::quiet_NaN();
  if (json.is_number()) out = json.number();
  return json.kind() == Kind::null || json.is_number();
}
template <class T>
requires std::is_integral_v<T>
bool read(const Node& json, T& out) {
  // What is whole and fits counts, however it is spelt.
  if (!json.is_number()) return false;
  const auto whole = json.whole_number<T>();
  if (whole) out = *whole;
  if (whole) return true;
  const double value = json.number();
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= (std::is_signed_v<T> ? -beyond : 0.0) && value < beyond) || value != std::floor(value)) return false;
  out = static_cast<T>(value);
  return true;
}
bool read(const Node& json, std::string& out) {
  if (json.kind() == Kind::text) out = json.text();
  return json.kind() == Kind::text;
}
bool read(const Node& json, Direction& out) {
  int value = 0;
  if (!read(json, value)) return false;
  out = value < 0 ? Direction::lower_is_better : value > 0 ? Direction::higher_is_better : Direction::neither;
  return true;
}
template <class Enum>
bool read_name(const Node& json, Enum& out, std::optional<Enum> (*by_name)(std::string_view)) {
  const std::optional<Enum> found = json.kind() == Kind::text ? by_name(json.text()) : std::optional<Enum>();
  if (found) out = *found;
  return found.has_value();
}
bool read(const Node& json, Stage& out) { return read_name(json, out, stage_of); }
bool read(const Node& json, Status& out) { return read_name(json, out, status_of); }
bool read(const Node& json, Verification& out) { return read_name(json, out, verification_of); }
bool read(const Node& json, ValidityVerdict& out) { return read_name(json, out, validity_verdict_of); }
bool read(const Node& json, Value& out) {
  switch (json.kind()) {
    case Kind::null: out = std::numeric_limits<double>::quiet_NaN(); break;  // NaN or infinity
    case Kind::boolean: out = json.boolean(); break;
    case Kind::text: out = json.text(); break;
    case Kind::fraction: out = json.number(); break;
    case Kind::whole_number:
      if (const auto whole = json.whole_number<std::int64_t>())
        out = *whole;
      else
        out = json.number();
      break;
    // Of another assay: what it says is kept.
    case Kind::list:
    case Kind::object: out = json_text(Json::parse(json.spelt())); break;
  }
  return true;
}
template <class T>
bool read(const Node& json, Named<T>& out);
template <class T>
bool read(const Node& json, std::vector<T>& out);
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const Node& json, T& out);

class Reader {
 public:
  explicit Reader(const Node& json) : json_(json) {}
  template <class T>
  void operator()(const char* key, T& out) {
    if (const auto value = json_.find(key, next_)) read(*value, out);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& out) {
    const auto value = json_.find(key, next_);
    T read_value{};
    if (value && read(*value, read_value)) out = std::move(read_value);
  }
  void measured(const char* key, auto& out) { (*this)(key, out); }
  template <class T>
  void unless_empty(const char* key, T& out) {
    (*this)(key, out);
  }
  template <class T>
  void or_null(const char* key, std::optional<T>& out) {
    (*this)(key, out);
  }
  template <class T>
  void or_empty(const char* key, std::optional<T>& out) {
    (*this)(key, out);
  }
  void count(const char* key, double& out) { (*this)(key, out); }
  void status(CaseResult& result) {
    std::string word;
    (*this)("status", word);
    result.status = status_of(word).value_or(Status::unknown);
    if (result.status == Status::unknown) result.unknown_status = word;
  }

 private:
  const Node& json_;
  std::uint32_t next_ = 0;  // fields are mostly asked for in the order in which they stand
};

template <class T>
bool read(const Node& json, Named<T>& out) {
  if (json.kind() != Kind::object) return false;
  out.reserve(json.count());
  json.for_each_member([&out](std::string name, const Node& value) {
    if (T read_value{}; read(value, read_value)) out.emplace_back(std::move(name), std::move(read_value));
  });
  return true;
}
template <class T>
bool read(const Node& json, std::vector<T>& out) {
  if (json.kind() != Kind::list) return false;
  out.reserve(json.count());
  json.for_each_element([&out](const Node& element) {
    if (T read_value{}; read(element, read_value)) out.push_back(std::move(read_value));
  });
  return true;
}
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const Node& json, T& out) {
  if (json.kind() != Kind::object) return false;
  Fields<T>::visit(Reader(json), out);
  return true;
}

template <class T>
std::optional<T> with_status(std::string_view text) {
  const auto json = JsonNodes::parse(text);
  if (!json || json->root().kind() != Kind::object) return std::nullopt;
  std::uint32_t from = 0;
  const auto status = json->root().find("status", from);
  if (!status || status->kind() != Kind::text) return std::nullopt;
  T out;
  read(json->root(), out);
  return out;
}

}  // namespace

std::optional<CaseRecord> record_from_line(std::string_view line) { return with_status<CaseRecord>(line); }
std::optional<CaseRecord> record_from_json(const Json& json) { return record_from_line(json_text(json)); }
std::optional<CaseResult> result_from_json(const Json& json) { return with_status<CaseResult>(json_text(json)); }
Device device_from_json(const Json& json) {
  Device device;
  const std::string text = json_text(json);
  if (const auto nodes = JsonNodes::parse(text)) read(nodes->root(), device);
  return device;
}

}  // namespace assay::host::record
