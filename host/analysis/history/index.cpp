#include "history/index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "common/files.hpp"
#include "compare/inputs.hpp"
#include "record/json.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"
#include "results/run_source.hpp"

namespace assay::host::history {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t version = 2;
constexpr const char* tables =
    "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"  // what is lost is made anew
    "CREATE TABLE IF NOT EXISTS run (id INTEGER PRIMARY KEY, path TEXT UNIQUE, bytes INTEGER, changed_ns INTEGER,"
    "  experiment TEXT, revision TEXT, of_ab INTEGER);"
    "CREATE TABLE IF NOT EXISTS record (run INTEGER, offset INTEGER, bytes INTEGER, workload TEXT, series TEXT,"
    "  started TEXT, host TEXT, status TEXT);"
    "CREATE INDEX IF NOT EXISTS record_of_run ON record (run);";

struct State {
  std::int64_t bytes = 0, changed_ns = 0;
  bool operator==(const State&) const = default;
};

std::optional<State> state_of(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  if (error) return std::nullopt;
  const auto changed = fs::last_write_time(file, error);
  if (error) return std::nullopt;
  return State{static_cast<std::int64_t>(bytes),
               std::chrono::duration_cast<std::chrono::nanoseconds>(changed.time_since_epoch()).count()};
}

fs::path file_of(const fs::path& run) { return results::is_folder(run) ? run / "cases.jsonl" : run; }

struct Placed {
  std::int64_t offset = 0, bytes = 0;
  record::CaseRecord record;
};

// The case by what the user chose, and the kind of its device.
std::string series_of(const record::CaseRecord& record) {
  std::set<std::string> axes;
  for (const auto& axis : record.identity.axes) axes.insert(axis.first);
  const std::string device = record.result.device ? record.result.device->name : "";
  return fmt::format("{}\n{}\n{}", compare::fingerprint(compare::CaseInputs(record), axes),
                     record.identity.ranks.value_or(1), device);
}

std::vector<Placed> lines_of(const fs::path& file, std::vector<std::string>& warnings) {
  std::vector<Placed> placed;
  const std::string text = read_regular_file(file);
  std::size_t damaged = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (auto record = record::record_from_line(std::string_view(text).substr(begin, end - begin)))
      placed.push_back({static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin), std::move(*record)});
    else if (end > begin && end < text.size())  // the last one may be written just now
      ++damaged;
    begin = end + 1;
  }
  if (damaged > 0)
    warnings.push_back(fmt::format("{}: {} {} no record and {} not count; `assay table` names them", file.string(),
                                   damaged, damaged == 1 ? "line is" : "lines are", damaged == 1 ? "does" : "do"));
  return placed;
}

std::vector<Placed> records_of_summary(const fs::path& file) {
  std::vector<Placed> placed;
  std::optional<results::SummaryFile> summary = results::read_summary_file(file);
  if (!summary) return placed;
  for (std::size_t i = 0; i < summary->records.size(); ++i)
    placed.push_back({static_cast<std::int64_t>(i), 0, std::move(summary->records[i])});
  return placed;
}

// What results::last_of_each_case goes by.
std::string name_of_case(const record::CaseIdentity& id) {
  std::string name = fmt::format("{}\n{}", id.workload, id.repeat.value_or(0));
  for (const auto* values : {&id.axes, &id.params})
    for (const auto& [key, value] : *values) name += fmt::format("\n{}={}", key, to_text(value));
  return name;
}

// A case that was run again, or that is outdated, counts by its last record.
std::vector<Placed> last_of_each(std::vector<Placed> all) {
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < all.size(); ++i) last[name_of_case(all[i].record.identity)] = i;
  std::vector<Placed> kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (last[name_of_case(all[i].record.identity)] == i) kept.push_back(all[i]);
  return kept;
}

std::string experiment_of(const fs::path& run) {
  const fs::path folder = results::is_folder(run) ? run : run.parent_path();
  return (results::stamp_of_run(folder) ? folder.parent_path() : folder).filename().string();
}

