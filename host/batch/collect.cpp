#include "batch/collect.hpp"

#include "common/files.hpp"
#include "common/parallel.hpp"
#include "common/sha256.hpp"
#include "common/utc.hpp"
#include "record/json.hpp"
#include "record/json_tree.hpp"
#include "results/case_order.hpp"
#include "results/environments.hpp"
#include "results/reader.hpp"
#include "results/store.hpp"
#include "shard/attempt.hpp"
#include "shard/shard_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One record as its line without its end in the text of its file: 10,000 of them are some 80 MB.
struct Record {
  std::string_view line;
  record::CaseRecord record;
};

std::string text_of_file(const fs::path& cases_jsonl) {
  std::error_code ignored;
  return fs::is_regular_file(cases_jsonl, ignored) ? read_file(cases_jsonl) : "";
}

// A folder with records, and what its lines have to say of themselves to count.
struct Part {
  fs::path folder;
  std::vector<std::int64_t> indexes;  // of its cases, in order; empty: any
  std::string plugin_hash;            // "": any
};

struct Attempts {
  std::vector<Part> parts;
  std::set<std::int64_t> cases;  // of all shards
};

Attempts attempts_of(const fs::path& run, const Submission& submission) {
  Attempts attempts;
  for (const SubmittedArray& array : submission.arrays)
    for (std::int64_t task = 0; task < array.tasks; ++task) {
      const fs::path shard_folder = array.shard_folder(run, task);
      std::vector<std::int64_t> indexes = shard::read_shard_plan(shard_folder).cases;
      std::sort(indexes.begin(), indexes.end());
      attempts.cases.insert(indexes.begin(), indexes.end());
      for (fs::path& folder : shard::attempt_folders(shard_folder))
        attempts.parts.push_back({std::move(folder), indexes, submission.plugin_hash});
    }
  return attempts;
}

std::vector<fs::path> folders_of(const std::vector<Part>& parts) {
  std::vector<fs::path> folders;
  for (const Part& part : parts) folders.push_back(part.folder);
  return folders;
}

bool is_of(const Part& part, const record::CaseIdentity& identity) {
  const bool is_its_case =
      part.indexes.empty() || std::binary_search(part.indexes.begin(), part.indexes.end(), identity.index);
  const std::string plugin_hash = identity.plugin ? identity.plugin->file_hash : "";
  return is_its_case && (part.plugin_hash.empty() || plugin_hash == part.plugin_hash);
}

// Records differ where they begin, with their case, or in their figures to the end. A hash of all of a line would cost
// more than the comparison with its equal, which follows anyway.
struct HashOfEnds {
  std::size_t operator()(std::string_view line) const {
    constexpr std::size_t end_bytes = 256;
    const std::hash<std::string_view> hash;
    const std::size_t last = line.size() - std::min(line.size(), end_bytes);
    return hash(line.substr(0, end_bytes)) ^ (hash(line.substr(last)) * 31) ^ line.size();
  }
};
using KnownLines = std::unordered_set<std::string_view, HashOfEnds>;

struct ReadLines {
  std::vector<Record> records;
  std::int64_t broken = 0, first_broken = 0;  // how many, and the number of the first one in the file
};

// The records among the lines, but for those that are known.
ReadLines read_lines(std::string_view text, const KnownLines& known = {}) {
  ReadLines read;
  std::int64_t number = 0;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++number;
    if (line.empty() || known.contains(line)) continue;
    if (auto record = record::record_from_line(line)) {
      read.records.push_back({line, std::move(*record)});
    } else if (end < text.size()) {  // otherwise it is being written, or is torn
      if (read.broken++ == 0) read.first_broken = number;
    }
  }
  return read;
}

void note_broken(const ReadLines& read, const fs::path& cases_jsonl, std::vector<std::string>& notes) {
  if (read.broken > 0)
    notes.push_back(fmt::format("{}: {} line(s) that are no record, the first of them line {}; they are left out",
                                cases_jsonl.string(), read.broken, read.first_broken));
}

KnownLines lines_of(std::string_view text) {
  KnownLines lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.insert(text.substr(begin, end - begin));
  }
  return lines;
}

// Sorted by when their cases began. Records that do not say so come first; those of one second stay in order.
void sort_by_start(std::vector<Record>& records) {
  std::vector<std::pair<std::optional<WallTime>, std::size_t>> order;
  for (const Record& record : records) order.emplace_back(parse_utc(record.record.started), order.size());
  if (std::is_sorted(order.begin(), order.end())) return;
  std::sort(order.begin(), order.end());
  std::vector<Record> sorted;
  sorted.reserve(records.size());
  for (const auto& [started, i] : order) sorted.push_back(std::move(records[i]));
  records = std::move(sorted);
}

bool are_lines_of(std::string_view text, const std::vector<Record>& records) {
  for (const Record& record : records) {
    const std::size_t length = record.line.size();
    if (text.size() <= length || text[length] != '\n' || !text.starts_with(record.line)) return false;
    text.remove_prefix(length + 1);
  }
  return text.empty();
}

