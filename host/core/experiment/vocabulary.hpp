// The names that an experiment may give a value to, and what each of them takes: the workload's parameters and the
// settings of a case.
#pragma once
#include "experiment/document.hpp"
#include "experiment/experiment.hpp"
#include "experiment/settings.hpp"
#include "plugin/schema.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::experiment {

class Vocabulary {
 public:
  // `schema` may be null: the plugin was not found, and no parameter is known. It must outlive the vocabulary. Input
  // paths are relative to `folder`.
  Vocabulary(const plugin::WorkloadSchema* schema, std::filesystem::path folder);

  const plugin::WorkloadSchema* schema() const { return schema_; }
  const plugin::ParamSpec* param(const std::string& key) const;
  bool knows(const std::string& key) const;
  // False for a name that only the missing schema could know: not to be called unknown.
  bool can_judge(const std::string& key) const;
  std::vector<std::string> param_names() const;
  std::vector<std::string> names() const;  // parameters, then settings

  // The text for a name in `where` ("[sweep]") that is not known: what is, and what was meant.
  std::string unknown_key(const std::string& key, const std::string& where) const;

  // For a workload whose tables are open: what a parameter of the experiment's own may be called, as the end of a
  // message that goes on after `meant` ("; did you mean 'x'?", or ""); else "".
  std::string own_param_rule(const std::string& meant) const;

  // The value that `node` gives to the known `key`, in its one written form: an int for a float becomes a float, an
  // input path absolute, "600s" "10m". Otherwise a mistake that begins with `label` ("[measure] warmup").
  std::optional<Value> check(const std::string& key, const Node& node, const std::string& label, Mistakes&) const;
  // Stores a value that check() gave.
  void set(Case& into, const std::string& key, const Value& value) const;
  // `text` of `--filter key=text` in the written form of the key's values, or as it is when it is not one of them.
  std::string filter_text(const std::string& key, const std::string& text) const;

 private:
  std::optional<Value> check_param(const plugin::ParamSpec&, const Node&, const std::string& label, Mistakes&) const;

  const plugin::WorkloadSchema* schema_;
  std::filesystem::path folder_;
};

// "an integer >= 1 (default 4)"
std::string expectation(const plugin::ParamSpec& spec);

// The same as Vocabulary::check() for a setting that is no list.
std::optional<Value> check_setting(const Setting&, const Node&, const std::string& label, Mistakes&);

}  // namespace assay::host::experiment