// `assay ab` keeps its sides in FOLDER/a and FOLDER/b, and runs each with a number of repeats that grows.
bool is_of_ab(const fs::path& run, const record::Environment& environment) {
  const fs::path side = run.parent_path().parent_path();
  const std::string name = side.filename().string();
  if (name != "a" && name != "b") return false;
  return results::is_folder(side.parent_path() / (name == "a" ? "b" : "a")) &&
         environment.fact_or("command", "").find("run.repeat=") != std::string::npos;
}

std::vector<fs::path> canonical(const std::vector<fs::path>& folders) {
  std::vector<fs::path> all;
  for (const fs::path& folder : folders) {
    std::error_code error;
    all.push_back(fs::weakly_canonical(fs::absolute(folder), error));
  }
  return all;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// Opened, or made anew where it is damaged.
Database opened(const fs::path& file, std::vector<std::string>& warnings) {
  if (file.empty()) return Database({});
  if (const int error = try_creating_folders(file.parent_path()); error != 0) {
    warnings.push_back(fmt::format("the index {} cannot be kept: {}; the records are read anew each time",
                                   file.string(), std::generic_category().message(error)));
    return Database({});
  }
  for (const bool is_second : {false, true}) {
    try {
      Database database(file);
      Statement(database, "SELECT count(*) FROM sqlite_master").finish();
      return database;
    } catch (const DatabaseError& e) {
      std::error_code ignored;
      if (!is_second && e.is_damaged() && fs::remove(file, ignored)) continue;
      warnings.push_back(
          fmt::format("the index {} cannot be used: {}; the records are read anew", file.string(), e.what()));
      break;
    }
  }
  return Database({});
}

}  // namespace

fs::path Index::usual_file() {
  const auto variable = [](const char* name) -> fs::path {
    const char* const value = std::getenv(name);
    return value ? value : "";
  };
  if (std::getenv("ASSAY_CACHE_DIR"))
    return variable("ASSAY_CACHE_DIR").empty() ? fs::path() : variable("ASSAY_CACHE_DIR") / "history.sqlite";
  if (!variable("XDG_CACHE_HOME").empty()) return variable("XDG_CACHE_HOME") / "assay/history.sqlite";
  return variable("HOME").empty() ? fs::path() : variable("HOME") / ".cache/assay/history.sqlite";
}

Index::Index(const fs::path& file, std::vector<std::string>& warnings) : database_(opened(file, warnings)) {
  try {
    prepare();
  } catch (const DatabaseError& e) {  // it cannot be written to, or is somebody else's
    warnings.push_back(
        fmt::format("the index {} cannot be used: {}; the records are read anew", file.string(), e.what()));
    database_ = Database({});
    prepare();
  }
}

void Index::prepare() {
  Statement asked(database_, "PRAGMA user_version");
  asked.step();
  const std::int64_t found = asked.number(0);
  asked.finish();
  if (found != 0 && found != version) database_.run("DROP TABLE IF EXISTS run; DROP TABLE IF EXISTS record;");
  database_.run(tables);
  database_.run(fmt::format("PRAGMA user_version = {}", version).c_str());
}

bool Index::is_below(const fs::path& run) const {
  return std::any_of(folders_.begin(), folders_.end(), [&](const fs::path& folder) { return lies_in(run, folder); });
}

std::size_t Index::refresh(const std::vector<fs::path>& folders, std::vector<std::string>& warnings) {
  folders_ = canonical(folders);
  std::set<fs::path> there;
  for (const fs::path& folder : folders_) {
    const std::vector<fs::path> below = results::runs_below(folder);
    there.insert(below.begin(), below.end());
    if (below.empty() && results::is_there(folder / "cases.jsonl")) there.insert(folder);
  }
  std::size_t read = 0;
  database_.run("BEGIN IMMEDIATE");  // before what is known is read: another call may be adding the same runs
  try {
    std::map<fs::path, std::pair<std::int64_t, State>> known;
    for (Statement all(database_, "SELECT id, path, bytes, changed_ns FROM run"); all.step();)
      if (const fs::path run = all.text(1); is_below(run)) known[run] = {all.number(0), {all.number(2), all.number(3)}};
    Statement forget_records(database_, "DELETE FROM record WHERE run = ?");
    Statement forget_run(database_, "DELETE FROM run WHERE id = ?");
    for (const auto& [run, entry] : known) {
      if (there.contains(run) && state_of(file_of(run)) == entry.second) {
        there.erase(run);
        continue;
      }
      forget_records.bind(entry.first).finish();
      forget_run.bind(entry.first).finish();
    }
    for (const fs::path& run : there) {
      add(run, file_of(run), warnings);
      ++read;
    }
    database_.run("COMMIT");
  } catch (...) {
    try {
      database_.run("ROLLBACK");
    } catch (const DatabaseError&) {  // the reason for going back says more
    }
    throw;
  }
  return read;
}

