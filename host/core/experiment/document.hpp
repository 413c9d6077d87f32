// A TOML text as a tree that keeps what validation needs: the order of the file and the place of every key and value.
#pragma once
#include "common/value.hpp"
#include "experiment/mistake.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::experiment {

struct TableMember;

struct Node {
  enum class Kind { scalar, array, table, other };  // other: a date or a time, which no setting takes

  Kind kind = Kind::other;
  Place place;
  Value value;                   // of a scalar; the text as written of an `other`
  std::optional<Value> as_text;  // of a scalar of the command line that is no text: what was typed, for who wants one
  std::vector<Node> elements;    // of an array
  std::vector<TableMember> members;  // of a table, in the file's order

  bool is_table() const { return kind == Kind::table; }
  bool is_array() const { return kind == Kind::array; }
  const TableMember* find(std::string_view key) const;
  TableMember* find(std::string_view key);
  std::string shown() const;  // for a message: -3, 4.0, "small", an array, a table
};

struct TableMember {
  std::string key;
  Place place;  // of the key
  Node node;
};

std::string shown(const Value& value);

// The tree of a file's text. Tables in [workload.params], [sweep], [[sweep.zip]] and [[sweep.exclude]] are flattened
// into dotted keys, so that `measure.warmup = [1]` and `"measure.warmup" = [1]` are the same; the ranges of axes
// (range.hpp) stay tables. Nothing when it is not TOML.
std::optional<Node> parse_document(std::string_view text, const std::string& file, Mistakes& mistakes);

// The value of `--set key=value`: TOML, or a bare word as a string. `place` becomes that of every node in it.
std::optional<Node> parse_argument(std::string_view text, const Place& place, Mistakes& mistakes);

}  // namespace assay::host::experiment
