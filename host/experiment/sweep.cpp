#include "experiment/sweep.hpp"

#include "common/suggest.hpp"
#include "experiment/overrides.hpp"
#include "experiment/presets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

}  // namespace

bool SweepPlan::sweeps(const std::string& key) const {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
    return std::find(axis.keys.begin(), axis.keys.end(), key) != axis.keys.end();
  });
}

std::vector<Case> expand(const SweepPlan& plan, const Case& base, const Vocabulary& vocabulary) {
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
    const auto equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      mistakes.add(place, "no key and value; expected key=value, as in size=small");
      continue;
    }
    const std::string key = plain_key(argument.substr(0, equals));
    if (!vocabulary.knows(key)) {
      mistakes.add(place, vocabulary.unknown_key(key, ""));
      continue;
    }
    const std::string raw = argument.substr(equals + 1);
    const std::string wanted = vocabulary.filter_text(key, raw);
    const auto differs = [&](const Case& c) {
      const auto value = c.find(key);
      return !value || (to_text(*value) != wanted && to_text(*value) != raw);
    };
    if (std::all_of(cases.begin(), cases.end(), differs)) {
      const auto values = values_of(key, cases);
      mistakes.add(place, fmt::format("no case has {} = {}; expected one of {}{}", key, raw, fmt::join(values, ", "),
                                      did_you_mean(raw, values)));
      continue;
    }
    const bool some_before = !kept.empty();
    std::erase_if(kept, differs);
    if (some_before && kept.empty())
      mistakes.add(place, "no case matches this and the filters before it; expected filters that some case matches");
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
