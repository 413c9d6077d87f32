// From JSON to a record, by the lists of its fields. A value of another type than its field's counts as absent.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "record/json.hpp"
#include "record/json_fields.hpp"
#include "record/json_tree.hpp"

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;
using Kind = JsonNode::Kind;

// Each `read` is false where the JSON is of another type, and then nothing is set.
bool read(const JsonNode& json, bool& out) {
  if (json.kind == Kind::boolean) out = json.integer != 0;
  return json.kind == Kind::boolean;
}
bool read(const JsonNode& json, double& out) {
  if (json.kind == Kind::null) out = std::numeric_limits<double>::quiet_NaN();
  if (json.is_number()) out = json.real;
  return json.kind == Kind::null || json.is_number();
}
template <class T>
requires std::is_integral_v<T>
bool read(const JsonNode& json, T& out) {
  // What is whole and fits counts, however it is spelt.
  if (!json.is_number()) return false;
  if (json.kind != Kind::real) {
    const auto bits = static_cast<std::uint64_t>(json.integer);
    const bool fits = json.kind == Kind::integer ? std::in_range<T>(json.integer) : std::in_range<T>(bits);
    if (fits) out = static_cast<T>(json.integer);
    return fits;
  }
  const double value = json.real;
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= (std::is_signed_v<T> ? -beyond : 0.0) && value < beyond) || value != std::floor(value)) return false;
  out = static_cast<T>(value);
  return true;
}
bool read(const JsonNode& json, std::string& out) {
  if (json.kind == Kind::text) out = json.text;
  return json.kind == Kind::text;
}
bool read(const JsonNode& json, Direction& out) {
  int value = 0;
  if (!read(json, value)) return false;
  out = value < 0 ? Direction::lower_is_better : value > 0 ? Direction::higher_is_better : Direction::neither;
  return true;
}
template <class Enum>
bool read_name(const JsonNode& json, Enum& out, std::optional<Enum> (*by_name)(std::string_view)) {
  const std::optional<Enum> found = json.kind == Kind::text ? by_name(json.text) : std::optional<Enum>();
  if (found) out = *found;
  return found.has_value();
}
bool read(const JsonNode& json, Stage& out) { return read_name(json, out, stage_of); }
bool read(const JsonNode& json, Status& out) { return read_name(json, out, status_of); }
bool read(const JsonNode& json, Verification& out) { return read_name(json, out, verification_of); }
bool read(const JsonNode& json, ValidityVerdict& out) { return read_name(json, out, validity_verdict_of); }
bool read(const JsonNode& json, Value& out) {
  switch (json.kind) {
    case Kind::list:
    case Kind::object: out = json_text(json_of(json)); break;                // of another assay: what it says is kept
    case Kind::null: out = std::numeric_limits<double>::quiet_NaN(); break;  // NaN or infinity
    case Kind::boolean: out = json.integer != 0; break;
    case Kind::integer: out = json.integer; break;
    case Kind::beyond_integer:
    case Kind::real: out = json.real; break;
    case Kind::text: out = std::string(json.text); break;
  }
  return true;
}
template <class T>
bool read(const JsonNode& json, Named<T>& out);
template <class T>
bool read(const JsonNode& json, std::vector<T>& out);
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const JsonNode& json, T& out);

class Reader {
 public:
  explicit Reader(const JsonNode& json) : json_(json), next_(json.begin()) {}
  template <class T>
  void operator()(const char* key, T& out) {
    if (const JsonNode* value = at(key)) read(*value, out);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& out) {
    const JsonNode* value = at(key);
    if (!value) return;
    T read_value{};
    if (read(*value, read_value)) out = std::move(read_value);
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
  // Records have their keys in the order of the fields: the search begins behind the key that was found last.
  const JsonNode* at(std::string_view key) {
    const JsonNode* found = find(next_, json_.end(), key);
    if (found == json_.end() && (found = find(json_.begin(), next_, key)) == next_) return nullptr;
    next_ = found->next();
    return found;
  }
  static const JsonNode* find(const JsonNode* node, const JsonNode* end, std::string_view key) {
    while (node != end && node->key != key) node = node->next();
    return node;
  }
  const JsonNode& json_;
  const JsonNode* next_;
};

template <class T>
bool read(const JsonNode& json, Named<T>& out) {
  if (json.kind != Kind::object) return false;
  for (const JsonNode* n = json.begin(); n != json.end(); n = n->next())
    if (T read_value{}; read(*n, read_value)) out.emplace_back(n->key, std::move(read_value));
  return true;
}
template <class T>
bool read(const JsonNode& json, std::vector<T>& out) {
  if (json.kind != Kind::list) return false;
  for (const JsonNode* n = json.begin(); n != json.end(); n = n->next())
    if (T read_value{}; read(*n, read_value)) out.push_back(std::move(read_value));
  return true;
}
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const JsonNode& json, T& out) {
  if (json.kind != Kind::object) return false;
  Fields<T>::visit(Reader(json), out);
  return true;
}

template <class T>
std::optional<T> with_status(const JsonNode* json) {
  const JsonNode* status = json ? json->member("status") : nullptr;
  if (!status || status->kind != Kind::text) return std::nullopt;
  std::optional<T> out(std::in_place);
  read(*json, *out);
  return out;
}

template <class T>
std::optional<T> with_status(const Json& json) {
  JsonTree tree;
  return with_status<T>(tree.read(json));
}

}  // namespace

std::optional<CaseRecord> record_from_json(const Json& json) { return with_status<CaseRecord>(json); }
std::optional<CaseResult> result_from_json(const Json& json) { return with_status<CaseResult>(json); }
Device device_from_json(const Json& json) {
  Device device;
  JsonTree tree;
  read(*tree.read(json), device);
  return device;
}

std::optional<CaseRecord> record_from_line(std::string_view line) {
  static thread_local JsonTree tree;
  return with_status<CaseRecord>(tree.read(line));
}

}  // namespace assay::host::record
