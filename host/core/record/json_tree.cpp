#include "record/json_tree.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "common/foreign_json.hpp"

namespace assay::host::record {

using Json = nlohmann::ordered_json;
using Kind = JsonNode::Kind;

namespace {

JsonNode number(std::int64_t value) {
  return {.kind = Kind::integer, .integer = value, .real = static_cast<double>(value)};
}
JsonNode number(std::uint64_t value) {
  if (value <= std::uint64_t{INT64_MAX}) return number(static_cast<std::int64_t>(value));
  return {
      .kind = Kind::beyond_integer, .integer = static_cast<std::int64_t>(value), .real = static_cast<double>(value)};
}
JsonNode number(double value) { return {.kind = Kind::real, .real = value}; }
JsonNode boolean(bool value) { return {.kind = Kind::boolean, .integer = value}; }

}  // namespace

const JsonNode* JsonNode::member(std::string_view name) const {
  if (kind != Kind::object) return nullptr;
  for (const JsonNode* n = begin(); n != end(); n = n->next())
    if (n->key == name) return n;
  return nullptr;
}

// Takes the parser's events. False ends the parsing.
class JsonTree::Handler {
 public:
  explicit Handler(JsonTree& tree) : nodes_(tree.nodes_), texts_(tree.texts_) {}

  bool null() { return add({}); }
  bool boolean(bool value) { return add(record::boolean(value)); }
  bool number_integer(std::int64_t value) { return add(number(value)); }
  bool number_unsigned(std::uint64_t value) { return add(number(value)); }
  bool number_float(double value, const std::string& /*spelling*/) { return add(number(value)); }
  bool string(const std::string& value) { return add({.kind = Kind::text, .text = kept(value)}); }
  bool binary(const Json::binary_t& /*bytes*/) { return false; }  // JSON has none
  bool start_object(std::size_t /*elements*/) { return open(Kind::object); }
  bool start_array(std::size_t /*elements*/) { return open(Kind::list); }
  bool end_object() {
    const std::size_t place = open_.back();
    close();
    if (has_doubled_key(place)) keep_last_of_each_key(place);
    return true;
  }
  bool end_array() { return close(); }
  bool key(const std::string& name) {
    key_ = kept(name);
    return true;
  }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/, const nlohmann::detail::exception& /*error*/) {
    return false;
  }

 private:
  // Texts in JSON are never shorter than what they spell, so that the memory of the whole text is enough and no view
  // of it becomes invalid.
  std::string_view kept(const std::string& text) {
    const std::size_t begin = texts_.size();
    texts_ += text;
    return std::string_view(texts_).substr(begin);
  }
  bool add(const JsonNode& node) {
    nodes_.push_back(node);
    nodes_.back().key = std::exchange(key_, {});
    return true;
  }
  bool open(Kind kind) {
    add({.kind = kind});
    open_.push_back(nodes_.size() - 1);
    return open_.size() <= static_cast<std::size_t>(deepest_json);
  }
  bool close() {
    nodes_[open_.back()].size = static_cast<std::uint32_t>(nodes_.size() - open_.back());
    open_.pop_back();
    return true;
  }

  bool has_doubled_key(std::size_t object) {
    names_.clear();
    const JsonNode& node = nodes_[object];
    for (const JsonNode* n = node.begin(); n != node.end(); n = n->next()) names_.push_back(n->key);
    if (names_.size() > 32) {
      std::sort(names_.begin(), names_.end());
      return std::adjacent_find(names_.begin(), names_.end()) != names_.end();
    }
    for (auto name = names_.begin(); name != names_.end(); ++name)
      if (std::find(names_.begin(), name, *name) != name) return true;
    return false;
  }
  // At the place of the first one, as nlohmann's objects have it.
  void keep_last_of_each_key(std::size_t object) {
    std::unordered_map<std::string_view, const JsonNode*> last;
    const JsonNode& node = nodes_[object];
    for (const JsonNode* n = node.begin(); n != node.end(); n = n->next()) last[n->key] = n;
    std::vector<JsonNode> kept;
    for (const JsonNode* n = node.begin(); n != node.end(); n = n->next())
      if (const JsonNode* value = std::exchange(last[n->key], nullptr)) kept.insert(kept.end(), value, value->next());
    nodes_.resize(object + 1);
    nodes_.insert(nodes_.end(), kept.begin(), kept.end());
    nodes_[object].size = static_cast<std::uint32_t>(nodes_.size() - object);
  }

  std::vector<JsonNode>& nodes_;
  std::string& texts_;
  std::vector<std::size_t> open_;
  std::vector<std::string_view> names_;
  std::string_view key_;
};

const JsonNode* JsonTree::read(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return nullptr;  // nlohmann's parser would end there
  nodes_.clear();
  texts_.clear();
  texts_.reserve(text.size());
  Handler handler(*this);
  return Json::sax_parse(text, &handler) ? nodes_.data() : nullptr;
}

void JsonTree::add(const Json& json, std::string_view key) {
  const std::size_t place = nodes_.size();
  JsonNode node;
  if (json.is_boolean()) node = boolean(json.get<bool>());
  if (json.is_number_unsigned())
    node = number(json.get<std::uint64_t>());
  else if (json.is_number_integer())
    node = number(json.get<std::int64_t>());
  if (json.is_number_float()) node = number(json.get<double>());
  if (json.is_string()) node = {.kind = Kind::text, .text = json.get_ref<const std::string&>()};
  if (json.is_array()) node.kind = Kind::list;
  if (json.is_object()) node.kind = Kind::object;
  node.key = key;
  nodes_.push_back(node);
  if (json.is_array())
    for (const Json& element : json) add(element, {});
  if (json.is_object())
    for (const auto& [name, value] : json.get_ref<const Json::object_t&>()) add(value, name);
  nodes_[place].size = static_cast<std::uint32_t>(nodes_.size() - place);
}

const JsonNode* JsonTree::read(const Json& json) {
  nodes_.clear();
  add(json, {});
  return nodes_.data();
}

Json json_of(const JsonNode& node) {
  Json json;
  switch (node.kind) {
    case Kind::null: break;
    case Kind::boolean: json = node.integer != 0; break;
    case Kind::integer: json = node.integer; break;
    case Kind::beyond_integer: json = static_cast<std::uint64_t>(node.integer); break;
    case Kind::real: json = node.real; break;
    case Kind::text: json = node.text; break;
    case Kind::list:
      json = Json::array();
      for (const JsonNode* n = node.begin(); n != node.end(); n = n->next()) json.push_back(json_of(*n));
      break;
    case Kind::object:
      json = Json::object();
      for (const JsonNode* n = node.begin(); n != node.end(); n = n->next()) json[std::string(n->key)] = json_of(*n);
      break;
  }
  return json;
}

}  // namespace assay::host::record
