// The machine and software that made a record, as environments/ID.json or environment.json of its run say.
#pragma once
#include "record/case_record.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::record {

// A tree of facts as one list: "cpu.model", "assay.version", "variables.OMP_NUM_THREADS", in the order of the file. A
// text stands as it is, everything else as JSON spells it.
class Environment {
 public:
  // Nothing when the text is no JSON object.
  static std::optional<Environment> parse(std::string json_text);

  const Named<std::string>& facts() const { return facts_; }
  // From environments/ID.json: what was so at one invocation alone, in separate lists. None in environment.json, which
  // is of one invocation and has these among its facts.
  const std::vector<Named<std::string>>& invocations() const { return invocations_; }
  // The text of a fact, or `otherwise` if it is absent.
  std::string fact_or(std::string_view name, const std::string& otherwise) const;
  const std::string& json() const { return json_; }

 private:
  std::string json_ = "{}";
  Named<std::string> facts_;
  std::vector<Named<std::string>> invocations_;
};

}  // namespace assay::host::record
