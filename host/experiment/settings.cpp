#include "experiment/settings.hpp"

#include "experiment/document.hpp"
#include "experiment/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace assay::host {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr const char* durations = R"("10m", "90s", "500ms", "1h30m", or a number of seconds)";
constexpr std::int64_t most_processes = 65536;  // far above any machine, far below where a count overflows

// `field` is a generic lambda: the member of a case, const or not.
template <class Field>
Setting integer(std::string name, Field field, std::int64_t min, std::int64_t max = most) {
  const auto initial = field(Case{});
  const std::string range = max == most ? fmt::format(">= {}", min) : fmt::format(">= {} and <= {}", min, max);
  return {std::move(name),
          fmt::format("an integer {} (default {})", range, initial),
          {},
          [=](const Value& found, Case& into) -> std::optional<Value> {
            const auto* number = std::get_if<std::int64_t>(&found);
            if (!number || *number < min || *number > max) return std::nullopt;
            field(into) = static_cast<std::decay_t<decltype(field(into))>>(*number);
            return found;
          },
          [=](const Case& from) -> std::optional<Value> { return static_cast<std::int64_t>(field(from)); }};
}

template <class Field>
Setting flag(std::string name, Field field) {
  return {std::move(name),
          fmt::format("true or false (default {})", static_cast<bool>(field(Case{}))),
          {},
          [=](const Value& found, Case& into) -> std::optional<Value> {
            const auto* on = std::get_if<bool>(&found);
            if (!on) return std::nullopt;
            field(into) = *on;
            return found;
          },
          [=](const Case& from) -> std::optional<Value> { return static_cast<bool>(field(from)); }};
}

// A member of measure.until; setting one of them makes the rule exist. `field` takes a StoppingRule.
template <class Number, class Field, class Accepts>
Setting until_member(std::string name, std::string expected, Field field, Accepts accepts) {
  return {std::move(name),
          fmt::format("{} (default {})", expected, field(StoppingRule{})),
          {},
          [=](const Value& found, Case& into) -> std::optional<Value> {
            const auto* number = std::get_if<Number>(&found);
            if (!number || !accepts(*number)) return std::nullopt;
            if (!into.measure.until) into.measure.until.emplace();
            field(*into.measure.until) = *number;
            return found;
          },
          [=](const Case& from) -> std::optional<Value> {
            if (!from.measure.until) return std::nullopt;
            return field(*from.measure.until);
          }};
}

template <class Field>
Setting until(std::string name, Field field, std::int64_t min) {
  return until_member<std::int64_t>(std::move(name), fmt::format("an integer >= {}", min), field,
                                    [=](std::int64_t number) { return number >= min; });
}

// The same for a share between 0 and 1, both excluded.
template <class Field>
Setting until_share(std::string name, Field field) {
  return until_member<double>(std::move(name), "a number > 0 and < 1", field,
                              [](double number) { return number > 0 && number < 1; });
}

Setting steps() {
  Setting setting = integer(
      "measure.steps", [](auto&& c) -> auto&& { return (c.measure.steps); }, 1);
  setting.read = [](const Case& from) -> std::optional<Value> {
    if (from.measure.until) return std::nullopt;
    return from.measure.steps;
  };
  return setting;
}

// `expected` is the message's text without the default.
template <class Field>
Setting duration(std::string name, std::string expected, Field field, bool takes_zero) {
  return {std::move(name),
          fmt::format("{} (default \"{}\")", expected, to_text(field(Case{}))),
          {},
          [=](const Value& found, Case& into) -> std::optional<Value> {
            std::optional<std::chrono::milliseconds> duration;
            if (const auto* text = std::get_if<std::string>(&found)) duration = parse_duration(*text);
            if (const auto* whole = std::get_if<std::int64_t>(&found))
              duration = duration_from_seconds(static_cast<double>(*whole));
            if (const auto* seconds = std::get_if<double>(&found)) duration = duration_from_seconds(*seconds);
            if (!duration || (duration->count() == 0 && !takes_zero)) return std::nullopt;
            field(into) = *duration;
            return to_text(*duration);
          },
          [=](const Case& from) -> std::optional<Value> { return to_text(field(from)); }};
}

template <class Field>
Setting word(std::string name, std::vector<std::string> words, Field field) {
  return {std::move(name), fmt::format("one of {} (default {})", fmt::join(words, ", "), field(Case{})), words,
          [=](const Value& found, Case& into) -> std::optional<Value> {
            const auto* text = std::get_if<std::string>(&found);
            if (!text || std::find(words.begin(), words.end(), *text) == words.end()) return std::nullopt;
            field(into) = *text;
            return found;
          },
          [=](const Case& from) -> std::optional<Value> { return field(from); }};
}

