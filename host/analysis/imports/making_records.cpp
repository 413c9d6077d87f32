#include "imports/making_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>

#include "common/filter.hpp"
#include "common/foreign_json.hpp"

namespace assay::host::imports {

namespace {

// Python writes NaN and Infinity, which JSON has not: they are no numbers here, and the rest of the file counts.
// Returns whether there were any.
bool replace_bare_words(std::string& text) {
  bool is_text = false, found = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && is_text) {
      ++i;
    } else if (text[i] == '"') {
      is_text = !is_text;
    } else if (!is_text) {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (text.compare(i, word.size(), word) == 0) {
          text.replace(i, word.size(), "null");
          found = true;
          break;
        }
    }
  }
  return found;
}

}  // namespace

Json parsed_or_discarded(std::string_view text) {
  Json json = json_or_discarded(text);
  if (!json.is_discarded()) return json;
  std::string changed(text);
  return replace_bare_words(changed) ? json_or_discarded(changed) : json;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

Json parsed(std::string_view text) {
  if (is_nested_deeper(text)) throw ImportError(fmt::format("its JSON is nested more than {} deep", deepest_json));
  if (Json json = parsed_or_discarded(text); !json.is_discarded()) return json;
  if (is_blank(text)) throw ImportError("the file is empty");
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    if (std::string_view(e.what()).find("unexpected end of input") != std::string_view::npos ||
        std::string_view(e.what()).find("missing closing quote") != std::string_view::npos)
      throw ImportError("its JSON ends early: the file is not whole; import one whose program has ended");
    throw ImportError(fmt::format("it is no JSON: {}", e.what()));
  }
}

std::optional<double> number_of(const Json& value) {
  if (value.is_number()) {
    const double number = value.get<double>();
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }
  return value.is_string() ? number_in(value.get<std::string>()) : std::nullopt;
}

std::optional<double> number_at(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  return found == object.end() ? std::nullopt : number_of(*found);
}

std::optional<std::int64_t> count_of(std::optional<double> number) {
  constexpr double exact_up_to = 9007199254740992.0;
  if (!number || !(*number >= 0 && *number <= exact_up_to) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

void fail(record::CaseRecord& record, std::string reason) {
  record.result.status = record::Status::failed;
  record.result.reason = std::move(reason);
  record.result.phases.reset();
  record.result.rates.reset();
}

Value size_of(const std::string& text) {
  const auto count = count_of(number_in(text));
  return count ? Value(*count) : Value(text);
}

Value size_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) return Value(std::int64_t{0});
  const auto count = count_of(number_of(*found));
  return count ? Value(*count) : value_of(*found).value_or(Value(found->dump()));
}

bool is_time_ms(double ms) { return ms > 0 && ms < 1e12; }

std::optional<double> spread_of(std::optional<double> number) {
  return number && *number >= 0 && *number < 1e12 ? number : std::nullopt;
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<Value> value_of(const Json& value) {
  if (value.is_boolean()) return Value(value.get<bool>());
  // As text where no value holds the number: two of them must not become one.
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return Value(value.dump());
  if (value.is_number_integer()) return Value(value.get<std::int64_t>());
  if (value.is_number_float()) return Value(value.get<double>());
  if (value.is_string()) return Value(value.get<std::string>());
  return std::nullopt;
}

Value value_of_text(const std::string& text) {
  const auto number = number_in(text);
  if (!number) return text;
  Value value = record::count_if_whole(*number);
  return to_text(value) == text ? value : Value(text);
}

namespace {

void add_flat(const Json& object, const std::string& prefix, const std::string& owner, record::Named<Value>& params) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      add_flat(value, name + ".", owner, params);
      continue;
    }
    const auto plain = value.is_array() ? std::optional<Value>(value.dump()) : value_of(value);
    if (!plain) continue;
    const Value* before = record::find(params, name);
    if (!before)
      params.emplace_back(name, *plain);
    else if (to_text(*before) != to_text(*plain) && !record::find(params, owner + name))
      params.emplace_back(owner + name, *plain);
  }
}

}  // namespace

void add_flat_params(const Json& object, const std::string& owner, record::Named<Value>& params) {
  add_flat(object, "", owner, params);
}

