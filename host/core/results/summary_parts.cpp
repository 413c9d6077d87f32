#include "results/summary_parts.hpp"

#include "experiment/experiment.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace assay::host::results {
namespace {

std::int64_t ranks_of(const record::CaseRecord& record) {
  return std::max<std::int64_t>(record.identity.ranks.value_or(1), 1);
}

bool is_on_gpu(const record::CaseRecord& record) {
  const auto& device = record.result.device;
  return device && !device->kind.empty() && device->kind != "cpu";
}

bool is_any_on_gpu(const std::vector<record::CaseRecord>& records) {
  return std::any_of(records.begin(), records.end(), is_on_gpu);
}

// The cases without a record of this number of ranks, and in the first part those of an unknown number.
std::size_t count_waiting(const experiment::Experiment& experiment, const std::set<CaseNumber>& with_record,
                          std::int64_t ranks, bool is_first) {
  return static_cast<std::size_t>(
      std::count_if(experiment.cases.begin(), experiment.cases.end(), [&](const experiment::Case& c) {
        if (with_record.contains({c.index, c.repeat.value_or(1)})) return false;
        return c.run.ranks > 0 ? c.run.ranks == ranks : is_first;
      }));
}

}  // namespace

std::vector<SummaryPart> summary_parts(const experiment::Experiment& experiment,
                                       const std::vector<record::CaseRecord>& records) {
  // A case that reached no device belongs with the others of its number of ranks.
  const bool run_has_gpus = is_any_on_gpu(records);
  const auto place_of = [run_has_gpus](const record::CaseRecord& record) {
    return std::pair(record.result.device ? is_on_gpu(record) : run_has_gpus, ranks_of(record));
  };
  std::map<std::pair<bool, std::int64_t>, SummaryPart> by_place;
  std::set<CaseNumber> with_record;
  for (const record::CaseRecord& record : records) {
    with_record.insert({record.identity.index, record.identity.repeat.value_or(1)});
    const auto place = place_of(record);
    SummaryPart& part = by_place[place];
    part.on_gpu = place.first, part.ranks = place.second;
  }
  if (by_place.empty()) return {whole_run(experiment, records)};
  if (by_place.size() == 1)
    by_place.begin()->second.all = &records;
  else
    for (const record::CaseRecord& record : records) by_place[place_of(record)].some.push_back(record);
  std::vector<SummaryPart> parts;
  std::set<std::int64_t> counted;  // numbers of ranks: a case that waits is planned in one part
  for (auto& [place, part] : by_place) {
    part.planned = part.records().size();
    if (counted.insert(part.ranks).second)
      part.planned += count_waiting(experiment, with_record, part.ranks, parts.empty());
    parts.push_back(std::move(part));
  }
  return parts;
}

SummaryPart whole_run(const experiment::Experiment& experiment, const std::vector<record::CaseRecord>& records) {
  SummaryPart part{is_any_on_gpu(records), 1, {}, experiment.cases.size(), &records};
  for (const record::CaseRecord& record : records)
    if (is_on_gpu(record) == part.on_gpu) part.ranks = std::max(part.ranks, ranks_of(record));
  return part;
}

}  // namespace assay::host::results
