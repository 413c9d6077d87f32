#include "batch/collect.hpp"

#include "common/files.hpp"
#include "common/foreign_json.hpp"
#include "common/sha256.hpp"
#include "record/environment.hpp"
#include "results/case_order.hpp"
#include "results/environments.hpp"
#include "results/reader.hpp"
#include "results/store.hpp"
#include "shard/attempt.hpp"
#include "shard/shard_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One record as its line, unparsed: 10,000 of them are some 50 MB.
struct Line {
  std::string text;
  std::string started;
};

// The value of the first "key": in a line that assay wrote. `started` is of the record and no text of the user's has an
// unescaped quote before it.
std::string text_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return "";
  line.remove_prefix(at + key.size());
  return std::string(line.substr(0, line.find_first_of("\",}")));
}

std::vector<Line> lines_of(const fs::path& cases_jsonl) {
  std::vector<Line> lines;
  std::error_code ignored;
  if (!fs::is_regular_file(cases_jsonl, ignored)) return lines;
  const std::string text = read_file(cases_jsonl);
  const std::string_view view = text;
  // A last line without an end is being written, or is torn.
  for (std::size_t begin = 0, end = 0; (end = view.find('\n', begin)) != std::string_view::npos; begin = end + 1)
    if (end > begin) {
      const std::string_view line = view.substr(begin, end - begin);
      lines.push_back({std::string(line), text_after(line, "\"started\":\"")});
    }
  return lines;
}

// A folder with records, and what its lines have to say of themselves to count.
struct Part {
  fs::path folder;
  std::set<std::string> indexes;  // of its cases, as text; empty: any
  std::string plugin_hash;        // "": any
};

std::vector<Part> attempts_of(const fs::path& run, const Submission& submission) {
  std::vector<Part> parts;
  for (const SubmittedArray& array : submission.arrays)
    for (std::int64_t task = 0; task < array.tasks; ++task) {
      const fs::path shard_folder = array.shard_folder(run, task);
      std::set<std::string> indexes;
      for (const std::int64_t index : shard::read_shard_plan(shard_folder).cases) indexes.insert(std::to_string(index));
      for (const shard::Attempt& attempt : shard::read_attempts(shard_folder))
        parts.push_back({attempt.folder, indexes, submission.plugin_hash});
    }
  return parts;
}

std::vector<fs::path> folders_of(const std::vector<Part>& parts) {
  std::vector<fs::path> folders;
  for (const Part& part : parts) folders.push_back(part.folder);
  return folders;
}

bool is_of(const Part& part, const std::string& line) {
  return (part.indexes.empty() || part.indexes.contains(text_after(line, "\"index\":"))) &&
         (part.plugin_hash.empty() || text_after(line, "\"file_hash\":\"") == part.plugin_hash);
}

void write_lines(const fs::path& cases_jsonl, const std::vector<Line>& lines) {
  std::string text;
  std::size_t bytes = 0;
  for (const Line& line : lines) bytes += line.text.size() + 1;
  text.reserve(bytes);
  for (const Line& line : lines) text += line.text, text += '\n';
  write_file_atomically(cases_jsonl, text, Durable::yes);
}

// By what a record names in `files`, with the kind of its device: the hashes, and a folder with each. Inputs are the
// experiment's business, and may be several.
using Builds = std::map<std::string, std::map<std::string, fs::path>>;

void add_build(Builds& builds, const std::string& role, const std::string& device_kind, const std::string& hash,
               const fs::path& folder) {
  if (role.starts_with("input.") || hash.empty()) return;
  builds[role == "device" ? "device " + device_kind : role].emplace(hash, folder);
}

// Two builds of one thing are two things that are measured.
void check_one_build(const std::vector<fs::path>& folders) {
  Builds builds;
  for (const fs::path& folder : folders)
    for (const record::CaseRecord& record :
         results::last_of_each_case(results::read_cases(folder / "cases.jsonl").records)) {
      const std::string kind = record.result.device ? record.result.device->kind : "";
      for (const auto& [role, hash] : record.identity.files) add_build(builds, role, kind, hash, folder);
      if (record.identity.files.empty() && record.identity.plugin)
        add_build(builds, "plugin", kind, record.identity.plugin->file_hash, folder);
    }
  for (const auto& [what, hashes] : builds)
    if (hashes.size() > 1)
      throw StorageError(fmt::format(
          "{} and {} were run with different builds of the {}: SHA-256 {} and {}; expected parts of one run",
          hashes.begin()->second.string(), std::next(hashes.begin())->second.string(), what,
          short_hash(hashes.begin()->first), short_hash(std::next(hashes.begin())->first)));
}

