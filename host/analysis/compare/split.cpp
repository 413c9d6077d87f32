#include "compare/split.hpp"

#include "common/suggest.hpp"
#include "compare/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace assay::host::compare {
namespace {

using Texts = std::vector<std::string>;

bool holds(const Texts& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

void add_once(Texts& texts, const std::string& text) {
  if (!holds(texts, text)) texts.push_back(text);
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

bool is_same_value(const std::string& a, const std::string& b) {
  const auto x = number_of(a), y = number_of(b);
  return a == b || (x && y && *x == *y);
}

// "graph", and "warmup=5": a bare number is no name of a side.
std::string value_label(const std::string& key, const std::string& value) {
  const bool is_word = !value.empty() && !number_of(value) && value != "true" && value != "false";
  return is_word ? value : fmt::format("{}={}", key.substr(key.rfind('.') + 1), value);
}

struct SplitCase {
  std::size_t run;
  const record::CaseRecord* record;
  CaseInputs inputs;
};

// What one case has for the keys; nothing when it does not say one of them.
std::optional<Texts> values_of(const CaseInputs& inputs, const Texts& keys) {
  Texts values;
  for (const std::string& key : keys) {
    const auto value = inputs.value(key);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

class Splitter {
 public:
  Splitter(const Side& side, const SplitRules& rules) : side_(side), rules_(rules) {
    for (const std::string& key : rules.keys) add_once(keys_, key);
    for (std::size_t run = 0; run < side.runs.size(); ++run) add_cases(run);
    find_inputs();
  }

  SplitSide split() {
    for (const std::string& key : keys_) check_key(key);
    std::size_t left_out = 0;
    for (const SplitCase& c : cases_) {
      const auto values = values_of(c.inputs, keys_);
      if (values && std::find(combinations_.begin(), combinations_.end(), *values) == combinations_.end())
        combinations_.push_back(*values);
      left_out += values ? 0 : 1;
    }
    if (combinations_.size() < 2)
      throw SplitError(fmt::format("--by {}: all cases that have it have the same value; what varies: {}",
                                   fmt::join(keys_, ","), varying_text()));
    const auto first = combinations_.begin() + static_cast<std::ptrdiff_t>(baseline_place());
    std::rotate(combinations_.begin(), first, first + 1);
    SplitSide result;
    result.across.insert(keys_.begin(), keys_.end());
    result.notes.push_back(fmt::format("the sides are cases of {}", side_.name));
    if (left_out > 0)
      result.notes.push_back(fmt::format("{} case{} left out, which do{} not say {}", left_out,
                                         left_out == 1 ? " is" : "s are", left_out == 1 ? "es" : "",
                                         fmt::join(keys_, " or ")));
    Texts moving;  // parameters that a value stands for, as the dimensions of a size
    for (const std::string& key : varying_) {
      if (holds(keys_, key)) continue;
      if (holds(axes_, key))
        judge_axis(key, result);
      else if (is_input(key) && moves_with_keys(key))
        moving.push_back(key);
    }
    result.across.insert(moving.begin(), moving.end());
    if (!moving.empty())
      result.notes.push_back(fmt::format("{} change{} with {}", fmt::join(moving, ", "), moving.size() == 1 ? "s" : "",
                                         fmt::join(keys_, ",")));
    for (const Texts& combination : combinations_) result.sides.push_back(side_with(combination));
    return result;
  }

 private:
  // In the order of the experiment: a case that was run again stands last in its file.
  void add_cases(std::size_t run) {
    std::vector<const record::CaseRecord*> records;
    for (const record::CaseRecord& record : side_.runs[run].records) records.push_back(&record);
    std::stable_sort(records.begin(), records.end(),
                     [](const auto* a, const auto* b) { return a->identity.index < b->identity.index; });
    for (const record::CaseRecord* record : records) cases_.push_back({run, record, CaseInputs(*record)});
  }

  // The axes, all that cases can say, and what of it varies: axes first.
  void find_inputs() {
    Texts others;
    for (const SplitCase& c : cases_) {
      const record::CaseIdentity& id = c.record->identity;
      for (const auto& axis : id.axes) add_once(axes_, axis.first);
      for (const record::Named<Value>* group : {&id.params, &id.settings})
        for (const auto& entry : *group) add_once(others, entry.first);
      if (id.ranks) add_once(others, record::ranks_axis);
      if (c.inputs.value(threads_key)) add_once(others, threads_key);
    }
    known_ = axes_;
    for (const std::string& key : others) add_once(known_, key);
    for (const std::string& key : known_) {
      std::set<std::string> values;
      for (const SplitCase& c : cases_)
        if (const auto value = c.inputs.value(key)) values.insert(*value);
      if (values.size() > 1) varying_.push_back(key);
    }
  }

  std::string varying_text() const {
    return varying_.empty() ? "nothing" : fmt::format("{}", fmt::join(varying_, ", "));
  }

  void check_key(const std::string& key) const {
    if (!holds(known_, key)) {
      const std::string hint = did_you_mean(key, varying_);
      throw SplitError(fmt::format("--by {}: no case has an input of this name; what varies: {}{}", key, varying_text(),
                                   hint.empty() ? did_you_mean(key, known_) : hint));
    }
    if (holds(varying_, key)) return;
    std::string value;
    for (const SplitCase& c : cases_)
      if (const auto found = c.inputs.value(key)) value = *found;
    throw SplitError(fmt::format("--by {0}: all cases have {0} = {1}; what varies: {2}", key, value, varying_text()));
  }

  std::size_t baseline_place() const {
    if (!rules_.baseline) return 0;
    const std::string& text = *rules_.baseline;
    Texts wanted{text};
    if (keys_.size() > 1) {
      wanted.clear();
      for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        wanted.push_back(text.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    Texts names;
    for (std::size_t i = 0; i < combinations_.size(); ++i) {
      const Texts& values = combinations_[i];
      if (std::equal(values.begin(), values.end(), wanted.begin(), wanted.end(), is_same_value)) return i;
      names.push_back(fmt::format("{}", fmt::join(values, ",")));
    }
    throw SplitError(fmt::format("--baseline is '{}'; expected {} of {}: {}{}", text,
                                 keys_.size() > 1 ? "the values" : "a value", fmt::join(keys_, ","),
                                 fmt::join(names, keys_.size() > 1 ? "; " : ", "), did_you_mean(text, names)));
  }

  // Settings that are no axis are listed as differences and do not block the comparison.
  bool is_input(const std::string& key) const {
    return std::any_of(cases_.begin(), cases_.end(),
                       [&](const SplitCase& c) { return c.inputs.keys().count(key) > 0; });
  }

  // What the sides have for the key, each value once.
  std::map<Texts, Texts> values_by_side(const std::string& key) const {
    std::map<Texts, Texts> values;
    for (const SplitCase& c : cases_)
      if (const auto of_keys = values_of(c.inputs, keys_))
        if (const auto value = c.inputs.value(key)) add_once(values[*of_keys], *value);
    return values;
  }

  bool moves_with_keys(const std::string& key) const {
    const auto values = values_by_side(key);
    return std::all_of(values.begin(), values.end(), [](const auto& side) { return side.second.size() == 1; });
  }

  // An axis that has one value for each side moves with the keys, as in a [[sweep.zip]]. One that has a single value on
  // some sides and several on others leaves cases without a partner.
  void judge_axis(const std::string& axis, SplitSide& result) const {
    const auto values = values_by_side(axis);
    Texts single;
    for (const Texts& combination : combinations_)
      if (const auto here = values.find(combination); here != values.end() && here->second.size() == 1)
        single.push_back(fmt::format("{} ({})", here->second.front(), label_of(combination)));
    if (moves_with_keys(axis)) {
      result.across.insert(axis);
      result.notes.push_back(fmt::format("{} moves with {}: {}", axis, fmt::join(keys_, ","), fmt::join(single, ", ")));
    } else if (!single.empty()) {
      Texts keys = keys_;
      keys.push_back(axis);
      result.notes.push_back(
          fmt::format("{} has one value for some sides, {}, and several for others: --by {} sets each of them against "
                      "the baseline",
                      axis, fmt::join(single, ", "), fmt::join(keys, ",")));
    }
  }

  std::string label_of(const Texts& combination) const {
    Texts texts;
    for (std::size_t i = 0; i < keys_.size(); ++i) texts.push_back(value_label(keys_[i], combination[i]));
    return fmt::format("{}", fmt::join(texts, ","));
  }

  Side side_with(const Texts& combination) const {
    Texts texts;
    for (std::size_t i = 0; i < keys_.size(); ++i) texts.push_back(fmt::format("{}={}", keys_[i], combination[i]));
    Side part{label_of(combination), fmt::format("{}", fmt::join(texts, ", ")), {}};
    for (std::size_t run = 0; run < side_.runs.size(); ++run) {
      const ComparedRun& whole = side_.runs[run];
      ComparedRun of_part{whole.path, {}, whole.environment, whole.experiment, whole.environments};
      for (const SplitCase& c : cases_)
        if (c.run == run && values_of(c.inputs, keys_) == combination) of_part.records.push_back(*c.record);
      if (!of_part.records.empty()) part.runs.push_back(std::move(of_part));
    }
    return part;
  }

  const Side& side_;
  const SplitRules& rules_;
  Texts keys_, axes_, known_, varying_;
  std::vector<SplitCase> cases_;
  std::vector<Texts> combinations_;
};

}  // namespace

SplitSide split_side(const Side& side, const SplitRules& rules) { return Splitter(side, rules).split(); }

}  // namespace assay::host::compare
