// A site file: what a cluster needs to know, so that experiments need not say it. docs/cluster.md describes the
// keys.
//
//   ~/.config/assay/sites/NAME.toml, or any path
#pragma once
#include "batch/site_settings.hpp"
#include "common/usage_error.hpp"
#include "experiment/mistake.hpp"
#include "shard/shard_plan.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::batch {

struct SiteLimits {
  std::int64_t array_parallel = 16;                                  // shards of one array that run at once
  std::int64_t attempts = 5;                                         // starts of one shard's job
  std::optional<double> node_hours;                                  // a submission above is refused
  std::chrono::milliseconds case_budget = std::chrono::minutes(10);  // of a case whose budget nobody knows
  // Kept free at the end of a job: a case that takes longer than its budget can still end in it.
  std::chrono::milliseconds margin = std::chrono::minutes(5);
};

// What the processes of a job run in; rows of container.cpp.
struct SiteContainer {
  std::string image, runtime;        // "": none
  std::string assay;                 // the program in the image; "": the one that submits, which is mounted
  std::vector<std::string> mounts;   // "/data", "/data:/inside", "/data:/inside:ro"
  std::vector<std::string> options;  // of the runtime, as they are
};

struct Site {
  std::string name;  // of its file
  std::filesystem::path file;
  SiteSettings settings;  // of its kind alone
  std::int64_t gpus_per_node = 0;
  std::string gpu_type;                                        // "h100"; "": any
  std::chrono::milliseconds time_max = std::chrono::hours(1);  // of one job
  std::vector<std::string> exclude;                            // nodes
  std::vector<std::string> environment;                        // that the node's processes have: "NAME" or "NAME=value"
  std::vector<std::string> prologue;                           // lines of the batch script before assay starts
  std::string assay;                                           // the program's path on the nodes; "": this one's
  SiteLimits limits;
  shard::HealthRule health;
  experiment::Place health_place;  // of health.experiment
  SiteContainer container;
  bool canary = true;  // the cheapest case first; the others when it is ok

  const char* kind() const;    // the name of its table
  SiteTarget target() const;   // of a batch that it takes
  bool asks_for_gpus() const;  // by gpus_per_node, or by options of its kind

  // What cases can take of one job.
  std::chrono::milliseconds capacity() const { return time_max - limits.margin; }
};

struct SiteResult {
  std::optional<Site> site;  // absent exactly when there are mistakes
  std::vector<experiment::Mistake> mistakes;
};

// All mistakes in one pass, with their places. read_site() reads the experiment of the health check, too.
SiteResult read_site(const std::filesystem::path& file);
SiteResult site_from_text(std::string_view text, const std::filesystem::path& file);

std::filesystem::path sites_folder();
std::vector<std::filesystem::path> known_sites();  // sorted by name

// The file that --site means: a path when it has a '/' or ends in .toml, else a name in sites_folder(). Without a
// word: the only site there is, or the one named default. Throws SiteError.
class SiteError : public UsageError {
 public:
  using UsageError::UsageError;
};
std::filesystem::path find_site(const std::optional<std::string>& word);

}  // namespace assay::host::batch
