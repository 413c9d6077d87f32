// Parameters that an experiment itself gives to a workload whose tables are open (ASSAY_WORKLOAD_OPEN).
#pragma once
#include "experiment/document.hpp"
#include "plugin/schema.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace assay::host::experiment {

// Whether the workload's table has room for this name: letters, digits, '_' and '-', no dot, none that every table of
// results has a column of, and none that is a slip of the pen for a parameter of the table.
bool can_be_own_param(const plugin::WorkloadSchema& schema, std::string_view name);

// A row for each plain key of [workload.params], [sweep] and [[sweep.zip]] of the document that the workload's table
// does not have, of the type that its values have. None where the workload's tables are all.
std::vector<plugin::ParamSpec> own_params(const Node& root, const plugin::WorkloadSchema& schema);

}  // namespace assay::host::experiment