record::CaseRecord new_record(const std::string& workload, std::size_t index) {
  record::CaseRecord record;
  record.identity.workload = workload;
  record.identity.index = static_cast<std::int64_t>(index);
  record.result.stage = Stage::done;
  record.result.verify =
      record::VerificationResult{record::Verification::not_checked, "imported: not verified by assay"};
  record.result.validity =
      record::Validity{record::ValidityVerdict::unknown, "imported: who else used the machine is unknown"};
  return record;
}

record::Phase step_of_samples(const std::vector<double>& samples_ms) {
  constexpr double confidence = 0.95;
  double sum = 0;
  for (const double ms : samples_ms) sum += ms;
  const double mean = sum / static_cast<double>(samples_ms.size());
  return record::phase_figures(samples_ms, mean, mean, confidence);
}

record::Phase step_of_mean(double mean_ms, std::optional<double> std_ms, std::optional<std::int64_t> n) {
  record::Phase step;
  step.mean_ms = mean_ms;
  step.std_ms = std_ms;
  if (std_ms && mean_ms > 0) step.cv = *std_ms / mean_ms;
  step.n = n;
  step.share = 1;
  return step;
}

void add_metric(record::CaseRecord& record, const std::string& name, double value, const std::string& unit,
                Direction direction) {
  if (!record.result.metrics) record.result.metrics.emplace();
  record.result.metrics->emplace_back(name, record::CaseMetric{value, unit, direction, std::nullopt});
}

void add_bandwidth(record::CaseRecord& record, const std::string& name, double gbytes_per_s) {
  constexpr double most = 1e12;
  if (gbytes_per_s >= 0 && gbytes_per_s <= most)
    return add_metric(record, name, gbytes_per_s, "GB/s", Direction::higher_is_better);
  fail(record, fmt::format("its {} is {}", name, gbytes_per_s));
  record.result.metrics.reset();
}

void fail_contradictions(std::vector<record::CaseRecord>& records) {
  constexpr double rounding = 1 + 1e-9;
  for (record::CaseRecord& record : records) {
    const record::Phase* step = record.result.is_ok() ? record::step_of(record.result) : nullptr;
    if (!step || !step->mean_ms) continue;
    const double mean = *step->mean_ms, least = step->min_ms.value_or(mean), most = step->max_ms.value_or(mean);
    if (least <= mean * rounding && mean <= most * rounding) continue;
    fail(record,
         fmt::format("its times contradict each other: least {} ms, mean {} ms, most {} ms", least, mean, most));
    record.result.metrics.reset();
  }
}

std::size_t number_repeats(std::vector<record::CaseRecord>& records) {
  std::unordered_map<std::string, std::vector<record::CaseRecord*>> alike;
  std::string name;
  for (record::CaseRecord& record : records) {
    name = record.identity.workload;
    for (const auto& [key, value] : record.identity.params) name += '\n' + key + '=' + to_text(value);
    alike[name].push_back(&record);
  }
  std::size_t repeats = 0;
  for (auto& [each, group] : alike) {
    if (group.size() < 2) continue;
    repeats += group.size();
    for (std::size_t i = 0; i < group.size(); ++i) group[i]->identity.repeat = static_cast<std::int64_t>(i) + 1;
  }
  return repeats;
}

void set_axes(std::vector<record::CaseRecord>& records) {
  struct Seen {
    const Value* first = nullptr;
    bool varies = false;
  };
  std::unordered_map<std::string_view, Seen> values;
  for (const record::CaseRecord& record : records)
    for (const auto& [key, value] : record.identity.params) {
      Seen& seen = values[key];
      if (!seen.first) seen.first = &value;
      seen.varies = seen.varies || (value != *seen.first && to_text(value) != to_text(*seen.first));
    }
  for (record::CaseRecord& record : records)
    for (const auto& [key, value] : record.identity.params)
      if (values[key].varies) record.identity.axes.emplace_back(key, value);
}

std::string folder_name(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string name;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    if (is_plain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  const std::size_t begin = std::min(name.find_first_not_of(".-"), name.size());
  name = name.substr(begin, longest);
  return name.empty() ? "imported" : name;
}

}  // namespace assay::host::imports
