// A text of JSON as nodes over it. Nothing is copied before it is asked for, and a text has one piece of memory:
// records of large runs are read some times faster so than as nlohmann::json. It takes what nlohmann::json takes, and
// refuses what that refuses, and what is nested deeper than `deepest_json`.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host {

// One of 64 bits. Names of an object whose bits differ are different; of the others somebody has to look.
inline std::uint64_t bit_of_name(std::string_view name) {
  auto hash = static_cast<unsigned>(name.size());
  for (const char c : name) hash = hash * 31 + static_cast<unsigned char>(c);
  return std::uint64_t{1} << ((hash ^ (hash >> 6)) % 64);
}

class JsonNodes {
  struct Node;

 public:
  enum class Kind : std::uint8_t { null, boolean, whole_number, fraction, text, list, object };

  // Valid as long as the JsonNodes, and the text that they are of.
  class Value {
   public:
    Kind kind() const { return node().kind; }
    bool is_number() const { return kind() == Kind::whole_number || kind() == Kind::fraction; }

    bool boolean() const { return node().text == "true"; }
    double number() const;
    // Of a whole number. Nothing where it has no room.
    template <class Whole>
    std::optional<Whole> whole_number() const {
      return whole_in<Whole>(node().text);
    }
    std::string text() const;                               // of a text
    std::string_view spelt() const { return node().text; }  // as it stands; a text without its quotes
    std::size_t count() const { return node().count; }      // of elements, or of members

    // Each element of a list: call(value).
    void for_each_element(const auto& call) const {
      for (std::uint32_t i = at_ + 1; i < node().after; i = nodes_->nodes_[i].after) call(Value(*nodes_, i));
    }
    // Each member of an object: call(name, value). Of several of one name the last one counts.
    void for_each_member(const auto& call) const {
      for (std::uint32_t i = at_ + 1; i < node().after; i = nodes_->nodes_[i + 1].after)
        if (!nodes_->nodes_[i].is_replaced) call(Value(*nodes_, i).text(), Value(*nodes_, i + 1));
    }
    // The member of this name. `from`: where to look first; set to what follows, so that members that are asked for in
    // their order are found at once. Begin with 0.
    std::optional<Value> find(std::string_view name, std::uint32_t& from) const;

   private:
    friend class JsonNodes;
    Value(const JsonNodes& nodes, std::uint32_t at) : nodes_(&nodes), at_(at) {}
    const Node& node() const { return nodes_->nodes_[at_]; }
    std::optional<Value> find_between(std::string_view name, std::uint32_t begin, std::uint32_t end) const;

    const JsonNodes* nodes_;
    std::uint32_t at_;
  };

  // Nothing where the text is no JSON.
  static std::optional<JsonNodes> parse(std::string_view text);
  Value root() const { return {*this, 0}; }

 private:
  template <class Whole>
  static std::optional<Whole> whole_in(std::string_view spelt) {
    Whole number = 0;
    const auto [end, error] = std::from_chars(spelt.data(), spelt.data() + spelt.size(), number);
    return error == std::errc() && end == spelt.data() + spelt.size() ? std::optional(number) : std::nullopt;
  }

  friend class JsonNodesParser;
  struct Node {
    std::string_view text;    // of a text without its quotes
    std::uint32_t after = 0;  // the node behind it and all within it
    std::uint32_t count = 0;
    Kind kind = Kind::null;
    bool has_escapes = false;
    bool is_replaced = false;  // a name that stands again further on
  };
  std::vector<Node> nodes_;  // in the order of the text; a member is its name and its value
};

}  // namespace assay::host
