#include "results/leftovers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "common/fd.hpp"
#include "common/files.hpp"
#include "common/foreign_json.hpp"
#include "common/text_format.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;

// As sdk/data writes them.
constexpr const char* manifest_name = "_manifest.json";
constexpr const char* verified_name = "_verified";
constexpr const char* lock_name = "_lock";
constexpr const char* data_format = "assay token pairs";
constexpr const char* tables_extension = ".tables";  // as host/core/plugin writes them

void add_file(const fs::path& file, Leftover& leftover) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(file, error))) return;
  const auto bytes = fs::file_size(file, error);
  leftover.files.push_back(file);
  if (!error) leftover.bytes += bytes;
}

// Every file below it, or those that `counts` accepts.
template <class Counts>
void add_files_below(const fs::path& folder, Leftover& leftover, Counts&& counts) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return;  // nor what a link in its place leads to
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (counts(it->path())) add_file(it->path(), leftover);
}

// Held for as long as it lives, where nobody else holds the run or the data set: as RunFolder and the data set's
// readers lock their file.
class Lock {
 public:
  // For writing, as some file systems ask for a lock that excludes others. Where there are no locks nobody knows.
  explicit Lock(const fs::path& locked) : file_(::open(locked.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK)) {
    const bool is_locked = file_.get() >= 0 && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    error_ = is_locked || errno == ENOENT ? 0 : errno;
  }
  bool is_mine() const { return error_ == 0; }
  std::string reason() const {
    return error_ == EWOULDBLOCK ? "it is in use now"
                                 : "whether it is in use is not known: " + std::generic_category().message(error_);
  }

 private:
  Fd file_;
  int error_ = 0;
};

bool is_at_rest(const fs::path& locked) { return Lock(locked).is_mine(); }

// Whether assay writes a file of this name, relative to the run, before its first record.
bool is_of_a_run(const fs::path& file) {
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : "", name = file.filename().string();
  if (folder.empty()) return name == "cases.jsonl" || name == "experiment.toml" || name == "environment.json";
  if (folder == "environments") return file.extension() == ".json";
  if (folder == "logs") return name == "devices.log" || (name.starts_with("case-") && name.ends_with(".log"));
  return *file.begin() == "files";  // copies of libraries
}

// Or later. Files that a workload was asked for are not among them: they may be all that somebody wanted.
bool is_of_a_run_with_records(const fs::path& file) {
  if (is_of_a_run(file) || *file.begin() == "batch") return true;
  if (file.has_parent_path()) return false;
  const std::string name = file.string();
  if (name == "table.csv" || name == "table.md" || name == "report.html") return true;
  constexpr std::string_view beginnings[] = {"kernels_case-", "memory_case-", "nsys_case-", "ncu_case-"};
  return (name.starts_with("bench_") && name.ends_with(".json")) ||
         std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// A folder with anything else in it is somebody's.
template <class IsOfARun>
bool has_nothing_but_a_run(const fs::path& run, IsOfARun&& is_of_it) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(run / "experiment.toml", error))) return false;
  for (fs::recursive_directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    const bool is_folder = fs::is_directory(it->symlink_status(error));
    if (!is_folder && !is_of_it(it->path().lexically_relative(run))) return false;
  }
  return !error;
}

// Whether a case of its batch has no record in cases.jsonl: its job waits, or its records are not collected. A shard
// that cannot be read may have such a case.
bool awaits_records_of_a_batch(const fs::path& run) {
  if (!is_there(run / "batch")) return false;
  try {
    std::set<std::int64_t> recorded;
    for (const record::CaseRecord& record : read_cases(run / "cases.jsonl").records)
      recorded.insert(record.identity.index);
    std::size_t shards = 0;
    std::error_code error;
    for (fs::directory_iterator it(run / "batch" / "shards", error), end; !error && it != end; it.increment(error)) {
      const auto plan = json_or_discarded(read_regular_file(it->path() / "shard.json"));
      if (!plan.is_object() || !plan.contains("cases") || !plan["cases"].is_array()) return true;
      for (const auto& index : plan["cases"])
        if (!index.is_number_integer() || !recorded.contains(index.get<std::int64_t>())) return true;
      ++shards;
    }
    return error || shards == 0;
  } catch (const StorageError&) {
    return true;
  }
}

bool is_data_set(const fs::path& folder) {
  const fs::path manifest = folder / manifest_name;
  std::error_code error;
  if (!fs::is_regular_file(manifest, error)) return false;
  try {
    const auto json = json_or_discarded(read_regular_file(manifest));
    return json.is_object() && json.value("format", nlohmann::ordered_json()) == data_format;
  } catch (const StorageError&) {
    return false;
  }
}

bool is_file_of_algorithms(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(file, error))) return false;
  try {
    const auto json = json_or_discarded(read_regular_file(file));
    return json.is_object() && json.contains("format") && json.contains("algorithms") && json.contains("limits");
  } catch (const StorageError&) {
    return false;
  }
}

Leftover data_set(const fs::path& folder) {
  Leftover leftover{Leftover::Kind::data, folder, "a generated data set", {}, 0, folder / lock_name};
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    const bool is_shard = name.starts_with("shard_") && (name.ends_with(".bin") || name.ends_with(".bin.partial"));
    if (is_shard || name == manifest_name || name == verified_name || name == lock_name) add_file(it->path(), leftover);
  }
  return leftover;
}

bool is_unfinished(const fs::path& file) { return file.extension() == ".partial"; }

