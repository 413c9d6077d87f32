#include "compare/matching.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace assay::host::compare {
namespace {

using Keys = std::set<std::string>;

// A comparison may be about devices, so this setting matches no cases, unless a sweep over devices distinguishes them.
constexpr const char* kDevice = "run.device";

// How many threads there were may differ between runs of one experiment: only an axis distinguishes cases by it.
Keys varied_keys(const std::vector<SideCase>& cases) {
  std::map<std::string, Keys> values;
  for (const SideCase& c : cases) {
    for (const std::string& key : c.inputs.keys())
      if (const auto value = c.inputs.value(key); value && (key != threads_key || c.inputs.is_axis(key)))
        values[key].insert(*value);
  }
  Keys varied;
  for (const auto& [key, seen] : values)
    if (seen.size() > 1) varied.insert(key);
  return varied;
}

// The ranks of a machine share its processors: where they differ in number, so do the threads that each has.
bool threads_follow_from_ranks(const CaseInputs& a, const CaseInputs& b) {
  return a.threads_follow_from_ranks() && b.threads_follow_from_ranks() &&
         a.value(record::ranks_axis) != b.value(record::ranks_axis);
}

struct Agreement {
  bool same_case = true;            // the same workload (or across it), and equal where a side varies
  std::vector<std::string> differ;  // "key a / b": other inputs that both know
  std::vector<std::string> differing_keys;
  std::vector<std::string> only_first, only_second;  // "key=value": what one of both does not say
};

Agreement agreement(const SideCase& a, const SideCase& b, const Keys& varied, const MatchRules& rules) {
  Agreement result;
  result.same_case = a.inputs.workload() == b.inputs.workload() || rules.across.count(across_workloads);
  Keys keys = a.inputs.keys();
  keys.insert(b.inputs.keys().begin(), b.inputs.keys().end());
  keys.insert(varied.begin(), varied.end());
  for (const std::string& key : keys) {
    if (rules.across.count(key) || (key == record::ranks_axis && rules.any_ranks)) continue;
    if (key == kDevice && !varied.count(key)) continue;
    if (key == threads_key && !varied.count(key) && threads_follow_from_ranks(a.inputs, b.inputs)) continue;
    const auto of_a = a.inputs.value(key), of_b = b.inputs.value(key);
    if (of_a && of_b && *of_a != *of_b) {
      if (varied.count(key)) result.same_case = false;
      result.differ.push_back(fmt::format("{} {} / {}", key, *of_a, *of_b));
      result.differing_keys.push_back(key);
    } else if (of_a.has_value() != of_b.has_value()) {
      if (key == threads_key && !(of_a ? b : a).inputs.may_say_threads()) continue;
      // An empty text is a path or a name that was not given.
      if (const std::string& value = of_a ? *of_a : *of_b; !value.empty())
        (of_a ? result.only_first : result.only_second).push_back(fmt::format("{}={}", key, value));
    }
  }
  return result;
}

// The keys that have to agree for two cases to be one: those that vary in a side, less what the user lets differ.
Keys telling_keys(const Keys& varied, const MatchRules& rules) {
  Keys telling;
  for (const std::string& key : varied)
    if (!rules.across.count(key) && !(key == record::ranks_axis && rules.any_ranks)) telling.insert(key);
  return telling;
}

// A number for each value, so that cases are compared without their texts.
class Numbered {
 public:
  // The value of each key, in their order; none where the case does not say.
  using Numbers = std::vector<std::optional<std::size_t>>;

  explicit Numbered(const Keys& keys) : keys_(keys) {}
  Numbers numbers_of(const SideCase& c) {
    Numbers numbers;
    for (const std::string& key : keys_) {
      const std::optional<std::string> value = c.inputs.value(key);
      numbers.push_back(value ? std::optional(numbers_.emplace(*value, numbers_.size()).first->second) : std::nullopt);
    }
    return numbers;
  }

