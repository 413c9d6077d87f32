// The values of a JSON text in one list. Records are read from it: a run of 10,000 cases has 3 million values, and a
// tree of nlohmann's asks the system for memory for each of them.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::record {

struct JsonNode {
  enum class Kind : std::uint8_t { null, boolean, integer, beyond_integer, real, text, list, object };

  Kind kind = Kind::null;
  std::uint32_t size = 1;    // of itself and all within it: its neighbour stands so many places further
  std::string_view key;      // within an object
  std::string_view text;     // of a text
  std::int64_t integer = 0;  // of an integer (beyond_integer: its bits), and of a boolean
  double real = 0;           // of any number

  bool is_number() const { return kind == Kind::integer || kind == Kind::beyond_integer || kind == Kind::real; }
  bool is_structured() const { return kind == Kind::list || kind == Kind::object; }
  // The nodes right within this one: for (n = node.begin(); n != node.end(); n = n->next()).
  const JsonNode* begin() const { return this + 1; }
  const JsonNode* end() const { return this + size; }
  const JsonNode* next() const { return this + size; }
  // The member with this key; null where there is none, or where this is no object.
  const JsonNode* member(std::string_view name) const;
};

class JsonTree {
 public:
  // Reads the text. Null where it is no JSON or is nested deeper than `deepest_json`. Of several values with one key
  // the last one counts. The node is valid until the next call; the tree keeps its memory for it.
  const JsonNode* read(std::string_view text);
  // The same of JSON that was read already, which must live as long as the node is used.
  const JsonNode* read(const nlohmann::ordered_json& json);

 private:
  class Handler;
  void add(const nlohmann::ordered_json& json, std::string_view key);
  std::vector<JsonNode> nodes_;
  std::string texts_;
};

nlohmann::ordered_json json_of(const JsonNode& node);

}  // namespace assay::host::record
