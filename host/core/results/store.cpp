#include "results/store.hpp"

#include "common/parallel.hpp"
#include "record/json.hpp"
#include "results/environments.hpp"
#include "results/reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>

namespace assay::host::results {
namespace {

void check_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw StorageError(
        fmt::format("experiment name \"{}\" names no folder; expected a name without '/'; change "
                    "`name` in the experiment file",
                    name));
}

// 0, or the error: a file system without links costs a convenience and no result.
int point_latest_at(const std::filesystem::path& run_folder) {
  const std::filesystem::path parent = run_folder.parent_path();
  const std::filesystem::path temporary = parent / fmt::format(".latest.{}", run_folder.filename().string());
  if (::symlink(run_folder.filename().c_str(), temporary.c_str()) != 0) return errno;
  if (::rename(temporary.c_str(), (parent / "latest").c_str()) == 0) {
    flush_name(parent / "latest");
    return 0;
  }
  const int error_number = errno;
  ::unlink(temporary.c_str());
  return error_number;
}

}  // namespace

std::filesystem::path make_unique_folder(const std::filesystem::path& parent, const std::string& stamp,
                                         const std::function<std::uint32_t()>& draw_id, const std::string& suffix) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    std::filesystem::path path = parent / fmt::format("{}-{:04x}{}", stamp, draw_id() & 0xffffu, suffix);
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) throw_storage_error("create the run folder", path, errno);
  }
  throw StorageError(fmt::format("cannot create a run folder {}/{}-<id>: {} ids are all taken; start again in a second",
                                 parent.string(), stamp, kTries));
}

RunFolder RunFolder::create(const std::filesystem::path& dir, const std::string& name, const std::string& resolved_toml,
                            const std::string& environment_json, WallTime now, const std::string& suffix) {
  check_name(name);
  const std::filesystem::path parent = dir / name;
  create_folders(parent, "create the results folder");

  std::random_device random;
  RunFolder run(make_unique_folder(
      parent, utc_stamp(now), [&random] { return random(); }, suffix));
  if (::mkdir(run.logs_path().c_str(), 0777) != 0) throw_storage_error("create the folder", run.logs_path(), errno);
  run.open_cases();
  run.begin_invocation(environment_json);
  // Last, and waited for, with all names before it: a folder that holds it can be resumed.
  flush_name(run.path_);
  run.replace_experiment(resolved_toml);
  run.becomes_latest_ = suffix.empty();
  if (auto note = low_space_note(run.path_)) run.notes_.push_back(std::move(*note));
  return run;
}

RunFolder RunFolder::reopen(const std::filesystem::path& run_folder, Reading reading) {
  RunFolder run(run_folder);
  std::error_code error;
  if (!std::filesystem::is_regular_file(run_folder / "experiment.toml", error))
    throw StorageError(
        fmt::format("{} is no run folder: expected an experiment.toml in it; name a folder that `assay "
                    "run` has made",
                    run_folder.string()));
  create_folders(run.logs_path());
  run.open_cases();
  // Under the lock: nobody is writing the line that looks torn.
  const CasesFile cases =
      reading == Reading::all_lines ? read_cases(run.cases_path()) : read_last_case(run.cases_path());
  run.notes_ = cases.warnings;
  if (cases.torn && ::ftruncate(run.cases_.get(), static_cast<off_t>(cases.whole_bytes)) != 0)
    throw_storage_error("cut the torn last line off", run.cases_path(), errno);
  if (cases.newline_missing)
    if (const int failed = write_all(run.cases_.get(), "\n").error_number)
      throw_storage_error("end the last line of", run.cases_path(), failed);
  if (auto note = low_space_note(run.path_)) run.notes_.push_back(std::move(*note));
  return run;
}

RunFolder RunFolder::open_part(const std::filesystem::path& folder, const std::string& environment_json) {
  RunFolder run(folder);
  create_folders(run.logs_path());
  run.open_cases();
  flush_folder(run.path_);  // what is appended to the records must have a name
  run.begin_invocation(environment_json);
  if (auto note = low_space_note(run.path_)) run.notes_.push_back(std::move(*note));
  return run;
}

