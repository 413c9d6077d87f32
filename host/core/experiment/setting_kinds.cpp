#include "experiment/setting_kinds.hpp"

#include "common/host_list.hpp"

#include "experiment/experiment.hpp"
#include "experiment/units.hpp"
#include "plugin/device_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace assay::host::experiment {
namespace {

constexpr const char* durations = R"("10m", "90s", "500ms", "1h30m", or a number of seconds)";
constexpr const char* sizes = R"("4GiB", "512MiB" (units B, KiB, MiB, GiB, TiB), or an integer of bytes)";

std::optional<std::chrono::milliseconds> read_duration(const Value& found) {
  if (const auto* text = std::get_if<std::string>(&found)) return parse_duration(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&found)) return duration_from_seconds(static_cast<double>(*whole));
  if (const auto* seconds = std::get_if<double>(&found)) return duration_from_seconds(*seconds);
  return std::nullopt;
}

std::optional<std::uint64_t> read_size(const Value& found) {
  if (const auto* text = std::get_if<std::string>(&found)) return parse_bytes(*text);
  const auto* number = std::get_if<std::int64_t>(&found);
  return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

Kind<std::uint64_t> size(std::string expected, std::uint64_t min_bytes) {
  return {std::move(expected),
          [=](const Value& found) {
            const auto bytes = read_size(found);
            return bytes && *bytes >= min_bytes ? bytes : std::nullopt;
          },
          [](std::uint64_t bytes) { return Value(bytes_to_text(bytes)); }};
}

Kind<std::chrono::milliseconds> duration_from(std::string expected, std::int64_t min_ms) {
  return {std::move(expected),
          [=](const Value& found) {
            const auto duration = read_duration(found);
            return duration && duration->count() >= min_ms ? duration : std::nullopt;
          },
          [](std::chrono::milliseconds duration) { return Value(duration_to_text(duration)); }};
}

// Devices that other tools have, and what there is here for them.
std::string device_hint(const std::string& device) {
  std::string name = device.substr(0, device.find(':'));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto is_one_of = [&name](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto unsupported = [](const char* what) {
    return fmt::format("; {} are not supported: use \"cpu\" on this machine, or \"cuda\" on one with an NVIDIA GPU",
                       what);
  };
  if (is_one_of({"mps", "metal"})) return unsupported("Apple GPUs");
  if (is_one_of({"rocm", "hip", "amd"})) return unsupported("AMD GPUs");
  if (is_one_of({"xpu", "sycl", "intel"})) return unsupported("Intel GPUs");
  if (is_one_of({"tpu", "xla", "npu", "hpu"})) return unsupported("accelerators other than NVIDIA GPUs");
  const bool is_numbered = name.size() < device.size();
  if (is_one_of({"cuda", "gpu", "nvidia"}) && is_numbered)
    return fmt::format("; did you mean 'cuda'? Choose the GPU with CUDA_VISIBLE_DEVICES={} in the environment",
                       device.substr(name.size() + 1));
  if (is_one_of({"gpu", "nvidia"})) return "; did you mean 'cuda'?";
  if (is_one_of({"cpu"}) && is_numbered) return "; did you mean 'cpu'?";
  return "";
}

Kind<std::int64_t> count_or_auto(std::int64_t max, std::int64_t automatic) {
  const Kind<std::int64_t> number = integer(1, max);
  return {fmt::format("{}, or \"auto\"", number.expected),
          [number, automatic](const Value& found) -> std::optional<std::int64_t> {
            return found == Value(std::string("auto")) ? std::optional(automatic) : number.read(found);
          },
          [automatic](std::int64_t count) { return count == automatic ? Value(std::string("auto")) : Value(count); },
          {"auto"}};
}

}  // namespace

Kind<std::int64_t> integer(std::int64_t min, std::int64_t max) {
  const std::string limit = max == no_maximum ? "" : fmt::format(" and <= {}", max);
  return {fmt::format("an integer >= {}{}", min, limit),
          [=](const Value& found) -> std::optional<std::int64_t> {
            const auto* number = std::get_if<std::int64_t>(&found);
            return number && *number >= min && *number <= max ? std::optional(*number) : std::nullopt;
          },
          [](std::int64_t number) { return Value(number); }};
}

Kind<std::uint64_t> unsigned_integer() {
  return {"an integer >= 0",
          [](const Value& found) -> std::optional<std::uint64_t> {
            const auto* number = std::get_if<std::int64_t>(&found);
            return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
          },
          [](std::uint64_t number) { return Value(static_cast<std::int64_t>(number)); }};
}

Kind<double> share() {
  return {"a number > 0 and < 1",
          [](const Value& found) -> std::optional<double> {
            const auto* number = std::get_if<double>(&found);
            return number && *number > 0 && *number < 1 ? std::optional(*number) : std::nullopt;
          },
          [](double number) { return Value(number); }};
}

Kind<bool> flag() {
  return {"true or false",
          [](const Value& found) -> std::optional<bool> {
            const auto* on = std::get_if<bool>(&found);
            return on ? std::optional(*on) : std::nullopt;
          },
          [](bool on) { return Value(on); }};
}

Kind<std::string> word(std::vector<std::string> words) {
  return {fmt::format("one of {}", fmt::join(words, ", ")),
          [words](const Value& found) -> std::optional<std::string> {
            const auto* text = std::get_if<std::string>(&found);
            return text && std::find(words.begin(), words.end(), *text) != words.end() ? std::optional(*text)
                                                                                       : std::nullopt;
          },
          [](const std::string& text) { return Value(text); }, words, false};
}

Kind<std::string> device_name() {
  Kind<std::string> kind = word(plugin::device_words());
  kind.hint = device_hint;
  return kind;
}

Kind<std::string> any_text(std::string expected) {
  return {std::move(expected),
          [](const Value& found) -> std::optional<std::string> {
            const auto* text = std::get_if<std::string>(&found);
            return text ? std::optional(*text) : std::nullopt;
          },
          [](const std::string& text) { return Value(text); }};
}

Kind<std::filesystem::path> folder() {
  return {"a string: the folder for results",
          [](const Value& found) -> std::optional<std::filesystem::path> {
            const auto* text = std::get_if<std::string>(&found);
            return text && !text->empty() ? std::optional<std::filesystem::path>(*text) : std::nullopt;
          },
          [](const std::filesystem::path& path) { return Value(path.string()); },
          {},
          true,
          "a folder for results"};
}

Kind<std::chrono::milliseconds> duration() {
  return duration_from(fmt::format("a duration above 0: {}", durations), 1);
}

Kind<std::chrono::milliseconds> duration_or_none() {
  return duration_from(fmt::format("a duration: {}; 0 for none", durations), 0);
}

Kind<std::uint64_t> size_above_0() { return size(fmt::format("a size above 0: {}", sizes), 1); }

Kind<std::uint64_t> size_from(std::uint64_t min_bytes) {
  return size(fmt::format("a size >= {}: {}", bytes_to_text(min_bytes), sizes), min_bytes);
}

Kind<std::int64_t> rank_count(std::int64_t max) {
  const Kind<std::int64_t> number = integer(1, max);
  return {fmt::format("{}, \"all\" or \"auto\"", number.expected),
          [number](const Value& found) -> std::optional<std::int64_t> {
            if (found == Value(std::string("auto"))) return ranks_auto;
            if (found == Value(std::string("all"))) return ranks_all;
            return number.read(found);
          },
          [](std::int64_t count) {
            if (count == ranks_auto) return Value(std::string("auto"));
            if (count == ranks_all) return Value(std::string("all"));
            return Value(count);
          },
          {"all", "auto"}};
}

Kind<std::int64_t> per_node_count(std::int64_t max) { return count_or_auto(max, ranks_per_node_auto); }

Kind<std::int64_t> inner_count(std::int64_t max) { return count_or_auto(max, measure::inner_auto); }

Kind<std::string> ssh_host() {
  Kind<std::string> kind = any_text(std::string("texts, each ") + host_form);
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    return text && parse_host(*text) ? std::optional(*text) : std::nullopt;
  };
  return kind;
}

Kind<std::string> node_names() {
  return {"a node's name, or several joined by '+': letters, digits, '.', '-' and '_'",
          [](const Value& found) -> std::optional<std::string> {
            const auto* text = std::get_if<std::string>(&found);
            // A name reaches a command line of the scheduler.
            const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_'; };
            if (!text) return std::nullopt;
            bool begins = true;
            for (const char c : *text) {
              if (c == '+' ? begins : !is_of_name(static_cast<unsigned char>(c)) || (begins && c == '-'))
                return std::nullopt;
              begins = c == '+';
            }
            return begins ? std::nullopt : std::optional(*text);
          },
          [](const std::string& text) { return Value(text); }};
}

}  // namespace assay::host::experiment
