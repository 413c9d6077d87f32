#include "compare/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::host::compare {
namespace {

// The settings without which two times are not of the same thing. What else an experiment sets is listed as a
// difference and hinders nothing.
constexpr const char* kSync = "measure.sync";
constexpr const char* kInner = "measure.inner";
constexpr const char* kColdCache = "measure.cold_cache";

// A number is one however it is spelt (1, 1.0).
std::string text_of(const Value& value) {
  constexpr std::int64_t exact_in_double = std::int64_t{1} << 53;
  if (const auto* count = std::get_if<std::int64_t>(&value);
      count && *count <= exact_in_double && *count >= -exact_in_double)
    return fmt::format("{}", static_cast<double>(*count));
  return to_text(value);
}

bool is_on_cpu(const record::CaseRecord& record) {
  return !record.result.device || record.result.device->kind.empty() || record.result.device->kind == "cpu";
}

// A case on the CPU has how many there were, whoever chose them; an older record, how many were asked for. On another
// device they only serve the host: there the setting is one of those that are listed as differences.
std::optional<std::string> threads_of(const record::CaseRecord& record) {
  if (is_on_cpu(record) && record.result.threads.count) return text_of(*record.result.threads.count);
  if (const Value* axis = record::find(record.identity.axes, threads_key)) return text_of(*axis);
  const Value* asked = record::find(record.identity.settings, threads_key);
  if (!is_on_cpu(record) || !asked || *asked == Value(std::int64_t{0})) return std::nullopt;
  return text_of(*asked);
}

bool is_of_sampling(const std::string& key) { return key == kInner || key == kColdCache; }

// How many steps a sample has is found out ("auto") and differs from run to run: what counts is whether each was waited
// for. A record that says what `sync` was, and nothing of these, is of a time when they were so.
std::optional<std::string> sampled(const record::CaseRecord& record, const std::string& key) {
  const std::optional<record::Sampling>& sampling = record.result.sampling;
  const Value* setting = record::find(record.identity.settings, key);
  const bool is_older = !setting && record::find(record.identity.settings, kSync);
  if (!sampling && !setting && !is_older) return std::nullopt;
  if (key == kColdCache) {
    const bool is_cold = sampling ? sampling->is_cold : setting && *setting == Value(true);
    return is_cold ? "true" : "false";
  }
  const bool is_single = sampling ? sampling->inner.value_or(1) == 1 : !setting || *setting == Value(std::int64_t{1});
  return is_single ? "1" : "several";
}

}  // namespace

CaseInputs::CaseInputs(const record::CaseRecord& record) : record_(&record), workload_(record.identity.workload) {
  for (const record::Named<Value>* group : {&record.identity.axes, &record.identity.params})
    for (const auto& entry : *group) keys_.insert(entry.first);
  for (const char* key : {kSync, kInner, kColdCache, record::ranks_axis, threads_key})
    if (value(key)) keys_.insert(key);
}

bool CaseInputs::is_axis(const std::string& key) const { return record::find(record_->identity.axes, key); }

bool CaseInputs::may_say_threads() const { return is_on_cpu(*record_); }

bool CaseInputs::threads_follow_from_ranks() const {
  const std::string& from = record_->result.threads.count_from;
  return !from.empty() && !from.starts_with("[run]") && from.find('=') == std::string::npos;
}

std::optional<std::string> CaseInputs::value(const std::string& key) const {
  const record::CaseIdentity& id = record_->identity;
  // What ran counts, not what was asked for ("auto").
  if (key == record::ranks_axis && id.ranks) return text_of(std::int64_t{*id.ranks});
  if (key == "run.device" && record_->result.device && !record_->result.device->kind.empty())
    return record_->result.device->kind;
  if (key == threads_key) return threads_of(*record_);
  // A parameter before the axis of its name, for the same reason.
  for (const record::Named<Value>* group : {&id.params, &id.axes, &id.settings})
    if (const Value* value = record::find(*group, key); value && (group != &id.settings || !is_of_sampling(key)))
      return text_of(*value);
  if (is_of_sampling(key)) return sampled(*record_, key);
  return std::nullopt;
}

std::string fingerprint(const CaseInputs& inputs, const std::set<std::string>& axes) {
  std::string text = inputs.workload();
  std::set<std::string> keys = inputs.keys();
  keys.insert(axes.begin(), axes.end());
  for (const std::string& key : keys)
    if (const auto value = inputs.value(key)) text += fmt::format("\n{}={}", key, *value);
  return text;
}

std::vector<SideCase> cases_of(const std::vector<const record::CaseRecord*>& records,
                               const std::set<std::string>& axes) {
  std::vector<SideCase> cases;
  std::map<std::string, std::size_t> places;
  for (const record::CaseRecord* record : records) {
    const CaseInputs inputs(*record);
    const auto [place, is_new] = places.emplace(fingerprint(inputs, axes), cases.size());
    if (is_new)
      cases.push_back({{record}, inputs});
    else
      cases[place->second].records.push_back(record);
  }
  return cases;
}

std::vector<std::string> axes_of(const std::vector<const record::CaseRecord*>& records) {
  std::vector<std::string> axes;
  for (const record::CaseRecord* record : records)
    for (const auto& axis : record->identity.axes)
      if (std::find(axes.begin(), axes.end(), axis.first) == axes.end()) axes.push_back(axis.first);
  return axes;
}

}  // namespace assay::host::compare
