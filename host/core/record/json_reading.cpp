// From JSON to a record, by the lists of its fields. A value of another type than its field's counts as absent.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "common/foreign_json.hpp"
#include "record/json.hpp"
#include "record/json_fields.hpp"

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;

// Each `read` is false where the JSON is of another type, and then nothing is set.
bool read(const Json& json, bool& out) {
  if (json.is_boolean()) out = json.get<bool>();
  return json.is_boolean();
}
bool read(const Json& json, double& out) {
  if (json.is_null()) out = std::numeric_limits<double>::quiet_NaN();
  if (json.is_number()) out = json.get<double>();
  return json.is_null() || json.is_number();
}
template <class T>
requires std::is_integral_v<T>
bool read(const Json& json, T& out) {
  // What is whole and fits counts, however it is spelt.
  if (!json.is_number()) return false;
  const double value = json.get<double>();
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= (std::is_signed_v<T> ? -beyond : 0.0) && value < beyond) || value != std::floor(value)) return false;
  out = json.is_number_float() ? static_cast<T>(value) : json.get<T>();
  return true;
}
bool read(const Json& json, std::string& out) {
  if (json.is_string()) out = json.get<std::string>();
  return json.is_string();
}
bool read(const Json& json, Direction& out) {
  int value = 0;
  if (!read(json, value)) return false;
  out = value < 0 ? Direction::lower_is_better : value > 0 ? Direction::higher_is_better : Direction::neither;
  return true;
}
template <class Enum>
bool read_name(const Json& json, Enum& out, std::optional<Enum> (*by_name)(std::string_view)) {
  const std::optional<Enum> found =
      json.is_string() ? by_name(json.get_ref<const std::string&>()) : std::optional<Enum>();
  if (found) out = *found;
  return found.has_value();
}
bool read(const Json& json, Stage& out) { return read_name(json, out, stage_of); }
bool read(const Json& json, Status& out) { return read_name(json, out, status_of); }
bool read(const Json& json, Verification& out) { return read_name(json, out, verification_of); }
bool read(const Json& json, ValidityVerdict& out) { return read_name(json, out, validity_verdict_of); }
bool read(const Json& json, Value& out) {
  if (json.is_structured()) {  // of another assay: what it says is kept
    out = json_text(json);
    return true;
  }
  if (json.is_null()) {  // NaN or infinity
    out = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  out = value_from_json(json);
  return true;
}
template <class T>
bool read(const Json& json, Named<T>& out);
template <class T>
bool read(const Json& json, std::vector<T>& out);
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const Json& json, T& out);

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  template <class T>
  void operator()(const char* key, T& out) {
    if (const Json* value = at(key)) read(*value, out);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& out) {
    const Json* value = at(key);
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
  const Json* at(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& json_;
};

template <class T>
bool read(const Json& json, Named<T>& out) {
  if (!json.is_object()) return false;
  for (const auto& [name, value] : json.items())
    if (T read_value{}; read(value, read_value)) out.emplace_back(name, std::move(read_value));
  return true;
}
template <class T>
bool read(const Json& json, std::vector<T>& out) {
  if (!json.is_array()) return false;
  for (const Json& element : json)
    if (T read_value{}; read(element, read_value)) out.push_back(std::move(read_value));
  return true;
}
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const Json& json, T& out) {
  if (!json.is_object()) return false;
  Fields<T>::visit(Reader(json), out);
  return true;
}

template <class T>
std::optional<T> with_status(const Json& json) {
  std::string status;
  if (!json.is_object() || !json.contains("status") || !read(json["status"], status)) return std::nullopt;
  T out;
  read(json, out);
  return out;
}

}  // namespace

std::optional<CaseRecord> record_from_json(const Json& json) { return with_status<CaseRecord>(json); }
std::optional<CaseResult> result_from_json(const Json& json) { return with_status<CaseResult>(json); }
Device device_from_json(const Json& json) {
  Device device;
  read(json, device);
  return device;
}

std::optional<CaseRecord> record_from_line(std::string_view line) { return record_from_json(json_or_discarded(line)); }

}  // namespace assay::host::record
