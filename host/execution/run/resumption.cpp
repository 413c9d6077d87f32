#include "run/resumption.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "common/files.hpp"
#include "common/host_name.hpp"
#include "common/sha256.hpp"
#include "experiment/growth.hpp"
#include "results/reader.hpp"
#include "run/thread_plan.hpp"
#include "run/verified_cases.hpp"

namespace assay::host::run {
namespace {

using Records = std::vector<record::CaseRecord>;

// The axes, which time of its repeats it is, and nothing of what made the figures: by this a case is the same one,
// whatever has run it.
std::string key_of_values(const record::Named<Value>& axes, const std::optional<std::int64_t>& repeat) {
  return finished_key("", axes, repeat);
}

// By their values, the last record of each case.
std::map<std::string, const record::CaseRecord*> last_records(const Records& records) {
  std::map<std::string, const record::CaseRecord*> last;
  for (const record::CaseRecord& record : records)
    last[key_of_values(record.identity.axes, record.identity.repeat)] = &record;
  return last;
}

bool is_finished(const record::CaseRecord& record, const std::vector<std::string>& allow) {
  return record.result.is_ok() || record.result.status == record::Status::unsupported ||
         std::find(allow.begin(), allow.end(), name_of(record.result.status)) != allow.end();
}

// Results of an assay that did not name the machine differ by their files, which it did not name either.
bool is_of_this_machine(const record::CaseRecord& record) { return record.host.empty() || record.host == host_name(); }

void add_change(std::vector<std::string>& changes, const std::string& what, const std::string& then,
                const std::string& now) {
  if (then != now)
    changes.push_back(
        fmt::format("{}: {} then, {} now", what, then.empty() ? "not known" : then, now.empty() ? "none" : now));
}

std::string hash_of_role(const record::Named<std::string>& files, const std::string& role) {
  const std::string* hash = record::find(files, role);
  return hash ? "SHA-256 " + short_hash(*hash) : "";
}

void add_changes_of_files(std::vector<std::string>& changes, const record::Named<std::string>& then,
                          const record::Named<std::string>& now) {
  std::vector<std::string> roles;
  for (const auto* files : {&now, &then})
    for (const auto& [role, hash] : *files)
      if (std::find(roles.begin(), roles.end(), role) == roles.end()) roles.push_back(role);
  for (const std::string& role : roles) add_change(changes, role, hash_of_role(then, role), hash_of_role(now, role));
}

// Those of a rank that shares the processors with others are known when it is placed.
std::string threads_now(const CasePlan& planned) {
  worker::CaseSpec spec;
  spec.values = planned.values;
  spec.device_kind = planned.device.device.kind;
  return thread_setting(spec);
}

std::vector<std::string> changes_of(const CasePlan& planned, const record::CaseRecord& record,
                                    const std::string& verify) {
  std::vector<std::string> changes;
  if (!is_verified_enough(record, verify))
    add_change(changes, "verification", name_of(record.result.verify->status), verify);
  add_changes_of_files(changes, record.identity.files, planned.files);
  if (record.result.device && planned.device.is_usable()) {
    const record::Device &then = *record.result.device, &now = planned.device.device;
    add_change(changes, "device", then.kind + " " + then.name, now.kind + " " + now.name);
    if (record.result.libraries.empty()) add_change(changes, "libraries", then.libraries, now.libraries);
    add_change(changes, "driver", then.driver, now.driver);
    if (const auto threads = record.result.threads.count; threads && planned.ranks == 1)
      add_change(changes, "run.threads", std::to_string(*threads), threads_now(planned));
    for (const auto& [name, build] : planned.device.libraries)
      if (const std::string* before = record::find(record.result.libraries, name))
        add_change(changes, name, *before, build);
  }
  if (!is_of_this_machine(record)) add_change(changes, "machine", record.host, host_name());
  if (changes.empty()) changes.emplace_back("no field of its record says what decides its figures");
  return changes;
}

// For a case that is not planned: as far as it is known without asking its device.
std::vector<std::string> changes_without_plan(const record::CaseRecord& record, const OutdatedBy& by) {
  std::vector<std::string> changes;
  const std::string kind = record.result.device ? record.result.device->kind : "";
  record::Named<std::string> now = by.files_of(kind, record.identity.ranks.value_or(1));
  for (const auto& [role, hash] : record.identity.files)  // whose content was looked at for planned cases alone
    if (role.starts_with("input.")) now.emplace_back(role, hash);
  add_changes_of_files(changes, record.identity.files, now);
  if (!by.any_machine && !is_of_this_machine(record)) add_change(changes, "machine", record.host, host_name());
  return changes;
}

record::CaseRecord outdated_record(const record::CaseRecord& earlier, const std::vector<std::string>& changes) {
  record::CaseRecord record;
  record.identity = earlier.identity;
  record.result.status = record::Status::outdated;
  record.result.reason =
      fmt::format("its figures were made by something else ({}); it is to run again", fmt::join(changes, "; "));
  record.result.device = earlier.result.device;
  record.started = earlier.started, record.host = earlier.host, record.environment = earlier.environment;
  return record;
}

EarlierRun read_earlier_run(const std::filesystem::path& folder, const experiment::Experiment& experiment) {
  EarlierRun earlier;
  earlier.folder = folder;
  try {
    earlier.differences =
        experiment::differences_but_growth(read_file(folder / "experiment.toml"), experiment.resolved_toml);
  } catch (const std::invalid_argument& e) {
    throw StorageError(fmt::format("{}: {}; restore its experiment.toml, or start a new run without --resume",
                                   folder.string(), e.what()));
  }
  earlier.records = results::read_cases(folder / "cases.jsonl").records;
  return earlier;
}

}  // namespace

std::optional<EarlierRun> find_earlier_run(const experiment::Experiment& experiment, const std::string& suffix) {
  const std::vector<std::filesystem::path> runs =
      results::runs_newest_first(experiment.output.dir, experiment.name, suffix);
  if (runs.empty()) return std::nullopt;
  const std::vector<std::string> allow = run_wide_settings(experiment).allow;
  EarlierRun newest = read_earlier_run(runs.front(), experiment);
  std::vector<std::filesystem::path> passed_over;
  for (const std::filesystem::path& run : runs) {
    EarlierRun earlier;
    try {
      earlier = &run == &runs.front() ? newest : read_earlier_run(run, experiment);
    } catch (const StorageError&) {
      continue;  // an older one is only looked at: that it is damaged is no matter of this call
    }
    // What was finished of another experiment is no reason to leave a run of this one, nor an end to the search.
    if (!earlier.differences.empty() && newest.differences.empty()) continue;
    // Cases that are outdated were finished once: they are why the run was resumed.
    if (std::none_of(earlier.records.begin(), earlier.records.end(),
                     [&allow](const record::CaseRecord& record) { return is_finished(record, allow); })) {
      passed_over.push_back(run);
      continue;
    }
    earlier.passed_over = std::move(passed_over);
    return earlier;
  }
  return newest;
}

std::string note_on_passed_over(const EarlierRun& earlier) {
  if (earlier.passed_over.empty()) return "";
  const std::string newest = earlier.passed_over.front().string();
  return fmt::format("--resume continues {}, the newest run with a finished case; {} finished", earlier.folder.string(),
                     earlier.passed_over.size() == 1 ? fmt::format("the newer {} has none", newest)
                                                     : fmt::format("{} newer runs, {} the last of them, have none",
                                                                   earlier.passed_over.size(), newest));
}

std::string refusal_text(const EarlierRun& earlier) {
  return fmt::format(
      "{} is a run of another experiment: only values of axes may be added before a run is resumed, and this one "
      "differs in\n  {}\nundo that, or start a new run with --resume --new",
      earlier.folder.string(), fmt::join(earlier.differences, "\n  "));
}

std::set<std::string> finished_cases(const Records& records, const std::vector<std::string>& allow, bool any_machine,
                                     const std::string& verify) {
  std::set<std::string> finished;
  for (const auto& [values, record] : last_records(records))
    if (is_finished(*record, allow) && is_verified_enough(*record, verify) &&
        (any_machine || is_of_this_machine(*record)))
      finished.insert(finished_key(record->identity.hash, record->identity.axes, record->identity.repeat));
  return finished;
}

std::map<std::int64_t, std::vector<std::string>> cases_of_index(const Records& records) {
  std::map<std::int64_t, std::vector<std::string>> cases;
  for (const record::CaseRecord& record : records) {
    std::vector<std::string>& of_index = cases[record.identity.index];
    std::string key = finished_key("", record.identity.axes);
    if (std::find(of_index.begin(), of_index.end(), key) == of_index.end()) of_index.push_back(std::move(key));
  }
  return cases;
}

std::vector<OutdatedCase> outdated_cases(const RunPlan& plan, const Records& records, const OutdatedBy& by) {
  auto left = last_records(records);
  std::vector<OutdatedCase> outdated;
  const auto add = [&outdated](const CasePlan* planned, const record::CaseRecord& record,
                               std::vector<std::string> changes) {
    outdated.push_back({planned, outdated_record(record, changes), std::move(changes)});
    if (planned) outdated.back().record.identity.index = planned->values.index;
  };
  for (const CasePlan& planned : plan.cases) {
    const auto found = left.find(key_of_values(planned.values.axes, planned.values.repeat));
    if (found == left.end()) continue;
    const record::CaseRecord& record = *found->second;
    left.erase(found);
    // Of a device that did not answer, as when the run is interrupted meanwhile, nobody knows what it is now.
    if (!planned.device.is_usable()) continue;
    if (!planned.is_finished && is_finished(record, by.allow))
      add(&planned, record, changes_of(planned, record, by.verify));
  }
  for (const auto& [values, record] : left)
    if (is_finished(*record, by.allow))
      if (auto changes = changes_without_plan(*record, by); !changes.empty()) add(nullptr, *record, std::move(changes));
  return outdated;
}

std::vector<std::string> outdated_notes(const std::vector<OutdatedCase>& cases) {
  std::vector<std::string> changes;
  std::map<std::string, std::size_t> again, left_out;
  for (const OutdatedCase& each : cases)
    for (const std::string& change : each.changes) {
      if (again[change] + left_out[change] == 0) changes.push_back(change);
      ++(each.planned ? again : left_out)[change];
    }
  std::vector<std::string> notes;
  for (const std::string& change : changes) {
    if (const std::size_t count = again[change])
      notes.push_back(fmt::format("{} finished case{} again: {}", count, count == 1 ? " runs" : "s run", change));
    if (const std::size_t count = left_out[change])
      notes.push_back(fmt::format("{} that this command leaves out {} outdated: {}",
                                  count == 1 ? "1 finished case" : fmt::format("{} finished cases", count),
                                  count == 1 ? "is" : "are", change));
  }
  return notes;
}

std::vector<std::string> notes_on_kept_cases(const RunPlan& plan, const Records& records,
                                             const results::Environments& environments,
                                             const std::string& environment) {
  const auto last = last_records(records);
  const auto now = environments.find(environment);
  std::map<std::string, std::size_t> counts;  // by what differs
  for (const CasePlan& planned : plan.cases) {
    const auto found = last.find(key_of_values(planned.values.axes, planned.values.repeat));
    if (!planned.is_finished || found == last.end()) continue;
    const record::CaseRecord& record = *found->second;
    std::vector<std::string> changes;
    if (record.result.device && !record.result.device->uuid.empty() && planned.device.is_usable())
      add_change(changes, "device.uuid", record.result.device->uuid, planned.device.device.uuid);
    const auto then = environments.find(record.environment);
    if (then != environments.end() && now != environments.end() && then != now) {
      std::set<std::string> names;
      for (const auto* each : {&then->second, &now->second})
        for (const auto& [name, text] : each->facts()) names.insert(name);
      for (const std::string& name : names)
        if (!name.starts_with("invocations"))
          add_change(changes, name, then->second.fact_or(name, "not set"), now->second.fact_or(name, "not set"));
    }
    for (const std::string& change : changes) ++counts[change];
  }
  std::vector<std::string> notes;
  for (const auto& [change, count] : counts)
    notes.push_back(fmt::format("{} finished case{} kept, and had other conditions: {}", count,
                                count == 1 ? " is" : "s are", change));
  return notes;
}

}  // namespace assay::host::run
