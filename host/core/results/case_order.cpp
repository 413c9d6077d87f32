#include "results/case_order.hpp"

#include "experiment/experiment.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace assay::host::results {
namespace {

// What distinguishes cases: equal for equal values, however their keys were ordered. A case that ran once has had the
// first of its repeats.
using Inputs = std::tuple<std::map<std::string, Value>, std::map<std::string, Value>, std::int64_t>;

template <class Axes, class Params>
Inputs inputs_of(const Axes& axes, const Params& params, const std::optional<std::int64_t>& repeat) {
  return {{axes.begin(), axes.end()}, {params.begin(), params.end()}, repeat.value_or(1)};
}

// Whether axes and parameters are those of the case, in the order in which they are written. The repeats are known to
// be the same.
bool is_record_of(const record::CaseRecord& record, const experiment::Case& c) {
  return record.identity.axes == c.axes && are_equal(record.identity.params, c.params);
}

}  // namespace

bool are_equal(const record::Named<Value>& named, const std::map<std::string, Value>& values) {
  return named.size() == values.size() && std::all_of(named.begin(), named.end(), [&values](const auto& each) {
           const auto found = values.find(each.first);
           return found != values.end() && found->second == each.second;
         });
}

std::map<CaseNumber, std::size_t> places_by_number(const experiment::Experiment& experiment) {
  std::map<CaseNumber, std::size_t> places;
  for (std::size_t i = 0; i < experiment.cases.size(); ++i)
    places.emplace(CaseNumber{experiment.cases[i].index, experiment.cases[i].repeat.value_or(1)}, i);
  return places;
}

std::vector<record::CaseRecord> current_records(const experiment::Experiment& experiment,
                                                std::vector<record::CaseRecord> records) {
  // Almost every record is of the case that stands where it stood; only for the others are the inputs of all looked at.
  const std::map<CaseNumber, std::size_t> by_number = places_by_number(experiment);
  std::map<Inputs, std::vector<std::size_t>> places;  // a sweep may name the same values twice
  const auto find_places = [&] {
    for (std::size_t i = 0; i < experiment.cases.size(); ++i) {
      const experiment::Case& c = experiment.cases[i];
      places[inputs_of(c.axes, c.params, c.repeat)].push_back(i);
      // A record of a case that reached no device has what the experiment says.
      if (c.params_of_any_device) places[inputs_of(c.axes, *c.params_of_any_device, c.repeat)].push_back(i);
    }
  };

  std::vector<record::CaseRecord*> of_case(experiment.cases.size(), nullptr);
  std::map<std::pair<std::int64_t, Inputs>, record::CaseRecord*> others;
  for (record::CaseRecord& record : records) {
    const auto by_place = by_number.find({record.identity.index, record.identity.repeat.value_or(1)});
    if (by_place != by_number.end() && is_record_of(record, experiment.cases[by_place->second])) {
      of_case[by_place->second] = &record;
      continue;
    }
    if (places.empty()) find_places();
    Inputs inputs = inputs_of(record.identity.axes, record.identity.params, record.identity.repeat);
    const auto found = places.find(inputs);
    if (found == places.end()) {
      others[{record.identity.index, std::move(inputs)}] = &record;
      continue;
    }
    const std::vector<std::size_t>& candidates = found->second;
    const auto same_index = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t i) {
      return experiment.cases[i].index == record.identity.index;
    });
    of_case[same_index == candidates.end() ? candidates.front() : *same_index] = &record;
  }

  std::vector<record::CaseRecord> result;
  result.reserve(records.size());
  for (std::size_t i = 0; i < of_case.size(); ++i)
    if (of_case[i]) {
      result.push_back(std::move(*of_case[i]));
      result.back().identity.index = experiment.cases[i].index;
      result.back().identity.repeat = experiment.cases[i].repeat;
    }
  for (const auto& [key, record] : others) {
    result.push_back(std::move(*record));
    result.back().is_former = true;
  }
  const auto by_index = [](const record::CaseRecord& a, const record::CaseRecord& b) {
    return a.identity.index < b.identity.index;
  };
  // Sorting moves whole records several times, also where they stand in order.
  if (!std::is_sorted(result.begin(), result.end(), by_index)) std::stable_sort(result.begin(), result.end(), by_index);
  return result;
}

std::vector<record::CaseRecord> last_of_each_case(std::vector<record::CaseRecord> records) {
  using Key = std::pair<std::string, Inputs>;
  const auto key_of = [](const record::CaseRecord& record) {
    const record::CaseIdentity& id = record.identity;
    return Key(id.workload, inputs_of(id.axes, id.params, id.repeat));
  };
  std::map<Key, std::size_t> last;
  std::vector<std::map<Key, std::size_t>::const_iterator> of_record;
  of_record.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i)
    of_record.push_back(last.insert_or_assign(key_of(records[i]), i).first);
  if (last.size() == records.size()) return records;
  std::vector<record::CaseRecord> result;
  result.reserve(last.size());
  for (std::size_t i = 0; i < records.size(); ++i)
    if (of_record[i]->second == i) result.push_back(std::move(records[i]));
  return result;
}

}  // namespace assay::host::results
