// Asks Slurm about every setting of a site by itself, so that each wrong one is named and not the first alone.
#pragma once
#include "batch/packing.hpp"
#include "batch/site.hpp"
#include "batch/slurm.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::batch {

// What the experiments of a check need beside jobs of their shapes.
struct CheckedRuns {
  std::vector<std::filesystem::path> plugins, results;  // files; folders that runs would lie below
};

// What a check of a site has found: a line each.
struct SiteFindings {
  std::vector<std::string> problems;  // that would not work
  std::vector<std::string> notes;     // what may not be meant, or could not be looked at
};

// One line for each setting that is wrong, and for each shape that the partition cannot hold. Slurm itself takes some
// wrong settings and lets the job wait for ever: these are held against what sinfo says. Throws SlurmError when Slurm
// cannot be asked.
std::vector<std::string> check_site(const Site& site, const std::vector<Shape>& shapes, const Slurm& slurm);

// Where nodes of the site's partition (or of the default one) have GPUs and the site asks for none. `nodes`: of any
// partition.
std::optional<std::string> note_on_gpus(const Site& site, const std::vector<NodeState>& nodes);

}  // namespace assay::host::batch
