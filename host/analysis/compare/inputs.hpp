// The inputs that the user chose for a case: the values by which cases of different runs are the same case or not.
// Neither the device nor any version is among them; the content hash, which has those, is not used.
#pragma once
#include "record/case_record.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::compare {

// The number of threads: an input of cases on the CPU, by what was used.
inline constexpr const char* threads_key = "run.threads";

// Axes, parameters, and of the settings those that change what is measured or that an axis varies.
class CaseInputs {
 public:
  explicit CaseInputs(const record::CaseRecord& record);

  const std::string& workload() const { return workload_; }
  // Nothing where the record does not say. A number is one however it is spelt (1, 1.0).
  std::optional<std::string> value(const std::string& key) const;
  // Every key that the record has a value for, and that may distinguish cases.
  const std::set<std::string>& keys() const { return keys_; }
  bool is_axis(const std::string& key) const;
  // Whether a record of this kind could say its number of threads: on a GPU they are no input.
  bool may_say_threads() const;
  // Nobody chose their number: it is the rank's share of the processors.
  bool threads_follow_from_ranks() const;

 private:
  const record::CaseRecord* record_;
  std::string workload_;
  std::set<std::string> keys_;
};

// The cases of one side that are the same: one record per run that has it.
struct SideCase {
  std::vector<const record::CaseRecord*> records;  // never empty
  CaseInputs inputs;
};

// The same text for the same case: its workload and every input that the record says, and those of `axes`.
std::string fingerprint(const CaseInputs& inputs, const std::set<std::string>& axes);

// In the order in which they first stand. `axes` are the keys that any record of the comparison has as an axis.
std::vector<SideCase> cases_of(const std::vector<const record::CaseRecord*>& records,
                               const std::set<std::string>& axes);

// The axes that the records have, in their order.
std::vector<std::string> axes_of(const std::vector<const record::CaseRecord*>& records);

}  // namespace assay::host::compare