void Index::add(const fs::path& run, const fs::path& file, std::vector<std::string>& warnings) {
  const std::optional<State> state = state_of(file);
  std::vector<Placed> placed;
  std::string revision;
  bool of_ab = false;
  try {
    placed = last_of_each(file.extension() == ".jsonl" ? lines_of(file, warnings) : records_of_summary(file));
    if (results::is_folder(run))
      if (const auto environment = results::run_source(run, warnings).environment) {
        revision = environment->fact_or("assay.revision", "");
        of_ab = is_of_ab(run, *environment);
      }
  } catch (const StorageError& e) {
    warnings.emplace_back(e.what());
    return;
  }
  if (!state) return;
  Statement(database_,
            "INSERT INTO run (path, bytes, changed_ns, experiment, revision, of_ab) VALUES (?, ?, ?, ?, ?, ?)")
      .bind(run.string())
      .bind(state->bytes)
      .bind(state->changed_ns)
      .bind(experiment_of(run))
      .bind(revision)
      .bind(static_cast<std::int64_t>(of_ab))
      .finish();
  Statement last(database_, "SELECT last_insert_rowid()");
  last.step();
  const std::int64_t id = last.number(0);
  Statement insert(database_, "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (const Placed& each : placed)
    insert.bind(id)
        .bind(each.offset)
        .bind(each.bytes)
        .bind(each.record.identity.workload)
        .bind(series_of(each.record))
        .bind(each.record.started)
        .bind(each.record.host)
        .bind(each.record.result.status_text())
        .finish();
}

std::vector<IndexedRecord> Index::records() const {
  std::vector<IndexedRecord> found;
  for (Statement all(
           database_,
           "SELECT path, offset, record.bytes, experiment, workload, series, started, host, status, of_ab FROM record "
           "JOIN run ON run.id = record.run ORDER BY started, path, offset");
       all.step();) {
    IndexedRecord each{all.text(0), all.number(1), all.number(2), all.text(3), all.text(4),
                       all.text(5), all.text(6),   all.text(7),   all.text(8), all.number(9) != 0};
    if (is_below(each.run)) found.push_back(std::move(each));
  }
  return found;
}

std::vector<IndexedRun> Index::runs() const {
  std::map<fs::path, IndexedRun> by_path;
  for (Statement all(database_, "SELECT path, experiment, revision FROM run"); all.step();)
    if (const fs::path run = all.text(0); is_below(run))
      by_path[run] = {run, all.text(1), all.text(2), "", "", {}, 0, 0};
  for (const IndexedRecord& record : records()) {
    IndexedRun& run = by_path[record.run];
    ++run.records;
    run.ok += record.status == "ok" ? 1 : 0;
    if (run.first_started.empty()) run.first_started = record.started;
    run.last_started = record.started;
    if (!record.host.empty() && std::find(run.hosts.begin(), run.hosts.end(), record.host) == run.hosts.end())
      run.hosts.push_back(record.host);
  }
  std::vector<IndexedRun> runs;
  for (auto& [path, run] : by_path) runs.push_back(std::move(run));
  std::stable_sort(runs.begin(), runs.end(),
                   [](const IndexedRun& a, const IndexedRun& b) { return a.first_started < b.first_started; });
  return runs;
}

}  // namespace assay::host::history
