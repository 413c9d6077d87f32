#include "experiment/sweep.hpp"

#include "common/filter.hpp"
#include "common/suggest.hpp"
#include "experiment/overrides.hpp"
#include "experiment/presets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace assay::host::experiment {
namespace {

bool excluded(const Case& c, const std::vector<Exclusion>& exclusions) {
  return std::any_of(exclusions.begin(), exclusions.end(), [&](const Exclusion& exclusion) {
    return std::all_of(exclusion.begin(), exclusion.end(),
                       [&](const auto& entry) { return c.find(entry.first) == entry.second; });
  });
}

// The distinct values of `key` over the cases, as far as a message has room for them.
std::vector<std::string> values_of(const std::string& key, const std::vector<Case>& cases) {
  std::vector<std::string> values;
  for (const auto& c : cases) {
    const auto value = c.find(key);
    if (!value) continue;
    auto text = to_text(*value);
    if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(std::move(text));
    if (values.size() == 20) break;
  }
  return values;
}

// A number as a case says it; nothing of a text and of what is on or off.
std::optional<double> number_of(const std::optional<Value>& value) {
  if (!value) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&*value);
  return real ? std::optional(*real) : std::nullopt;
}

// A filter over cases, whose values may be written in more than one way: 1e-3 is 0.001.
class CaseFilter {
 public:
  CaseFilter(Filter filter, const Vocabulary& vocabulary)
      : filter_(std::move(filter)), key_(plain_key(filter_.key)), whole_(spellings(filter_.raw, vocabulary)) {
    for (const std::string& value : filter_.values) listed_.push_back(spellings(value, vocabulary));
  }

  const std::string& key() const { return key_; }

  bool matches(const Case& c) const {
    const auto value = c.find(key_);
    if (filter_.is_ordering()) {
      const auto number = number_of(value);
      return number && filter_.holds(*number);
    }
    return is_named(value) == (filter_.relation == Relation::equal);
  }

  // Why it cannot be meant; "" where it can.
  std::string problem(const std::vector<Case>& cases, const Vocabulary& vocabulary) const {
    if (!vocabulary.knows(key_)) return vocabulary.unknown_key(key_, "");
    const std::vector<std::string> values = values_of(key_, cases);
    const auto none = [&](auto&& is_meant) { return std::none_of(cases.begin(), cases.end(), is_meant); };
    if (filter_.is_ordering()) {
      if (none([&](const Case& c) { return number_of(c.find(key_)).has_value(); }))
        return fmt::format("{} is no number here, so it has no order; expected = or != and one of {}", key_,
                           fmt::join(values, ", "));
      return none([&](const Case& c) { return matches(c); })
                 ? fmt::format("no case has this; {} is {}", key_, fmt::join(values, ", "))
                 : "";
    }
    if (!none([&](const Case& c) { return is_one_of(c.find(key_), whole_); })) return "";
    for (std::size_t i = 0; i < listed_.size(); ++i)
      if (none([&](const Case& c) { return is_one_of(c.find(key_), listed_[i]); }))
        return fmt::format("no case has {} = {}{}", key_, filter_.values[i], known_instead(filter_.values[i], values));
    return "";
  }

 private:
  using Spellings = std::array<std::string, 2>;  // as it was given, and as its kind of value is written
  Spellings spellings(const std::string& text, const Vocabulary& vocabulary) const {
    return {text, vocabulary.filter_text(key_, text)};
  }
  static bool is_one_of(const std::optional<Value>& value, const Spellings& texts) {
    return value && std::find(texts.begin(), texts.end(), to_text(*value)) != texts.end();
  }
  // A value that has a comma itself is meant as a whole.
  bool is_named(const std::optional<Value>& value) const {
    return is_one_of(value, whole_) ||
           std::any_of(listed_.begin(), listed_.end(), [&](const Spellings& texts) { return is_one_of(value, texts); });
  }

  Filter filter_;
  std::string key_;
  Spellings whole_;
  std::vector<Spellings> listed_;
};

}  // namespace

bool SweepPlan::sweeps(const std::string& key) const {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
    return std::find(axis.keys.begin(), axis.keys.end(), key) != axis.keys.end();
  });
}

std::vector<Case> expand(const SweepPlan& plan, const Case& base, const Vocabulary& vocabulary, ModelFiles& files) {
  std::vector<Case> cases;
  std::vector<std::size_t> row(plan.axes.size(), 0);
  while (true) {
    Case next = base;
    for (std::size_t a = 0; a < plan.axes.size(); ++a) {
      const Axis& axis = plan.axes[a];
      for (std::size_t k = 0; k < axis.keys.size(); ++k) {
        const Value& value = axis.rows[row[a]][k];
        vocabulary.set(next, axis.keys[k], value);
        next.axes.emplace_back(axis.keys[k], value);
      }
    }
    files.apply(*vocabulary.schema(), next);
    apply_presets(*vocabulary.schema(), "", next);
    if (!excluded(next, plan.exclusions)) {
      next.index = static_cast<std::int64_t>(cases.size());
      cases.push_back(std::move(next));
    }
    std::size_t a = plan.axes.size();
    while (a > 0 && ++row[a - 1] == plan.axes[a - 1].rows.size()) row[--a] = 0;
    if (a == 0) return cases;
  }
}

void filter_cases(std::vector<Case>& cases, const std::vector<std::string>& arguments, int first_position,
                  const Vocabulary& vocabulary, Mistakes& mistakes) {
  int position = first_position;
  std::vector<Case> kept = cases;
  for (const auto& argument : arguments) {
    const Place place{"--filter " + argument, 0, position++};
    try {
      const CaseFilter filter(parse_filter(argument, "key"), vocabulary);
      if (const std::string problem = filter.problem(cases, vocabulary); !problem.empty()) {
        mistakes.add(place, problem);
        continue;
      }
      const std::vector<std::string> before = values_of(filter.key(), kept);
      const bool some_before = !kept.empty();
      std::erase_if(kept, [&](const Case& c) { return !filter.matches(c); });
      if (some_before && kept.empty())
        mistakes.add(place, fmt::format("no case that is left has this; those have {} = {}", filter.key(),
                                        fmt::join(before, ", ")));
    } catch (const FilterSyntaxError& e) {
      mistakes.add(place, e.what());
    }
  }
  cases = std::move(kept);
}

std::vector<Case> repeated(const std::vector<Case>& cases, std::int64_t times, const std::string& order) {
  if (times == 1) return cases;
  std::vector<Case> all;
  const auto add = [&all](const Case& c, std::int64_t repeat) {
    all.push_back(c);
    all.back().repeat = repeat;
  };
  if (order == "together") {
    for (const Case& c : cases)
      for (std::int64_t repeat = 1; repeat <= times; ++repeat) add(c, repeat);
  } else {
    for (std::int64_t repeat = 1; repeat <= times; ++repeat)
      for (const Case& c : cases) add(c, repeat);
  }
  return all;
}

}  // namespace assay::host::experiment
