#include "results/case_order.hpp"

#include "experiment/experiment.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace assay::host {
namespace {

std::int64_t index_of(const Record& record) {
  const auto index = record.find("index");
  return index != record.end() && index->is_number_integer() ? index->get<std::int64_t>() : -1;
}

// Equal for equal values, however their keys were ordered.
std::string fingerprint(const nlohmann::json& axes, const nlohmann::json& params) {
  return nlohmann::json{{"axes", axes}, {"params", params}}.dump(-1, ' ', false,
                                                                 nlohmann::json::error_handler_t::replace);
}

std::string fingerprint(const Case& c) {
  nlohmann::json axes = nlohmann::json::object(), params = nlohmann::json::object();
  for (const auto& [key, value] : c.axes) axes[key] = to_json(value);
  for (const auto& [key, value] : c.params) params[key] = to_json(value);
  return fingerprint(axes, params);
}

std::string fingerprint(const Record& record) {
  const auto object_at = [&record](const char* key) {
    const auto found = record.find(key);
    return found != record.end() && found->is_object() ? nlohmann::json(*found) : nlohmann::json::object();
  };
  return fingerprint(object_at("axes"), object_at("params"));
}

}  // namespace

std::vector<Record> current_records(const Experiment& experiment, const std::vector<Record>& records) {
  std::map<std::string, std::vector<std::size_t>> places;  // a sweep may name the same values twice
  for (std::size_t i = 0; i < experiment.cases.size(); ++i) places[fingerprint(experiment.cases[i])].push_back(i);

  std::vector<const Record*> of_case(experiment.cases.size(), nullptr);
  std::map<std::pair<std::int64_t, std::string>, const Record*> others;
  for (const Record& record : records) {
    const std::string values = fingerprint(record);
    const auto found = places.find(values);
    if (found == places.end()) {
      others[{index_of(record), values}] = &record;
      continue;
    }
    const std::vector<std::size_t>& candidates = found->second;
    const auto same_index = std::find_if(candidates.begin(), candidates.end(),
                                         [&](std::size_t i) { return experiment.cases[i].index == index_of(record); });
    of_case[same_index == candidates.end() ? candidates.front() : *same_index] = &record;
  }

  std::vector<Record> result;
  for (std::size_t i = 0; i < of_case.size(); ++i)
    if (of_case[i]) {
      result.push_back(*of_case[i]);
      result.back()["index"] = experiment.cases[i].index;
    }
  for (const auto& [key, record] : others) result.push_back(*record);
  std::stable_sort(result.begin(), result.end(),
                   [](const Record& a, const Record& b) { return index_of(a) < index_of(b); });
  return result;
}

}  // namespace assay::host
