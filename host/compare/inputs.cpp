#include "compare/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::host {
namespace {

// Of the settings, those without which two times are not of the same thing. What else an experiment sets is told as a
// difference and hinders nothing.
constexpr const char* kMeasuredOtherwise = "measure.sync";
constexpr const char* kRanks = "run.ranks";

const Record* found_at(const Record& json, const char* group, const std::string& key) {
  const auto values = json.find(group);
  if (values == json.end() || !values->is_object()) return nullptr;
  const auto value = values->find(key);
  return value == values->end() || value->is_null() ? nullptr : &*value;
}

std::string text_of(const Record& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  return value.dump(-1, ' ', false, Record::error_handler_t::replace);
}

void add_keys(const Record& record, const char* group, std::set<std::string>& keys) {
  if (const auto values = record.find(group); values != record.end() && values->is_object())
    for (const auto& item : values->items())
      if (!item.value().is_null()) keys.insert(item.key());
}

std::string fingerprint(const CaseInputs& inputs, const std::set<std::string>& axes) {
  std::string text = inputs.workload();
  std::set<std::string> keys = inputs.keys();
  keys.insert(axes.begin(), axes.end());
  for (const std::string& key : keys)
    if (const auto value = inputs.value(key)) text += fmt::format("\n{}={}", key, *value);
  return text;
}

}  // namespace

CaseInputs::CaseInputs(const Record& record) : record_(&record) {
  if (const auto workload = record.find("workload"); workload != record.end() && workload->is_string())
    workload_ = workload->get<std::string>();
  add_keys(record, "axes", keys_);
  add_keys(record, "params", keys_);
  for (const char* key : {kMeasuredOtherwise, kRanks})
    if (value(key)) keys_.insert(key);
}

std::optional<std::string> CaseInputs::value(const std::string& key) const {
  // What ran counts, not what was asked for ("auto").
  if (key == kRanks)
    if (const auto ranks = record_->find("ranks"); ranks != record_->end() && ranks->is_number())
      return text_of(*ranks);
  if (key == "run.device")
    if (const Record* kind = found_at(*record_, "device", "kind")) return text_of(*kind);
  for (const char* group : {"axes", "params", "settings"})
    if (const Record* value = found_at(*record_, group, key)) return text_of(*value);
  return std::nullopt;
}

std::vector<SideCase> cases_of(const std::vector<const Record*>& records, const std::set<std::string>& axes) {
  std::vector<SideCase> cases;
  std::map<std::string, std::size_t> places;
  for (const Record* record : records) {
    const CaseInputs inputs(*record);
    const auto [place, is_new] = places.emplace(fingerprint(inputs, axes), cases.size());
    if (is_new)
      cases.push_back({{record}, inputs});
    else
      cases[place->second].records.push_back(record);
  }
  return cases;
}

std::vector<std::string> axes_of(const std::vector<const Record*>& records) {
  std::vector<std::string> axes;
  for (const Record* record : records)
    if (const auto values = record->find("axes"); values != record->end() && values->is_object())
      for (const auto& item : values->items())
        if (std::find(axes.begin(), axes.end(), item.key()) == axes.end()) axes.push_back(item.key());
  return axes;
}

}  // namespace assay::host
