// Finds the baseline of each case of a run, and makes the cells that compare the two.
#pragma once
#include "record/case_record.hpp"
#include "record/cell.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::results {

// The baseline of a case is the case whose axes are the same, except that those of `relative_to` have the values given
// there. A former case (record::CaseRecord) neither has nor is one. The records outlive the object.
class Baselines {
 public:
  Baselines(const std::vector<record::CaseRecord>& records, const record::Named<Value>& relative_to);

  // As record::cell_of(), and what "<column>.ratio" and "speedup" say: empty where the case or its baseline is not ok,
  // or has no such figure.
  record::Cell cell_of(const record::CaseRecord& record, const std::string& column) const;

 private:
  using Key = std::pair<std::map<std::string, Value>, std::int64_t>;  // axes, and the repeat
  // The key of a record whose axes were these others. A repeat's baseline is that of its turn.
  static Key key_of(const record::CaseRecord& record, const record::Named<Value>& other);
  const record::CaseRecord* baseline_of(const record::CaseRecord& record) const;

  const record::Named<Value>& relative_to_;
  std::map<Key, const record::CaseRecord*> by_axes_;
};

}  // namespace assay::host::results
