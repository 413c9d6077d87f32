// The site's health check of this node: an experiment, whose cases must be ok and as fast as the site says.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "record/case_record.hpp"
#include "shard/node_health.hpp"

namespace assay::host::run {

// What the records of the check say of the node. A case that is `unsupported` there counts as left out.
shard::NodeHealth judge_node(const std::string& node, const std::vector<record::CaseRecord>& records,
                             const shard::HealthRule& rule);

// The verdict of this batch on the node: that of an earlier job, or the check is run now, in separate processes, with
// its run below <batch>/nodes/NODE-JOB-RESTART. Throws StorageError, and UsageError where the check's experiment cannot
// be read here: no verdict on the node is left then.
shard::NodeHealth check_node_health(const std::filesystem::path& batch_folder, const std::string& node,
                                    const shard::JobStart& start, const shard::HealthRule& rule);

}  // namespace assay::host::run
