// From the tree of [sweep] to a SweepPlan.
#include "common/suggest.hpp"
#include "experiment/overrides.hpp"
#include "experiment/range.hpp"
#include "experiment/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace assay::host::experiment {
namespace {

class SweepReader {
 public:
  SweepReader(const std::vector<TableMember>& fixed, const std::set<std::string>& set_keys,
              const Vocabulary& vocabulary, Mistakes& mistakes)
      : fixed_(fixed), set_keys_(set_keys), vocabulary_(vocabulary), mistakes_(mistakes) {}

  SweepPlan read(const Node& sweep) {
    if (!sweep.is_table()) {
      mistakes_.add(sweep.place, fmt::format("sweep is {}; expected a table [sweep] of axes", sweep.shown()));
      return {};
    }
    for (const auto& member : sweep.members)
      if (member.key != "zip" && member.key != "exclude") read_axis(member);
    for (const Node* group : groups_of(sweep, "zip")) read_zip(*group);
    check_size(sweep);
    for (const Node* group : groups_of(sweep, "exclude")) read_exclusion(*group);
    return std::move(plan_);
  }

 private:
  std::vector<const Node*> groups_of(const Node& sweep, const char* key) {
    std::vector<const Node*> groups;
    const TableMember* member = sweep.find(key);
    if (!member) return groups;
    if (!member->node.is_array()) {
      mistakes_.add(member->place, fmt::format("[sweep] {} is {}; expected an array of tables: write [[sweep.{}]]", key,
                                               member->node.shown(), key));
      return groups;
    }
    for (const auto& group : member->node.elements) {
      if (group.is_table() && !group.members.empty())
        groups.push_back(&group);
      else
        mistakes_.add(group.place, fmt::format("[[sweep.{}]] is {}; expected at least one key", key,
                                               group.is_table() ? "empty" : group.shown()));
    }
    return groups;
  }

  // The key in its plain form, if it can be swept here; nothing also when only the missing schema could know it.
  std::optional<std::string> axis_key(const TableMember& member, const char* section) {
    const std::string key = plain_key(member.key);
    const bool is_known = known(key, member.place, section);
    if (!is_known && vocabulary_.can_judge(key)) return std::nullopt;
    const auto [seen, first] = axis_places_.emplace(key, member.place);
    if (!first) {
      mistakes_.add(member.place, fmt::format("'{}' in {} is swept a second time (first {}); expected each axis once",
                                              key, section, where(seen->second)));
      return std::nullopt;
    }
    const auto fixed = std::find_if(fixed_.begin(), fixed_.end(), [&](const TableMember& m) { return m.key == key; });
    if (fixed != fixed_.end()) {
      mistakes_.add(member.place,
                    fmt::format("'{}' in {} also has a fixed value in [workload.params] ({}); expected one of the two",
                                key, section, where(fixed->place)));
      return std::nullopt;
    }
    return is_known ? std::optional(key) : std::nullopt;
  }

  static std::string where(const Place& place) {
    return place.line > 0 ? fmt::format("line {}", place.line) : place.source;
  }

  bool known(const std::string& key, const Place& place, const char* section) {
    if (vocabulary_.knows(key)) return true;
    if (!vocabulary_.can_judge(key)) return false;
    mistakes_.add(place, vocabulary_.unknown_key(key, section));
    return false;
  }

  // What stands for an axis: how many values the file gives it, and those of them that are sound and of a known key.
  struct AxisValues {
    std::size_t count = 0;
    std::vector<Value> sound;
    bool whole() const { return sound.size() == count; }
  };

  // Nothing when it is neither a filled array nor a range.
  std::optional<AxisValues> read_values(const TableMember& member, const std::optional<std::string>& key,
                                        const char* section) {
    const Node& node = member.node;
    const std::string label = fmt::format("{} {}", section, member.key);
    if (node.is_table()) return read_range_values(node, key, label);
    if (!node.is_array()) {
      const std::string shown = node.shown();
      const std::size_t dots = shown.find("..");
      const bool looks_like_range =
          dots != std::string::npos && dots > 0 && std::isdigit(static_cast<unsigned char>(shown[dots - 1]));
      mistakes_.add(node.place,
                    looks_like_range
                        ? fmt::format("{0} is {1}; expected a range as in {2} = {{ min = 32, max = 256, factor = 2 }}, "
                                      "or with step in place of factor",
                                      label, node.shown(), member.key)
                        : fmt::format("{} is {}; expected an array of values, as in {} = [{}]", label, node.shown(),
                                      member.key, node.shown()));
      return std::nullopt;
    }
    if (node.elements.empty()) {
      mistakes_.add(node.place, fmt::format("{} is an empty array; expected at least one value", label));
      return std::nullopt;
    }
    AxisValues values{node.elements.size(), {}};
    if (!key) return values;
    for (const auto& element : node.elements)
      if (auto value = vocabulary_.check(*key, element, label, mistakes_)) values.sound.push_back(std::move(*value));
    return values;
  }