Setting ranks() {
  return {"run.ranks",
          fmt::format("an integer >= 1 and <= {}, \"all\" or \"auto\" (default \"auto\")", most_processes),
          {"all", "auto"},
          [](const Value& found, Case& into) -> std::optional<Value> {
            if (const auto* text = std::get_if<std::string>(&found)) {
              if (*text != "all" && *text != "auto") return std::nullopt;
              into.run.ranks = *text == "all" ? ranks_all : ranks_auto;
              return found;
            }
            const auto* number = std::get_if<std::int64_t>(&found);
            if (!number || *number < 1 || *number > most_processes) return std::nullopt;
            into.run.ranks = *number;
            return found;
          },
          [](const Case& from) -> std::optional<Value> {
            if (from.run.ranks == ranks_auto) return std::string("auto");
            if (from.run.ranks == ranks_all) return std::string("all");
            return from.run.ranks;
          }};
}

Setting memory_limit() {
  return {"run.memory_limit",
          R"(a size above 0: "4GiB", "512MiB" (units B, KiB, MiB, GiB, TiB), or an integer of bytes (default none))",
          {},
          [](const Value& found, Case& into) -> std::optional<Value> {
            std::optional<std::uint64_t> bytes;
            if (const auto* text = std::get_if<std::string>(&found)) bytes = parse_bytes(*text);
            if (const auto* number = std::get_if<std::int64_t>(&found); number && *number > 0)
              bytes = static_cast<std::uint64_t>(*number);
            if (!bytes || *bytes == 0) return std::nullopt;
            into.run.memory_limit_bytes = *bytes;
            return bytes_to_text(*bytes);
          },
          [](const Case& from) -> std::optional<Value> {
            if (!from.run.memory_limit_bytes) return std::nullopt;
            return bytes_to_text(*from.run.memory_limit_bytes);
          }};
}

std::vector<Setting> make_table() {
  return {
      integer(
          "measure.warmup", [](auto&& c) -> auto&& { return (c.measure.warmup); }, 0),
      steps(),
      flag(
          "measure.sync", [](auto&& c) -> auto&& { return (c.measure.sync); }),
      duration(
          "measure.timeout", fmt::format("a duration above 0: {}", durations),
          [](auto&& c) -> auto&& { return (c.measure.timeout); }, false),
      until_share(
          "measure.until.relative_error", [](auto&& rule) -> auto&& { return (rule.relative_error); }),
      until_share(
          "measure.until.confidence", [](auto&& rule) -> auto&& { return (rule.confidence); }),
      until(
          "measure.until.min_steps", [](auto&& rule) -> auto&& { return (rule.min_steps); }, 2),
      until(
          "measure.until.max_steps", [](auto&& rule) -> auto&& { return (rule.max_steps); }, 2),
      word(
          "run.device", {"auto", "cpu", "cuda"}, [](auto&& c) -> auto&& { return (c.run.device); }),
      ranks(),
      word(
          "run.bind", {"none", "cores"}, [](auto&& c) -> auto&& { return (c.run.bind); }),
      duration(
          "run.stall_timeout", fmt::format("a duration: {}; 0 for none", durations),
          [](auto&& c) -> auto&& { return (c.run.stall_timeout); }, true),
      duration(
          "run.wireup_timeout", fmt::format("a duration above 0: {}", durations),
          [](auto&& c) -> auto&& { return (c.run.wireup_timeout); }, false),
      flag(
          "run.isolate", [](auto&& c) -> auto&& { return (c.run.isolate); }),
      integer(
          "run.seed", [](auto&& c) -> auto&& { return (c.run.seed); }, 0),
      integer(
          "run.threads", [](auto&& c) -> auto&& { return (c.run.threads); }, 0, most_processes),
      memory_limit(),
      flag(
          "profile.nvtx", [](auto&& c) -> auto&& { return (c.profile.nvtx); }),
      flag(
          "profile.nsys", [](auto&& c) -> auto&& { return (c.profile.nsys); }),
      flag(
          "profile.kernels", [](auto&& c) -> auto&& { return (c.profile.kernels); }),
      flag(
          "profile.memory_snapshot", [](auto&& c) -> auto&& { return (c.profile.memory_snapshot); }),
  };
}

}  // namespace

const std::vector<Setting>& settings_table() {
  static const std::vector<Setting> table = make_table();
  return table;
}

const Setting* find_setting(std::string_view name) {
  const auto& table = settings_table();
  const auto it = std::find_if(table.begin(), table.end(), [&](const Setting& s) { return s.name == name; });
  return it == table.end() ? nullptr : &*it;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const auto& setting : settings_table()) names.push_back(setting.name);
  return names;
}

}  // namespace assay::host