void add_leftovers_of_run(const fs::path& run, std::vector<Leftover>& found) {
  const fs::path cases = run / "cases.jsonl";
  // The jobs of a batch hold their own files, and its cases have their records there until they are collected.
  if (is_there(run / "batch") || !is_at_rest(cases)) return;
  std::error_code error;
  if (fs::file_size(cases, error) == 0 && !error) {
    if (!has_nothing_but_a_run(run, is_of_a_run)) return;
    Leftover all{Leftover::Kind::run, run, "a run without a record", {}, 0, cases};
    add_files_below(run, all, [](const fs::path&) { return true; });
    found.push_back(std::move(all));
    return;
  }
  Leftover copies{Leftover::Kind::run, run / "files", "libraries that a killed run had taken", {}, 0, cases};
  add_files_below(copies.place, copies, [](const fs::path&) { return true; });
  if (!copies.files.empty()) found.push_back(std::move(copies));
  Leftover unfinished{Leftover::Kind::run, run, "unfinished files", {}, 0, cases};
  add_files_below(run, unfinished, is_unfinished);
  if (!unfinished.files.empty()) found.push_back(std::move(unfinished));
}

void look_below(const fs::path& folder, std::vector<Leftover>& found) {
  if (is_data_set(folder) && is_at_rest(folder / lock_name)) found.push_back(data_set(folder));
  // A run without a record has no cases.jsonl yet, or an empty one; its name and its experiment identify it.
  if (is_there(folder / "cases.jsonl")) return add_leftovers_of_run(folder, found);
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (!it->is_symlink() && it->is_directory(error)) folders.push_back(it->path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& below : folders) look_below(below, found);
}

}  // namespace

std::vector<Leftover> leftovers_of_cache(const fs::path& cache) {
  std::vector<Leftover> found;
  if (cache.empty() || !is_folder(cache)) return found;
  const auto add = [&](fs::path place, const char* what, auto&& counts) {
    Leftover leftover{Leftover::Kind::cache, std::move(place), what, {}, 0, {}};
    if (is_folder(leftover.place))
      add_files_below(leftover.place, leftover, counts);
    else
      add_file(leftover.place, leftover);
    if (!leftover.files.empty()) found.push_back(std::move(leftover));
  };
  const auto is_of_tables = [](const fs::path& file) { return file.extension() == tables_extension; };
  add(cache / "plugins", "tables of plugins; read anew when they are needed", is_of_tables);
  add(cache / "history.sqlite", "the index of assay history; made anew by its next call",
      [](const fs::path&) { return true; });
  // Files of algorithms lie beside them, one for each GPU and library.
  Leftover algorithms{Leftover::Kind::cache,
                      cache,
                      "algorithms of products, found by timing; found anew, which takes seconds a shape",
                      {},
                      0,
                      {}};
  std::error_code error;
  for (fs::directory_iterator it(cache, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json" && is_file_of_algorithms(it->path())) add_file(it->path(), algorithms);
  if (!algorithms.files.empty()) found.push_back(std::move(algorithms));
  return found;
}

std::vector<Leftover> leftovers_below(const fs::path& folder) {
  std::vector<Leftover> found;
  look_below(folder, found);
  return found;
}

std::vector<Leftover> old_runs_below(const fs::path& folder, double seconds_since_1970) {
  std::vector<Leftover> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path run = it->path();
    if (!fs::is_directory(it->symlink_status(error)) || !stamp_of_run(run)) continue;
    it.disable_recursion_pending();
    const fs::path cases = run / "cases.jsonl";
    std::error_code ignored;
    if (!has_nothing_but_a_run(run, is_of_a_run_with_records) || !is_at_rest(cases)) continue;
    Leftover all{Leftover::Kind::old_run, run, "a run with its records", {}, 0, cases};
    double newest_s = 0;
    add_files_below(run, all, [&](const fs::path& file) {
      const auto written = std::chrono::file_clock::to_sys(fs::last_write_time(file, ignored));
      newest_s = std::max(newest_s, std::chrono::duration<double>(written.time_since_epoch()).count());
      return true;
    });
    if (all.files.empty() || newest_s >= seconds_since_1970 || awaits_records_of_a_batch(run)) continue;
    found.push_back(std::move(all));
  }
  std::sort(found.begin(), found.end(), [](const Leftover& a, const Leftover& b) { return a.place < b.place; });
  return found;
}

std::uint64_t remove(const Leftover& leftover, std::vector<std::string>& problems) {
  std::uint64_t gone = 0;
  std::set<fs::path> folders;
  std::optional<Lock> lock;
  if (!leftover.lock.empty() && !lock.emplace(leftover.lock).is_mine()) {
    problems.push_back(fmt::format("{} stays: {}", one_line(leftover.place.string()), lock->reason()));
    return 0;
  }
  for (const fs::path& file : leftover.files) {
    std::error_code error;
    const auto bytes = fs::file_size(file, error);
    if (!fs::remove(file, error)) {
      if (error) problems.push_back(fmt::format("{} cannot be removed: {}", one_line(file.string()), error.message()));
      continue;
    }
    gone += bytes;
    for (fs::path above = file.parent_path(); above != leftover.place.parent_path() && above.has_relative_path();
         above = above.parent_path())
      folders.insert(above);
  }
  // The deepest first; one that is not empty stays.
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    std::error_code ignored;
    fs::remove(*folder, ignored);
  }
  // "latest" of the experiment must not lead nowhere.
  if (const fs::path latest = leftover.place.parent_path() / "latest"; leftover.kind == Leftover::Kind::old_run) {
    std::error_code ignored;
    if (fs::is_symlink(latest, ignored) && !fs::exists(latest, ignored)) fs::remove(latest, ignored);
  }
  return gone;
}

}  // namespace assay::host::results