std::string joined_lines(const std::vector<Record>& records) {
  std::string text;
  std::size_t bytes = 0;
  for (const Record& record : records) bytes += record.line.size() + 1;
  text.reserve(bytes);
  for (const Record& record : records) (text += record.line) += '\n';
  return text;
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

// The same of a batch, whose records are there already: a note.
void note_builds(const std::vector<Record>& records, const fs::path& run, std::vector<std::string>& notes) {
  Builds builds;
  for (const auto& [line, record] : records) {
    const std::string kind = record.result.device ? record.result.device->kind : "";
    for (const auto& [role, hash] : record.identity.files) add_build(builds, role, kind, hash, run);
  }
  for (const auto& [what, hashes] : builds)
    if (hashes.size() > 1)
      notes.push_back(
          fmt::format("its records were made with {} builds of the {}; `assay table --columns run,index,files.*` "
                      "says which",
                      hashes.size(), what));
}

// The last record of a case in the file counts: the newest one, whichever shard or later run by hand (`--resume`) made
// it. Records of one second stand in the order in which their parts were submitted, before those made by hand.
Collected merge_into(const fs::path& run, const std::vector<Part>& parts) {
  // Held, so that no other process of assay appends meanwhile.
  const results::RunFolder held = results::RunFolder::reopen(run, results::RunFolder::Reading::last_line);
  Collected collected;
  collected.notes = held.notes();
  std::vector<std::string> texts(parts.size());
  std::vector<ReadLines> of_parts(parts.size());
  for_each_in_parallel(
      parts.size(),
      [&](std::size_t i) {
        texts[i] = text_of_file(parts[i].folder / "cases.jsonl");
        of_parts[i] = read_lines(texts[i]);
      },
      Work::waiting);
  const std::string own_text = text_of_file(held.cases_path());
  const KnownLines own_lines = lines_of(own_text);
  std::vector<Record> records;
  KnownLines known;
  const auto add = [&](Record& record) {
    if (!known.insert(record.line).second) return;
    if (!own_lines.contains(record.line)) ++collected.added;
    records.push_back(std::move(record));
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const fs::path cases_jsonl = parts[i].folder / "cases.jsonl";
    std::size_t strange = 0;
    for (Record& record : of_parts[i].records)
      if (is_of(parts[i], record.record.identity))
        add(record);
      else
        ++strange;
    note_broken(of_parts[i], cases_jsonl, collected.notes);
    if (strange > 0)
      collected.notes.push_back(
          fmt::format("{}: {} record(s) of another plugin, or of cases that its shard does not have; they are left out",
                      cases_jsonl.string(), strange));
  }
  ReadLines own = read_lines(own_text, known);
  note_broken(own, held.cases_path(), collected.notes);
  const fs::path old_file = held.cases_path().string() + ".old";
  if (own.broken > 0) collected.notes.back() += "; " + old_file.string() + " keeps them";
  for (Record& record : own.records) add(record);
  sort_by_start(records);
  note_builds(records, run, collected.notes);
  collected.records = static_cast<std::int64_t>(records.size());
  // Before the records that name them.
  results::merge_environments(run, folders_of(parts), collected.notes);
  if (!are_lines_of(own_text, records)) {
    // A line that is no record here may be one of a newer assay, so it is kept in another file.
    if (own.broken > 0) write_file_atomically(old_file, own_text, Durable::yes);
    write_file_atomically(held.cases_path(), joined_lines(records), Durable::yes);
  }
  collected.cases.records.reserve(records.size());
  for (Record& record : records) collected.cases.records.push_back(std::move(record.record));
  return collected;
}

// "" where it is absent.
std::string fact_in(const record::JsonNode& facts, const char* group, const char* name) {
  const record::JsonNode* of_group = facts.member(group);
  const record::JsonNode* fact = of_group ? of_group->member(name) : nullptr;
  if (!fact) return "";
  return fact->kind == record::JsonNode::Kind::text ? std::string(fact->text) : record::json_of(*fact).dump();
}

// Writes the environment of the first part, with the machines of all of them: a batch's run folder was made on a login
// node, which measured nothing.
void write_environment(const fs::path& run, const std::vector<fs::path>& folders) {
  Json environment;
  std::map<std::string, std::set<std::string>> hosts;  // by host: the jobs
  record::JsonTree tree;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / "environment.json", ignored)) continue;
    const std::string text = read_file(folder / "environment.json");
    const record::JsonNode* facts = tree.read(std::string_view(text));
    if (!facts || facts->kind != record::JsonNode::Kind::object) continue;
    hosts[fact_in(*facts, "os", "hostname")].insert(fact_in(*facts, "job", "id"));
    if (environment.is_null()) environment = record::json_of(*facts);
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
  Attempts attempts = attempts_of(run, submission);
  Collected collected = merge_into(run, attempts.parts);
  write_environment(run, folders_of(attempts.parts));
  collected.submitted = std::move(attempts.cases);
  return collected;
}

void check_parts(const std::vector<fs::path>& folders) { check_one_build(folders); }

Collected merge_runs(const fs::path& into, const std::vector<fs::path>& from) {
  std::vector<Part> parts;
  for (const fs::path& folder : from) parts.push_back({folder, {}, ""});
  Collected collected = merge_into(into, parts);
  write_environment(into, from);
  return collected;
}

experiment::Experiment as_recorded(experiment::Experiment experiment, const std::vector<record::CaseRecord>& records) {
  const std::map<results::CaseNumber, std::size_t> by_number = results::places_by_number(experiment);
  for (const record::CaseRecord& record : records) {
    const auto found = by_number.find({record.identity.index, record.identity.repeat.value_or(1)});
    if (found == by_number.end()) continue;
    experiment::Case& c = experiment.cases[found->second];
    if (record.identity.axes != c.axes) continue;
    if (results::are_equal(record.identity.params, c.params)) continue;
    if (!c.params_of_any_device) c.params_of_any_device = c.params;
    c.params = {record.identity.params.begin(), record.identity.params.end()};
  }
  return experiment;
}

}  // namespace assay::host::batch
