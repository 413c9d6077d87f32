#include "batch/submission.hpp"

#include "batch/site_kinds.hpp"
#include "common/files.hpp"
#include "shard/shard_plan.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// As long as an sbatch without its `assay submit` may still wait for the controller.
constexpr std::chrono::seconds lock_patience{60};

fs::path job_file(const fs::path& run, std::int64_t array) {
  return batch_folder(run) / fmt::format("array-{}.job", array);
}

}  // namespace

fs::path batch_folder(const fs::path& run) { return run / "batch"; }

fs::path SubmittedArray::shard_folder(const fs::path& run, std::int64_t task) const {
  return batch_folder(run) / "shards" / fmt::format("{}-{:04}", number, task);
}

fs::path SubmittedArray::script_file(const fs::path& run) const {
  return batch_folder(run) / fmt::format("array-{}.sbatch", number);
}

bool has_submission(const fs::path& run) {
  std::error_code ignored;
  return fs::exists(batch_folder(run) / "submission.json", ignored);
}

Submission read_submission(const fs::path& run) try {
  const Json json = Json::parse(read_file(batch_folder(run) / "submission.json"));
  Submission submission;
  json.at("experiment_file").get_to(submission.experiment_file);
  json.at("experiment_hash").get_to(submission.experiment_hash);
  json.at("plugin_file").get_to(submission.plugin_file);
  json.at("plugin_hash").get_to(submission.plugin_hash);
  json.at("site").get_to(submission.site);
  const std::string kind = json.value("kind", SlurmSettings::kind.name);  // older versions knew Slurm alone
  const SiteKind* known = find_site_kind(kind);
  submission.target = known ? known->target_of_json(json) : UnknownTarget{kind};
  json.at("submitted_s").get_to(submission.submitted_s);
  if (const auto users = json.find("users"); users != json.end()) users->get_to(submission.users);
  json.at("attempts").get_to(submission.attempts);
  json.at("array_parallel").get_to(submission.array_parallel);
  for (const Json& each : json.at("arrays")) {
    SubmittedArray array;
    each.at("number").get_to(array.number);
    each.at("round").get_to(array.round);
    each.at("nodes").get_to(array.shape.nodes);
    each.at("ranks_per_node").get_to(array.shape.ranks_per_node);
    each.at("node").get_to(array.shape.node);
    each.at("tasks").get_to(array.tasks);
    each.at("limit_s").get_to(array.limit_s);
    each.at("canary").get_to(array.is_canary);
    each.at("id").get_to(array.id);
    std::error_code ignored;
    if (const fs::path file = job_file(run, array.number); fs::exists(file, ignored)) {
      std::string text = read_file(file);
      while (!text.empty() && text.back() == '\n') text.pop_back();
      const std::size_t semicolon = text.find(';');
      if (semicolon != std::string::npos) array.cluster = text.substr(semicolon + 1);
      if (!text.empty()) array.job = text.substr(0, semicolon);
    }
    submission.arrays.push_back(std::move(array));
  }
  return submission;
} catch (const std::exception& e) {
  throw StorageError(
      fmt::format("{} is no run that was submitted as a batch: {}; expected the folder that `assay submit` printed",
                  run.string(), e.what()));
}

void write_submission(const fs::path& run, const Submission& submission) {
  const SiteKind& kind = site_kind(submission);
  Json arrays = Json::array();
  for (const SubmittedArray& array : submission.arrays)
    arrays.push_back({{"number", array.number},
                      {"round", array.round},
                      {"nodes", array.shape.nodes},
                      {"ranks_per_node", array.shape.ranks_per_node},
                      {"node", array.shape.node},
                      {"tasks", array.tasks},
                      {"limit_s", array.limit_s},
                      {"canary", array.is_canary},
                      {"id", array.id}});
  Json json{{"schema", 1},
            {"experiment_file", submission.experiment_file},
            {"experiment_hash", submission.experiment_hash},
            {"plugin_file", submission.plugin_file},
            {"plugin_hash", submission.plugin_hash},
            {"site", submission.site},
            {"cluster", ""},  // earlier versions wrote these three for every kind
            {"kind", kind.name},
            {"hosts", Json::array()},
            {"namespace", ""},
            {"submitted_s", submission.submitted_s},
            {"users", submission.users},
            {"attempts", submission.attempts},
            {"array_parallel", submission.array_parallel},
            {"arrays", std::move(arrays)}};
  json.update(kind.json_of_target(submission.target));
  write_file_atomically(batch_folder(run) / "submission.json", json.dump(1) + "\n", Durable::yes);
}

void set_job(const fs::path& run, SubmittedArray& array, const SubmittedJob& job) {
  write_file_atomically(job_file(run, array.number), text_of(job) + "\n", Durable::yes);
  array.job = job.number, array.cluster = job.cluster;
}

bool SubmittedArray::has(const QueuedJob& queued) const {
  return (job && *job == queued.array && cluster == queued.cluster) || queued.comment == comment_of(id);
}

void mark_cancelled(const fs::path& run, const SubmittedArray& array) {
  const fs::path folder = batch_folder(run) / "cancelled";
  create_folders(folder);
  write_file_atomically(folder / std::to_string(array.number), "by assay cancel\n", Durable::yes);
}

bool is_cancelled(const fs::path& run, const SubmittedArray& array) {
  std::error_code ignored;
  return fs::exists(batch_folder(run) / "cancelled" / std::to_string(array.number), ignored);
}

SubmissionLock::SubmissionLock(const fs::path& run) {
  using Clock = std::chrono::steady_clock;
  const fs::path file = batch_folder(run) / "lock";
  fd_ = Fd(::open(file.c_str(), O_RDWR | O_CREAT, 0644));  // inherited on purpose
  if (!fd_) throw_storage_error("open", file, errno);
  for (const Clock::time_point deadline = Clock::now() + lock_patience;;) {
    // Where the file system has no locks, none is taken.
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) return;
    if (Clock::now() > deadline)
      throw StorageError(fmt::format("another `assay submit` of {} is running; wait for it to end", run.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::string new_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::string comment_of(const std::string& id) { return "assay:" + id; }

}  // namespace assay::host::batch
