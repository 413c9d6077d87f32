// From a record to JSON, by the lists of its fields.
#include <nlohmann/json.hpp>

#include "record/json.hpp"
#include "record/json_fields.hpp"

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(bool value) { return value; }
Json json_of(double value) { return value; }
Json json_of(std::int32_t value) { return value; }
Json json_of(std::int64_t value) { return value; }
Json json_of(std::uint64_t value) { return value; }
Json json_of(const std::string& text) { return text; }
Json json_of(Direction direction) { return static_cast<int>(direction); }
Json json_of(Stage stage) { return name_of(stage); }
Json json_of(Status status) { return name_of(status); }
Json json_of(Verification verification) { return name_of(verification); }
Json json_of(ValidityVerdict verdict) { return name_of(verdict); }
Json json_of(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}
template <class T>
Json json_of(const Named<T>& list);
template <class T>
Json json_of(const std::vector<T>& list);
template <class T>
requires requires { sizeof(Fields<T>); }
Json json_of(const T& object);

class Writer {
 public:
  explicit Writer(Json& out) : out_(out) {}
  template <class T>
  void operator()(const char* key, const T& value) {
    out_[key] = json_of(value);
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) out_[key] = json_of(*value);
  }
  void measured(const char* key, const auto& value) { (*this)(key, value); }
  template <class T>
  void unless_empty(const char* key, const T& value) {
    if (!value.empty()) out_[key] = json_of(value);
  }
  template <class T>
  void or_null(const char* key, const std::optional<T>& value) {
    out_[key] = value ? json_of(*value) : Json();
  }
  template <class T>
  void or_empty(const char* key, const std::optional<T>& value) {
    out_[key] = value ? json_of(*value) : Json("");
  }
  void status(const CaseResult& result) { out_["status"] = result.status_text(); }
  void count(const char* key, double value) { out_[key] = json_of(count_if_whole(value)); }

 private:
  Json& out_;
};

template <class T>
Json json_of(const Named<T>& list) {
  Json out = Json::object();
  for (const auto& [name, value] : list) out[name] = json_of(value);
  return out;
}
template <class T>
Json json_of(const std::vector<T>& list) {
  Json out = Json::array();
  for (const T& element : list) out.push_back(json_of(element));
  return out;
}
template <class T>
requires requires { sizeof(Fields<T>); }
Json json_of(const T& object) {
  Json out = Json::object();
  Fields<T>::visit(Writer(out), object);
  return out;
}

}  // namespace

Json to_json(const CaseRecord& record) {
  Json out = {{"schema", 1}};
  Fields<CaseRecord>::visit(Writer(out), record);
  return out;
}
Json to_json(const CaseResult& result) { return json_of(result); }
Json to_json(const Device& device) { return json_of(device); }

std::string to_line(const CaseRecord& record) { return json_text(to_json(record)); }

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : json_text(json_of(value));
}

Named<std::string> items_of(const Device& device) {
  Named<std::string> items;
  const Json json = json_of(device);  // items() keeps no JSON alive
  for (const auto& [name, value] : json.items())
    if (!value.is_null()) items.emplace_back(name, value.is_string() ? value.get<std::string>() : json_text(value));
  return items;
}

}  // namespace assay::host::record