void RunFolder::leave_latest_to_newer() {
  std::error_code error;
  const std::filesystem::path latest = path_.parent_path() / "latest";
  const std::filesystem::path newest = std::filesystem::read_symlink(latest, error).filename();
  if (error || !std::filesystem::exists(latest, error)) return;
  // Stamps sort by time.
  if (const auto stamp = stamp_of_run(newest); stamp && *stamp > stamp_of_run(path_)) becomes_latest_ = false;
}

void RunFolder::become_latest() {
  becomes_latest_ = false;
  if (const int failed = point_latest_at(path_))
    notes_.push_back(fmt::format("{} could not be pointed at {}: {}", (path_.parent_path() / "latest").string(),
                                 path_.filename().string(), std::generic_category().message(failed)));
}

void RunFolder::begin_invocation(const std::string& environment_json) {
  environment_id_ = add_invocation(path_, environment_json);
}

void RunFolder::open_cases() {
  for (;;) {
    cases_ = Fd(::open(cases_path().c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!cases_) throw_storage_error("open", cases_path(), errno);
    if (::flock(cases_.get(), LOCK_EX | LOCK_NB) != 0) break;
    // `assay collect` puts another file in its place: between opening and locking, this one may have gone.
    struct stat opened {
    }, named{};
    if (::fstat(cases_.get(), &opened) != 0 || ::stat(cases_path().c_str(), &named) != 0 ||
        (opened.st_ino == named.st_ino && opened.st_dev == named.st_dev))
      return;
  }
  // Some network file systems know no locks; then the user's care is all there is.
  if (errno == EWOULDBLOCK)
    throw StorageError(
        fmt::format("{} is being written by another assay process; wait for it to end, or start another run "
                    "without --resume",
                    path_.string()));
  notes_.push_back(fmt::format("{} cannot be locked ({}): do not resume this run twice at the same time",
                               cases_path().string(), std::generic_category().message(errno)));
}

void RunFolder::replace_experiment(const std::string& resolved_toml) {
  write_file_atomically(path_ / "experiment.toml", resolved_toml, Durable::yes);
}

void RunFolder::append_all(std::span<const record::CaseRecord> records) {
  std::vector<std::string> spelt(records.size());
  for_each_in_parallel(records.size(), [&](std::size_t i) { spelt[i] = record::to_line(records[i]); });
  std::string lines;
  std::size_t bytes = 0;
  for (const std::string& line : spelt) bytes += line.size() + 1;
  lines.reserve(bytes);
  for (const std::string& line : spelt) lines += line, lines += '\n';
  struct stat before {};
  if (::fstat(cases_.get(), &before) != 0) throw_storage_error("append to", cases_path(), errno);
  WriteOutcome outcome = write_all(cases_.get(), lines);
  // EINVAL, EROFS: a file that cannot be flushed, such as a pipe.
  if (outcome.error_number == 0 && ::fdatasync(cases_.get()) != 0 && errno != EINVAL && errno != EROFS)
    outcome.error_number = errno;
  if (outcome.error_number == 0) {
    if (becomes_latest_) become_latest();
    return;
  }

  const bool whole = ::ftruncate(cases_.get(), before.st_size) == 0;
  const std::optional<std::uint64_t> free = free_bytes(path_);
  throw StorageError(fmt::format(
      "cannot append {} bytes to {}: {} after {} bytes{}; {}; {}, then continue with --resume", lines.size(),
      cases_path().string(), std::generic_category().message(outcome.error_number), outcome.written_bytes,
      free ? fmt::format(" ({:.1f} MiB free)", static_cast<double>(*free) / (1 << 20)) : std::string(),
      whole ? "the cases finished before are kept" : "the last line is torn, the cases before it are kept",
      storage_remedy(outcome.error_number)));
}

}  // namespace assay::host::results