 private:
  Keys keys_;
  std::map<std::string, std::size_t> numbers_;
};

// The cases of a side by their numbers: of thousands the few that may be a given case are found without a look at each.
class Candidates {
 public:
  void add(Numbered::Numbers numbers) {
    const std::size_t place = all_.size();
    if (says_all(numbers))
      by_numbers_[numbers].push_back(place);
    else
      incomplete_.push_back(place);
    all_.push_back(std::move(numbers));
  }
  // Their places, in order.
  std::vector<std::size_t> of(const Numbered::Numbers& a) const {
    std::vector<std::size_t> found;
    const auto take = [&](std::size_t place) {
      if (may_be_one(a, all_[place])) found.push_back(place);
    };
    if (!says_all(a)) {
      for (std::size_t place = 0; place < all_.size(); ++place) take(place);
      return found;
    }
    if (const auto same = by_numbers_.find(a); same != by_numbers_.end()) found = same->second;
    std::for_each(incomplete_.begin(), incomplete_.end(), take);
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  static bool says_all(const Numbered::Numbers& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](const auto& number) { return number.has_value(); });
  }
  // No number that both have differs.
  static bool may_be_one(const Numbered::Numbers& a, const Numbered::Numbers& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] && b[i] && *a[i] != *b[i]) return false;
    return true;
  }

  std::vector<Numbered::Numbers> all_;
  std::map<Numbered::Numbers, std::vector<std::size_t>> by_numbers_;
  std::vector<std::size_t> incomplete_;
};

// What several candidates differ in among themselves.
std::string difference_among(const std::vector<const SideCase*>& cases) {
  Keys keys;
  for (const SideCase* c : cases) keys.insert(c->inputs.keys().begin(), c->inputs.keys().end());
  std::vector<std::string> texts;
  for (const std::string& key : keys) {
    std::vector<std::string> values;
    for (const SideCase* c : cases) {
      const std::string value = c->inputs.value(key).value_or("not said");
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    if (values.size() > 1) texts.push_back(fmt::format("{} ({})", key, fmt::join(values, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string refusal(const Agreement& agreement) {
  const auto& keys = agreement.differing_keys;
  const bool ranks_alone = keys.size() == 1 && keys[0] == record::ranks_axis;
  return fmt::format("other {}: {}; compare all the same with {}", ranks_alone ? "number of ranks" : "inputs",
                     fmt::join(agreement.differ, ", "),
                     ranks_alone ? "--any" : fmt::format("--across {}", fmt::join(keys, ",")));
}

}  // namespace

Matches match_cases(const std::vector<SideCase>& baseline, const std::vector<SideCase>& other,
                    const MatchRules& rules) {
  Keys varied = varied_keys(baseline);
  varied.merge(varied_keys(other));
  Matches matches;
  std::map<const SideCase*, std::vector<std::size_t>> users;  // cases of the baseline that found the same case
  std::set<const SideCase*> named;
  Numbered numbered(telling_keys(varied, rules));
  Candidates candidates;
  for (const SideCase& b : other) candidates.add(numbered.numbers_of(b));
  for (const SideCase& a : baseline) {
    Match match;
    std::vector<const SideCase*> found;
    const SideCase* nearest = nullptr;
    Agreement of_found, of_nearest;
    for (const std::size_t place : candidates.of(numbered.numbers_of(a))) {
      const SideCase& b = other[place];
      Agreement now = agreement(a, b, varied, rules);
      if (!now.same_case) continue;
      if (now.differ.empty()) {
        found.push_back(&b);
        of_found = std::move(now);
      } else if (!nearest || now.differ.size() < of_nearest.differ.size()) {
        nearest = &b;
        of_nearest = std::move(now);
      }
    }
    if (found.size() == 1) {
      match = {Match::Kind::found, found.front(), "", of_found.only_first, of_found.only_second};
      users[found.front()].push_back(matches.of_baseline.size());
    } else if (found.size() > 1) {
      match = {Match::Kind::refused,
               nullptr,
               fmt::format("{} cases could be meant, which differ in {}", found.size(), difference_among(found)),
               {}};
    } else if (nearest) {
      match = {Match::Kind::refused, nearest, refusal(of_nearest), {}, {}};
      named.insert(nearest);
    }
    named.insert(found.begin(), found.end());
    matches.of_baseline.push_back(std::move(match));
  }
  for (const auto& [b, places] : users) {
    if (places.size() < 2) continue;
    std::vector<const SideCase*> rivals;
    for (const std::size_t place : places) rivals.push_back(&baseline[place]);
    for (const std::size_t place : places)
      matches.of_baseline[place] = {Match::Kind::refused,
                                    nullptr,
                                    fmt::format("{} cases of the baseline could be meant, which differ in {}",
                                                places.size(), difference_among(rivals)),
                                    {},
                                    {}};
  }
  for (const SideCase& b : other)
    if (!named.count(&b)) matches.only_other.push_back(&b);
  return matches;
}

}  // namespace assay::host::compare
