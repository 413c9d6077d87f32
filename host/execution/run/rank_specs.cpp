#include "run/rank_specs.hpp"

#include <algorithm>

#include "experiment/output_path.hpp"

namespace assay::host::run {
namespace {

// Everything that is the same for all ranks.
worker::CaseSpec common_spec(const CasePlan& planned, const RunTarget& target,
                             const std::filesystem::path& run_folder) {
  worker::CaseSpec spec;
  spec.values = planned.values;
  spec.plugin_file = target.plugin_file.string();
  spec.workload = target.schema.id;
  spec.phase_names = target.schema.phases;
  spec.device_kind = planned.device.device.kind;
  spec.verification = planned.verification;
  spec.run_folder = std::filesystem::absolute(run_folder).lexically_normal().string();
  return spec;
}

// Relative to the run folder, whatever the process that writes takes as its own folder. No other case, rank or
// repeat writes the same file.
void name_output_files(worker::CaseSpec& spec, const plugin::WorkloadSchema& schema) {
  const bool has_others = spec.values.is_one_of_several || !spec.is_alone() || spec.values.repeat.value_or(1) > 1;
  for (const plugin::ParamSpec& p : schema.params) {
    std::string* path = p.output_path ? std::get_if<std::string>(&spec.values.params[p.name]) : nullptr;
    if (!path || path->empty()) continue;
    *path = spec.file_of_run(has_others ? experiment::own_output_name(*path, spec.file_stem()) : *path).string();
    spec.output_files.push_back(*path);
  }
}

worker::RankSpec rank_among(const std::vector<RankPlace>& places, std::size_t rank) {
  const RankPlace& place = places[rank];
  worker::RankSpec spec;
  spec.rank = static_cast<std::int32_t>(rank), spec.count = static_cast<std::int32_t>(places.size());
  spec.local_count = 0, spec.sharer_count = 0;
  for (std::size_t other = 0; other < places.size(); ++other) {
    if (places[other].host != place.host) continue;
    spec.local_rank += other < rank ? 1 : 0;
    ++spec.local_count;
    if (places[other].processors != place.processors) continue;
    spec.sharer += other < rank ? 1 : 0;
    ++spec.sharer_count;
  }
  return spec;
}

}  // namespace

std::vector<worker::CaseSpec> specs_of_ranks(const CasePlan& planned, const RunTarget& target,
                                             const std::filesystem::path& run_folder,
                                             const std::vector<RankPlace>& places, const RankMeeting& meeting) {
  std::vector<worker::CaseSpec> specs(places.size(), common_spec(planned, target, run_folder));
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    worker::CaseSpec& spec = specs[rank];
    spec.ranks = rank_among(places, rank);
    name_output_files(spec, target.schema);
    if (spec.is_alone()) continue;
    spec.ranks.host_name = places[rank].host;
    spec.ranks.service = meeting.service;
    spec.ranks.prefix = meeting.prefix;
    // A launcher may number the ranks of a machine in its own way.
    const std::int32_t said = places[rank].local_rank;
    const std::int32_t local_rank = said >= 0 ? said : spec.ranks.local_rank;
    if (spec.device_kind != "cpu") spec.device_ordinal = local_rank % std::max(planned.device.count, 1);
  }
  return specs;
}

}  // namespace assay::host::run
