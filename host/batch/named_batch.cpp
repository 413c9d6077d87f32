#include "batch/named_batch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "batch/site_kinds.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"
#include "shard/journal.hpp"

namespace assay::host::batch {

namespace fs = std::filesystem;

fs::path batch_run(const std::string& given) {
  std::error_code error;
  const fs::path path = fs::absolute(given).lexically_normal();
  const fs::path folder = path.has_filename() ? path : path.parent_path();
  if (has_submission(folder)) return fs::canonical(folder);
  std::vector<fs::path> runs;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (results::stamp_of_run(it->path()) && has_submission(it->path())) runs.push_back(it->path());
  if (runs.empty())
    throw UsageError(fmt::format(
        "{} is no run that was submitted as a batch, nor a folder of such runs; expected the folder that "
        "`assay submit` printed{}",
        given, results::is_there(folder / "cases.jsonl") ? " (an ordinary run: `assay table` shows it)" : ""));
  // Of two in one second, the one that was submitted later.
  return *std::max_element(runs.begin(), runs.end(), [](const fs::path& a, const fs::path& b) {
    const auto stamp_a = results::stamp_of_run(a), stamp_b = results::stamp_of_run(b);
    if (stamp_a != stamp_b) return stamp_a < stamp_b;
    return read_submission(a).submitted_s < read_submission(b).submitted_s;
  });
}

// The queue, or why it could not be read.
static std::pair<std::optional<std::vector<QueuedJob>>, std::string> queue_or_problem(
    const Scheduler& scheduler, const std::vector<std::int64_t>& users) {
  try {
    return {scheduler.queue(users), ""};
  } catch (const SchedulerError& e) {
    return {std::nullopt, e.what()};
  }
}

RunStatus status_of(const fs::path& run) {
  // In this order: an array that is queued meanwhile is found in the queue by its comment, and a job that leaves the
  // queue meanwhile has written its files before.
  const Submission submission = read_submission(run);
  auto [queue, problem] = queue_or_problem(*scheduler_of(submission, run), submission.users);
  return read_status(run, submission, queue, problem, seconds_since_1970());
}

}  // namespace assay::host::batch
