// The folder of one run, while it is being written.
//
//   <dir>/<name>/<UTC stamp>-<4 hex digits>/   experiment.toml  environment.json  environments/  cases.jsonl  logs/
//                                              and the views
//   <dir>/<name>/latest                        a link to the newest that has a record
#pragma once
#include "common/fd.hpp"
#include "common/files.hpp"
#include "common/utc.hpp"
#include "record/case_record.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace assay::host::results {

// Holds the lock on its cases.jsonl: two hosts never append to one run. Everything that fails throws StorageError.
class RunFolder {
 public:
  // `suffix` ends the folder's name: "-part-2-of-8". `latest` points there with the first record, so that a run that
  // was interrupted before is nobody's latest. With a suffix it stays where it points: a part is not the run.
  static RunFolder create(const std::filesystem::path& dir, const std::string& name, const std::string& resolved_toml,
                          const std::string& environment_json, WallTime now = std::chrono::system_clock::now(),
                          const std::string& suffix = "");
  // To append to. A torn last line is cut off; notes() says so, and names all lines that are no records, or, of a run
  // whose records are read anyway, the last one alone.
  enum class Reading { all_lines, last_line };
  static RunFolder reopen(const std::filesystem::path& run_folder, Reading reading = Reading::all_lines);

  // An existing folder that holds a part of a run's records, and nothing of its experiment: an attempt of a shard.
  static RunFolder open_part(const std::filesystem::path& folder, const std::string& environment_json);

  // For a run that was measured at another time than now: `latest` stays at a run of this experiment with a later date.
  void leave_latest_to_newer();

  // Points `latest` there, for a run whose records come from elsewhere. What stands in the way becomes a note.
  void become_latest();

  // For a run that was reopened: what is appended from here on was made in this environment, the newest one. create()
  // and open_part() do so themselves. Each invocation stands in environments/ID.json.
  void begin_invocation(const std::string& environment_json);
  // The id of that environment, for records; "" before it is known.
  const std::string& environment_id() const { return environment_id_; }

  // A line each, on the disk when this returns. On failure the file is as it was before the call.
  void append(const record::CaseRecord& record) { append_all(std::span(&record, 1)); }
  void append_all(std::span<const record::CaseRecord> records);

  // For a run that resumes with an experiment that has changed since: the file then says what the run holds from now
  // on.
  void replace_experiment(const std::string& resolved_toml);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path cases_path() const { return path_ / "cases.jsonl"; }
  std::filesystem::path logs_path() const { return path_ / "logs"; }
  // What the user should know: little free space, a torn line, no `latest`.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  void open_cases();

  std::filesystem::path path_;
  bool becomes_latest_ = false;  // with its first record
  Fd cases_;
  std::string environment_id_;
  std::vector<std::string> notes_;
};

// Makes `parent`/`stamp`-<id>`suffix` with the first id of `draw_id` (its low 16 bits) that is not taken.
std::filesystem::path make_unique_folder(const std::filesystem::path& parent, const std::string& stamp,
                                         const std::function<std::uint32_t()>& draw_id, const std::string& suffix = "");

}  // namespace assay::host::results
