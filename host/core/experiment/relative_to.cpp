#include "experiment/relative_to.hpp"

#include "common/suggest.hpp"
#include "experiment/overrides.hpp"
#include "record/columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay::host::experiment {
namespace {

class Reader {
 public:
  Reader(const Node* sweep, const SweepPlan& plan, const std::set<std::string>& set_keys, const Vocabulary& vocabulary,
         Mistakes& mistakes)
      : sweep_(sweep), plan_(plan), set_keys_(set_keys), vocabulary_(vocabulary), mistakes_(mistakes) {}

  void read(const Node& table, const std::string& prefix = "") {
    for (const TableMember& member : table.members) {
      const std::string key = plain_key(prefix + member.key);
      // `measure.warmup = 0` without quotes is a table in the table.
      if (member.node.is_table() && !member.node.members.empty() && !axis_of(key))
        read(member.node, key + ".");
      else
        read_axis(key, member);
    }
  }

  // Adds the keys of the named ones' [[sweep.zip]], as far as their value is decided.
  void add_companions() {
    const std::vector<Named> named = named_;
    for (const Named& entry : named) {
      const Axis& axis = *axis_of(entry.key);
      if (std::none_of(axis.rows.begin(), axis.rows.end(), [&](const auto& row) { return fits(axis, row); })) {
        mistakes_.add(entry.place, fmt::format("[output] relative_to {} = {} has other values beside it than in its "
                                               "[[sweep.zip]]; expected values that stand together there",
                                               entry.key, shown(entry.value)));
        return;
      }
      for (std::size_t k = 0; k < axis.keys.size(); ++k) {
        if (find(axis.keys[k])) continue;
        std::vector<Value> values;
        for (const auto& row : axis.rows)
          if (fits(axis, row) && std::find(values.begin(), values.end(), row[k]) == values.end())
            values.push_back(row[k]);
        if (values.size() == 1) {
          named_.push_back({axis.keys[k], values.front(), entry.place});
        } else if (values.size() > 1) {
          std::vector<std::string> texts;
          for (const Value& value : values) texts.push_back(shown(value));
          mistakes_.add(entry.place,
                        fmt::format("[output] relative_to {} = {} stands in several places of its [[sweep.zip]]; "
                                    "expected {} beside it, one of {}",
                                    entry.key, shown(entry.value), axis.keys[k], fmt::join(texts, ", ")));
        }
      }
    }
  }

  bool is_gone() const { return is_gone_; }
  std::vector<std::pair<std::string, Value>> take() const {
    std::vector<std::pair<std::string, Value>> result;
    for (const Named& entry : named_) result.emplace_back(entry.key, entry.value);
    return result;
  }

 private:
  struct Named {
    std::string key;
    Value value;
    Place place;
  };

  const Axis* axis_of(const std::string& key) const {
    for (const Axis& axis : plan_.axes)
      if (std::find(axis.keys.begin(), axis.keys.end(), key) != axis.keys.end()) return &axis;
    return nullptr;
  }

  const Named* find(const std::string& key) const {
    const auto found = std::find_if(named_.begin(), named_.end(), [&](const Named& n) { return n.key == key; });
    return found == named_.end() ? nullptr : &*found;
  }

  // Does the row of the axis have the values that are named?
  bool fits(const Axis& axis, const std::vector<Value>& row) const {
    for (std::size_t k = 0; k < axis.keys.size(); ++k)
      if (const Named* named = find(axis.keys[k]); named && named->value != row[k]) return false;
    return true;
  }

  bool is_written_in_sweep(const std::string& key) const {
    const auto has = [&](const Node& table) {
      return std::any_of(table.members.begin(), table.members.end(),
                         [&](const TableMember& member) { return plain_key(member.key) == key; });
    };
    if (!sweep_) return false;
    const TableMember* zip = sweep_->find("zip");
    return has(*sweep_) || (zip && std::any_of(zip->node.elements.begin(), zip->node.elements.end(), has));
  }

  void read_axis(const std::string& key, const TableMember& member) {
    const Axis* axis = axis_of(key);
    if (!axis) {
      if (is_written_in_sweep(key)) return;
      std::vector<std::string> keys;
      for (const Axis& known : plan_.axes) keys.insert(keys.end(), known.keys.begin(), known.keys.end());
      mistakes_.add(member.place, fmt::format("[output] relative_to has '{}', which is not swept; expected {}{}", key,
                                              keys.empty() ? "an axis of [sweep], and there is none"
                                                           : fmt::format("an axis: {}", fmt::join(keys, ", ")),
                                              did_you_mean(key, keys)));
      return;
    }
    const auto value = vocabulary_.check(key, member.node, fmt::format("[output] relative_to {}", key), mistakes_);
    if (!value) return;
    if (find(key))
      return mistakes_.add(member.place, fmt::format("[output] relative_to has '{}' twice; expected it once", key));
    const auto column =
        static_cast<std::size_t>(std::find(axis->keys.begin(), axis->keys.end(), key) - axis->keys.begin());
    std::vector<std::string> texts;
    for (const auto& row : axis->rows) {
      if (row[column] == *value) {
        named_.push_back({key, *value, member.place});
        return;
      }
      texts.push_back(to_text(row[column]));
    }
    is_gone_ = true;
    if (!set_keys_.count(key))
      mistakes_.add(member.node.place,
                    fmt::format("[output] relative_to {} is {}, which its axis does not have; expected one of {}{}",
                                key, shown(*value), fmt::join(texts, ", "), did_you_mean(to_text(*value), texts)));
  }

  const Node* sweep_;
  const SweepPlan& plan_;
  const std::set<std::string>& set_keys_;
  const Vocabulary& vocabulary_;
  Mistakes& mistakes_;
  std::vector<Named> named_;
  bool is_gone_ = false;
};

}  // namespace

void read_relative_to(const Node& table, const Node* sweep, const SweepPlan& plan,
                      const std::set<std::string>& set_keys, const Vocabulary& vocabulary, OutputSettings& output,
                      Mistakes& mistakes) {
  if (!table.is_table()) return;
  Reader reader(sweep, plan, set_keys, vocabulary, mistakes);
  reader.read(table);
  reader.add_companions();
  if (!reader.is_gone()) {
    output.relative_to = reader.take();
    return;
  }
  std::erase_if(output.columns, [](const std::string& column) {
    return column == record::speedup_column || record::column_of_ratio(column).has_value();
  });
}

}  // namespace assay::host::experiment
