// Sites of the kind `kubernetes`: an array of shards is an Indexed Job, whose pods all see the volume of the results
// folder. Asked by kubectl, with the context of the user. Not yet run on a cluster.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batch/scheduler.hpp"
#include "batch/script.hpp"
#include "batch/site.hpp"
#include "batch/site_check.hpp"
#include "batch/submission.hpp"

namespace assay::host::batch {

class Kubernetes : public Scheduler {
 public:
  explicit Kubernetes(std::string name_space) : name_space_(std::move(name_space)) {}
  // `after_ok` never is: a Job waits for no other, and such sites have no canary.
  std::optional<SubmittedJob> queue_array(const std::string& manifest,
                                          const std::optional<std::string>& after_ok) const override;
  std::vector<QueuedJob> queue(const std::vector<std::int64_t>& users = {}) const override;
  void cancel(const std::vector<SubmittedJob>& jobs) const override;
  std::int64_t array_size_max() const override;

 private:
  std::string answer_of(std::vector<std::string> words) const;
  std::string name_space_;
};

// The manifest of an array, as JSON. Throws SiteError for cases on several nodes, and for a run outside of the volume.
std::string kubernetes_manifest(const ScriptInput& input);
SiteFindings check_kubernetes(const Site& site, const std::vector<Shape>& shapes, const CheckedRuns& runs);

// What `kubectl get jobs,pods -o json` answers, as the jobs that wait or run. Throws SchedulerError.
std::vector<QueuedJob> jobs_of_kubernetes(std::string_view json);
// "0-2,5" of completedIndexes.
std::vector<std::pair<std::int64_t, std::int64_t>> ranges_of_indexes(std::string_view text);

}  // namespace assay::host::batch
