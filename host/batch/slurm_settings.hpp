// Settings of Slurm alone: the table [slurm] of a site file. site.hpp has those that all kinds share.
#pragma once
#include <string>
#include <vector>

namespace assay::host::batch {

struct SiteKind;

// This part stays with a batch: its jobs are there as long as it lives.
struct SlurmTarget {
  std::string cluster;  // of several that one Slurm knows; "": the one of the machine that submits
};

struct SlurmSettings : SlurmTarget {
  using Target = SlurmTarget;
  static const SiteKind kind;  // slurm_site.cpp

  std::string partition, account, qos, constraint, reservation;  // "": the scheduler's default
  bool requeue = true;
  bool exclusive = true;                              // whole nodes: a neighbour would be measured, too
  std::vector<std::string> sbatch_extra, srun_extra;  // options, as they are
  std::vector<std::string> on_end;                    // lines of a script that runs once the batch has ended
};

}  // namespace assay::host::batch