  std::optional<AxisValues> read_range_values(const Node& node, const std::optional<std::string>& key,
                                              const std::string& label) {
    const auto range = read_range(node, label, mistakes_);
    if (!range) return std::nullopt;
    AxisValues values{range->size(), {}};
    if (!key) return values;
    Node element;
    element.kind = Node::Kind::scalar;
    element.place = node.place;
    for (const Value& value : *range) {
      element.value = value;
      auto checked = vocabulary_.check(*key, element, label, mistakes_);
      if (!checked) return values;  // the first says it: the rest are of the same making
      values.sound.push_back(std::move(*checked));
    }
    return values;
  }

  void read_axis(const TableMember& member) {
    const auto key = axis_key(member, "[sweep]");
    const auto values = read_values(member, key, "[sweep]");
    if (!key || !values || !values->whole()) return;
    for (auto value = values->sound.begin(); value != values->sound.end(); ++value)
      if (std::find(values->sound.begin(), value, *value) != value) {
        mistakes_.add(member.node.place,
                      fmt::format("[sweep] {} has {} twice; expected each value once ([run] repeat runs each case "
                                  "several times)",
                                  member.key, to_text(*value)));
        return;
      }
    Axis axis{{*key}, {}, false};
    for (const auto& value : values->sound) axis.rows.push_back({value});
    plan_.axes.push_back(std::move(axis));
  }

  void read_zip(const Node& group) {
    Axis axis;
    axis.zipped = true;
    const TableMember* first = nullptr;
    bool whole = true;
    for (const auto& member : group.members) {
      const auto key = axis_key(member, "[[sweep.zip]]");
      const auto values = read_values(member, key, "[[sweep.zip]]");
      if (!values) {
        whole = false;
        continue;
      }
      if (!first) {
        first = &member;
        axis.rows.resize(values->count);
      } else if (values->count != axis.rows.size()) {
        mistakes_.add(
            member.node.place,
            fmt::format("[[sweep.zip]] {} has {} value{} and {} has {}; expected the same number: the keys of a "
                        "group move together",
                        member.key, values->count, values->count == 1 ? "" : "s", first->key, axis.rows.size()));
        whole = false;
        continue;
      }
      if (!key || !values->whole()) {
        whole = false;
        continue;
      }
      axis.keys.push_back(*key);
      for (std::size_t i = 0; i < values->count; ++i) axis.rows[i].push_back(values->sound[i]);
    }
    if (whole) plan_.axes.push_back(std::move(axis));
  }

  void check_size(const Node& sweep) {
    double count = 1;
    for (const auto& axis : plan_.axes) count *= static_cast<double>(axis.rows.size());
    if (count <= static_cast<double>(most_cases)) return;
    mistakes_.add(sweep.place, fmt::format("[sweep] has {:.0f} cases, more than {}; expected fewer: sweep fewer values",
                                           count, most_cases));
  }

  void read_exclusion(const Node& group) {
    Exclusion exclusion;
    bool can_match = true;
    for (const auto& member : group.members) {
      const std::string key = plain_key(member.key);
      if (!known(key, member.place, "[[sweep.exclude]]")) continue;
      const auto value = vocabulary_.check(key, member.node, "[[sweep.exclude]] " + member.key, mistakes_);
      if (!value) continue;
      can_match = is_on_axis(key, *value, member.node.place) && can_match;
      exclusion.emplace_back(key, *value);
    }
    plan_.exclude_place = group.place;
    if (can_match) plan_.exclusions.push_back(std::move(exclusion));
  }

  // False when `key` is swept without `value`: a mistake, unless the axis was changed on the command line.
  bool is_on_axis(const std::string& key, const Value& value, const Place& place) {
    for (const auto& axis : plan_.axes) {
      const auto at = std::find(axis.keys.begin(), axis.keys.end(), key);
      if (at == axis.keys.end()) continue;
      const auto column = static_cast<std::size_t>(at - axis.keys.begin());
      std::vector<std::string> values;
      for (const auto& row : axis.rows) {
        if (row[column] == value) return true;
        values.push_back(to_text(row[column]));
      }
      if (!set_keys_.count(key))
        mistakes_.add(place,
                      fmt::format("[[sweep.exclude]] {} is {}, which its axis does not have; expected one of {}{}", key,
                                  shown(value), fmt::join(values, ", "), did_you_mean(to_text(value), values)));
      return false;
    }
    return true;
  }

  const std::vector<TableMember>& fixed_;
  const std::set<std::string>& set_keys_;
  const Vocabulary& vocabulary_;
  Mistakes& mistakes_;
  SweepPlan plan_;
  std::map<std::string, Place> axis_places_;
};

}  // namespace

SweepPlan read_sweep(const Node* sweep, const std::vector<TableMember>& fixed, const std::set<std::string>& set_keys,
                     const Vocabulary& vocabulary, Mistakes& mistakes) {
  return sweep ? SweepReader(fixed, set_keys, vocabulary, mistakes).read(*sweep) : SweepPlan{};
}

}  // namespace assay::host::experiment
