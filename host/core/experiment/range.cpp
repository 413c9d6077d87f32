#include "experiment/range.hpp"

#include "common/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace assay::host::experiment {
namespace {

const std::vector<std::string>& member_names() {
  static const std::vector<std::string> names{"min", "max", "factor", "step"};
  return names;
}

bool is_member_name(const std::string& key) {
  return std::find(member_names().begin(), member_names().end(), key) != member_names().end();
}

double as_double(const Value& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole ? static_cast<double>(*whole) : std::get<double>(value);
}

// The nearest number of 15 digits, as a person would write it: 0.3 for 0.1 + 0.2. Whole numbers stay as they are.
double as_written(double number) {
  return number == std::floor(number) ? number : std::strtod(fmt::format("{:.15g}", number).c_str(), nullptr);
}

struct Range {
  Value min, max, growth;
  bool by_factor = true;

  bool is_whole() const {
    return std::holds_alternative<std::int64_t>(min) && std::holds_alternative<std::int64_t>(max) &&
           std::holds_alternative<std::int64_t>(growth);
  }

  // One value more than allowed when there are too many.
  std::vector<Value> values() const { return is_whole() ? whole_values() : real_values(); }

  // Says how many values there are when they are too many to be listed, computed from the ends and the growth.
  std::string count_text() const {
    const double first = as_double(min), last = as_double(max), grows = as_double(growth);
    const double steps = by_factor ? std::log(last / first) / std::log(grows) : (last - first) / grows;
    return steps < 1e15 ? fmt::format("about {:.0f}", std::floor(steps + 1)) : fmt::format("about {:.1e}", steps);
  }

 private:
  std::vector<Value> whole_values() const {
    const auto last = std::get<std::int64_t>(max), grows = std::get<std::int64_t>(growth);
    std::vector<Value> values;
    auto next = std::get<std::int64_t>(min);
    while (values.size() <= most_range_values) {
      values.emplace_back(next);
      // Unsigned, for the distance of two integers may be larger than an integer.
      const auto left = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(next);
      const bool ends = by_factor ? next > last / grows : left < static_cast<std::uint64_t>(grows);
      if (ends) break;
      next = by_factor ? next * grows : next + grows;
    }
    return values;
  }

  std::vector<Value> real_values() const {
    const double first = as_double(min), last = as_double(max), grows = as_double(growth);
    // From the start each time, so that no rounding adds up.
    const auto nth = [&](std::size_t n) {
      const auto count = static_cast<double>(n);
      return as_written(by_factor ? first * std::pow(grows, count) : first + grows * count);
    };
    std::vector<Value> values;
    for (double next = first; next <= as_written(last) && values.size() <= most_range_values; next = nth(values.size()))
      values.emplace_back(next);
    return values;
  }
};

class RangeReader {
 public:
  RangeReader(const Node& table, const std::string& label, Mistakes& mistakes)
      : table_(table), label_(label), mistakes_(mistakes) {}

  std::optional<std::vector<Value>> read() {
    const std::size_t mistakes_before = mistakes_.size();
    refuse_unknown_members();
    refuse_missing_members();
    Range range;
    const auto min = number("min", "a number");
    const auto max = number("max", "a number");
    const auto factor = number("factor", "a number > 1", 1);
    const auto step = number("step", "a number > 0", 0);
    if (mistakes_.size() != mistakes_before) return std::nullopt;
    range = {*min, *max, factor ? *factor : *step, factor.has_value()};
    if (as_double(*min) > as_double(*max)) return wrong("min", fmt::format("min <= max, which is {}", shown(*max)));
    if (factor && as_double(*min) <= 0) return wrong("min", "a number > 0: no factor leads on from another; use step");
    auto values = range.values();
    if (values.size() <= most_range_values) return values;
    mistakes_.add(table_.place, fmt::format("{} is a range of {} values; expected {} at most: a larger {}", label_,
                                            range.count_text(), most_range_values, factor ? "factor" : "step"));
    return std::nullopt;
  }

 private:
  void refuse_unknown_members() {
    for (const auto& member : table_.members)
      if (!is_member_name(member.key))
        mistakes_.add(member.place,
                      fmt::format("unknown key '{}' in {}; known: {}{}", member.key, label_,
                                  fmt::join(member_names(), ", "), did_you_mean(member.key, member_names())));
  }

  void refuse_missing_members() {
    const bool factor = table_.find("factor"), step = table_.find("step");
    std::vector<std::string> missing;
    for (const char* name : {"min", "max"})
      if (!table_.find(name)) missing.emplace_back(name);
    if (!factor && !step) missing.emplace_back("factor (or step)");
    if (!missing.empty())
      mistakes_.add(table_.place, fmt::format("{} is a table without {}; expected an array of values, or a range as in "
                                              "{{ min = 1, max = 64, factor = 4 }}",
                                              label_, fmt::join(missing, ", ")));
    if (factor && step)
      mistakes_.add(table_.find("step")->place,
                    fmt::format("{} has both 'factor' and 'step'; expected one of them", label_));
  }

  // The finite number of a member, above `bound` where there is one; nothing when it is absent or wrong.
  std::optional<Value> number(const char* name, const char* expected, std::optional<double> bound = std::nullopt) {
    const TableMember* member = table_.find(name);
    if (!member) return std::nullopt;
    const Value& value = member->node.value;
    const bool is_number = member->node.kind == Node::Kind::scalar &&
                           (std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value));
    if (is_number && std::isfinite(as_double(value)) && (!bound || as_double(value) > *bound)) return value;
    wrong(name, expected);
    return std::nullopt;
  }

  std::nullopt_t wrong(const char* name, const std::string& expected) {
    const Node& node = table_.find(name)->node;
    mistakes_.add(node.place, fmt::format("{} {} is {}; expected {}", label_, name, node.shown(), expected));
    return std::nullopt;
  }

  const Node& table_;
  const std::string& label_;
  Mistakes& mistakes_;
};

}  // namespace

bool is_range(const Node& node) {
  return node.is_table() && std::any_of(node.members.begin(), node.members.end(), [](const TableMember& member) {
           return is_member_name(member.key) && !member.node.is_array() && !member.node.is_table();
         });
}

std::optional<std::vector<Value>> read_range(const Node& table, const std::string& label, Mistakes& mistakes) {
  return RangeReader(table, label, mistakes).read();
}

}  // namespace assay::host::experiment