// The same of a batch, whose records are there already: a note. Few records differ in what they say of files, so that
// few are parsed.
void note_builds(const std::vector<Line>& lines, const fs::path& run, std::vector<std::string>& notes) {
  std::set<std::pair<std::string, std::string>> told;  // by kind of device
  for (const Line& line : lines) {
    const std::size_t begin = line.text.find("\"files\":{");
    const std::size_t end = begin == std::string::npos ? begin : line.text.find('}', begin);
    if (end == std::string::npos) continue;
    const std::size_t object = begin + std::string_view("\"files\":").size();
    told.emplace(text_after(line.text, "\"device\":{\"kind\":\""), line.text.substr(object, end + 1 - object));
  }
  Builds builds;
  for (const auto& [kind, text] : told)
    if (const Json files = json_or_discarded(text); files.is_object())
      for (const auto& [role, hash] : files.items())
        if (hash.is_string()) add_build(builds, role, kind, hash.get<std::string>(), run);
  for (const auto& [what, hashes] : builds)
    if (hashes.size() > 1)
      notes.push_back(
          fmt::format("its records were made with {} builds of the {}; `assay table --columns run,index,files.*` "
                      "says which",
                      hashes.size(), what));
}

// The last record of a case in the file counts. Parts come in the order in which they were submitted, whatever the
// clocks of their machines say; what the run has from elsewhere (`--resume`) was made after a collection, and stays
// last.
Collected merge_into(const fs::path& run, const std::vector<Part>& parts, bool by_time) {
  // Held, so that no other process of assay appends meanwhile.
  const results::RunFolder held = results::RunFolder::reopen(run, results::RunFolder::Reading::last_line);
  Collected collected;
  collected.notes = held.notes();
  std::vector<Line> lines, own = lines_of(held.cases_path());
  const std::size_t before = own.size();
  std::set<std::string> known;
  for (const Part& part : parts) {
    std::size_t strange = 0;
    for (Line& line : lines_of(part.folder / "cases.jsonl"))
      if (!is_of(part, line.text))
        ++strange;
      else if (known.insert(line.text).second)
        lines.push_back(std::move(line));
    if (strange > 0)
      collected.notes.push_back(
          fmt::format("{}: {} record(s) of another plugin, or of cases that its shard does not have; they are left out",
                      (part.folder / "cases.jsonl").string(), strange));
  }
  for (Line& line : own)
    if (!known.contains(line.text)) lines.push_back(std::move(line));
  if (by_time)
    std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.started < b.started; });
  note_builds(lines, run, collected.notes);
  collected.records = static_cast<std::int64_t>(lines.size());
  collected.added = static_cast<std::int64_t>(lines.size() - before);
  // Before the records that name them.
  results::merge_environments(run, folders_of(parts), collected.notes);
  if (collected.added > 0) write_lines(held.cases_path(), lines);
  return collected;
}

// Writes the environment of the first part, with the machines of all of them: a batch's run folder was made on a login
// node, which measured nothing.
void write_environment(const fs::path& run, const std::vector<fs::path>& folders) {
  Json environment;
  std::map<std::string, std::set<std::string>> hosts;  // by host: the jobs
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / "environment.json", ignored)) continue;
    const std::string text = read_file(folder / "environment.json");
    const auto facts = record::Environment::parse(text);
    Json one = json_or_discarded(text);
    if (!facts || !one.is_object()) continue;
    hosts[facts->fact_or("os.hostname", "")].insert(facts->fact_or("job.id", ""));
    if (environment.is_null()) environment = std::move(one);
  }
  if (environment.is_null()) return;
  environment.erase("job");
  Json parts = Json::array();
  for (const auto& [host, jobs] : hosts) {
    Json part{{"host", host}};
    for (const std::string& job : jobs)
      if (!job.empty()) part["jobs"].push_back(job);
    parts.push_back(std::move(part));
  }
  environment["collected_from"] = std::move(parts);
  write_file_atomically(run / "environment.json",
                        environment.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

Collected collect_batch(const fs::path& run, const Submission& submission) {
  const std::vector<Part> parts = attempts_of(run, submission);
  Collected collected = merge_into(run, parts, false);
  write_environment(run, folders_of(parts));
  return collected;
}

void check_parts(const std::vector<fs::path>& folders) { check_one_build(folders); }

Collected merge_runs(const fs::path& into, const std::vector<fs::path>& from) {
  std::vector<Part> parts;
  for (const fs::path& folder : from) parts.push_back({folder, {}, ""});
  Collected collected = merge_into(into, parts, true);
  write_environment(into, from);
  return collected;
}

experiment::Experiment as_recorded(experiment::Experiment experiment, const std::vector<record::CaseRecord>& records) {
  std::map<std::pair<std::int64_t, std::int64_t>, experiment::Case*> by_number;  // index and repeat
  for (experiment::Case& c : experiment.cases) by_number[{c.index, c.repeat.value_or(1)}] = &c;
  for (const record::CaseRecord& record : records) {
    const auto found = by_number.find({record.identity.index, record.identity.repeat.value_or(1)});
    if (found == by_number.end() || record.identity.axes != found->second->axes) continue;
    experiment::Case& c = *found->second;
    if (!c.params_of_any_device) c.params_of_any_device = c.params;
    c.params = {record.identity.params.begin(), record.identity.params.end()};
  }
  return experiment;
}

}  // namespace assay::host::batch
