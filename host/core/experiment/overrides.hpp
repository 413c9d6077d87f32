// `--set key=value`: changes to the tree of an experiment file before anything is validated.
#pragma once
#include "experiment/document.hpp"

#include <set>
#include <string>
#include <vector>

namespace assay::host::experiment {

// Applies `arguments` ("key=value") to `root`. A key is a dotted setting ("measure.steps"), "sweep.KEY" for an axis, or
// the name of a parameter, plain or as "workload.params.NAME". A value for a swept key replaces its axis by that one
// value; an axis for a fixed parameter replaces the fixed value; `measure.steps` and `measure.until` replace each
// other. Returns the names of the axes and parameters that were set: the file's own [[sweep.exclude]] may now name
// values that are no longer swept.
std::set<std::string> apply_overrides(Node& root, const std::vector<std::string>& arguments, Mistakes& mistakes);

// The key of an axis, filter or exclusion: "workload.params.size" is "size"; other names stand as they are.
std::string plain_key(std::string_view key);

// The keys of a file that stand in no table: "schema", "name", "description".
std::vector<std::string> own_keys();
// Its tables: "workload", "sweep", and those of settings.
std::vector<std::string> top_sections();

// Whether `key` names something of the file's own layout ("measure.steps", "name") and not a parameter.
bool is_layout_key(std::string_view key);

}  // namespace assay::host::experiment
