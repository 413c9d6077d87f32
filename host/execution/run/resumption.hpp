// Going on with an earlier run: which one, whether it is one of this experiment, and which of its results count.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"
#include "record/case_record.hpp"
#include "results/environments.hpp"
#include "run/plan.hpp"

namespace assay::host::run {

// --resume, and the newest run is of another experiment of that name. The text lists what differs, and the remedies.
class ResumeRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct EarlierRun {
  std::filesystem::path folder;
  std::vector<record::CaseRecord> records;  // as they stand in the file
  std::vector<std::string> differences;  // what it and the experiment differ in; none: the experiment has grown at most
  std::vector<std::filesystem::path> passed_over;  // newer runs without a finished case
};

// The newest run of the experiment's name with a finished case. A run that has failed at once leaves that to the one
// before it; if no run has a finished case, it is the newest with a record; nothing when there is none. Throws
// StorageError if the newest cannot be read; older ones that cannot, and those of another experiment, are passed by.
std::optional<EarlierRun> find_earlier_run(const experiment::Experiment& experiment, const std::string& suffix);

// Why no newer run is resumed; "" where it is the newest.
std::string note_on_passed_over(const EarlierRun& earlier);

// The text of ResumeRefused.
std::string refusal_text(const EarlierRun& earlier);

// finished_key() of the cases that another run could not make better: the last record of each is ok, allowed or
// unsupported. What another machine has made counts only with `any_machine`, and
// what was verified less than `verify` wants not at all (run/verified_cases.hpp).
std::set<std::string> finished_cases(const std::vector<record::CaseRecord>& records,
                                     const std::vector<std::string>& allow, bool any_machine,
                                     const std::string& verify = "full");

// The cases that have had each index, the first one first: an experiment that grows numbers its cases anew.
std::map<std::int64_t, std::vector<std::string>> cases_of_index(const std::vector<record::CaseRecord>& records);

// A case that the run has finished, and whose figures other code or another machine had made.
struct OutdatedCase {
  const CasePlan* planned;           // which runs again; null: this command leaves the case out
  record::CaseRecord record;         // the record that says so: to be appended before anything runs
  std::vector<std::string> changes;  // "device: SHA-256 1a2b3c then, 4d5e6f now"
};

// What a case is outdated by.
struct OutdatedBy {
  const std::vector<std::string>& allow;
  bool any_machine = false;
  // The files behind a case on such a device as they are now, by role.
  std::function<record::Named<std::string>(const std::string& device_kind, std::int32_t ranks)> files_of;
  std::string verify = "full";  // [run] verify
};

// Those of the plan, and those that the experiment or a filter leaves out: tables would show their figures beside the
// new ones.
std::vector<OutdatedCase> outdated_cases(const RunPlan& plan, const std::vector<record::CaseRecord>& records,
                                         const OutdatedBy& by);

// The user's notes on finished cases that are kept although they ran in another environment, or on another GPU of the
// same kind: a line for each thing that differs. `environment`: the id of today's.
std::vector<std::string> notes_on_kept_cases(const RunPlan& plan, const std::vector<record::CaseRecord>& records,
                                             const results::Environments& environments, const std::string& environment);

// The user's notes on outdated cases, a line for each thing that has changed.
std::vector<std::string> outdated_notes(const std::vector<OutdatedCase>& cases);

}  // namespace assay::host::run
