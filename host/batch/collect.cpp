#include "batch/collect.hpp"

#include "common/files.hpp"
#include "common/foreign_json.hpp"
#include "common/parallel.hpp"
#include "common/sha256.hpp"
#include "record/json_tree.hpp"
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
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One record as its line with its end in the text of its file: 10,000 of them are some 80 MB.
using Line = std::string_view;

// What is read of a record. Only members of the record itself count: users name parameters and axes as they like.
struct Record {
  Line line;
  std::optional<std::int64_t> index;
  std::string plugin_hash, started, device_kind;
  std::vector<std::pair<std::string, std::string>> files;  // a role and a hash each
};

const record::JsonNode* member(const record::JsonNode* node, std::string_view key) {
  return node ? node->member(key) : nullptr;
}

std::string text_in(const record::JsonNode* node) {
  return node && node->kind == record::JsonNode::Kind::text ? std::string(node->text) : "";
}

Record record_of(Line line, record::JsonTree& tree) {
  Record record;
  record.line = line;
  const record::JsonNode* root = tree.read(line);
  if (const auto* index = member(root, "index"); index && index->kind == record::JsonNode::Kind::integer)
    record.index = index->integer;
  record.plugin_hash = text_in(member(member(root, "plugin"), "file_hash"));
  record.started = text_in(member(root, "started"));
  record.device_kind = text_in(member(member(root, "device"), "kind"));
  if (const auto* files = member(root, "files"); files && files->kind == record::JsonNode::Kind::object)
    for (const auto* file = files->begin(); file != files->end(); file = file->next())
      record.files.emplace_back(file->key, text_in(file));
  return record;
}

std::string text_of_file(const fs::path& cases_jsonl) {
  std::error_code ignored;
  return fs::is_regular_file(cases_jsonl, ignored) ? read_file(cases_jsonl) : "";
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  // A last line without an end is being written, or is torn.
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1)
    if (end > begin) lines.push_back(text.substr(begin, end + 1 - begin));
  return lines;
}

// A folder with records, and what its lines have to say of themselves to count.
struct Part {
  fs::path folder;
  std::vector<std::int64_t> indexes;  // of its cases, in order; empty: any
  std::string plugin_hash;            // "": any
};

std::vector<Part> attempts_of(const fs::path& run, const Submission& submission) {
  std::vector<Part> parts;
  for (const SubmittedArray& array : submission.arrays)
    for (std::int64_t task = 0; task < array.tasks; ++task) {
      const fs::path shard_folder = array.shard_folder(run, task);
      std::vector<std::int64_t> indexes = shard::read_shard_plan(shard_folder).cases;
      std::sort(indexes.begin(), indexes.end());
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

bool is_of(const Part& part, const Record& record) {
  return (part.indexes.empty() ||
          (record.index && std::binary_search(part.indexes.begin(), part.indexes.end(), *record.index))) &&
         (part.plugin_hash.empty() || record.plugin_hash == part.plugin_hash);
}

std::vector<Record> records_of(std::string_view text) {
  std::vector<Record> records;
  record::JsonTree tree;
  for (const Line line : lines_of(text)) records.push_back(record_of(line, tree));
  return records;
}

void write_lines(const fs::path& cases_jsonl, const std::vector<Record>& records) {
  std::string text;
  std::size_t bytes = 0;
  for (const Record& record : records) bytes += record.line.size();
  text.reserve(bytes);
  for (const Record& record : records) text += record.line;
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

// The same of a batch, whose records are there already: a note.
void note_builds(const std::vector<Record>& records, const fs::path& run, std::vector<std::string>& notes) {
  Builds builds;
  for (const Record& record : records)
    for (const auto& [role, hash] : record.files) add_build(builds, role, record.device_kind, hash, run);
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
  const std::string own_text = text_of_file(held.cases_path());
  std::vector<std::string> texts(parts.size());
  std::vector<std::vector<Record>> of_parts(parts.size());
  for_each_in_parallel(
      parts.size(),
      [&](std::size_t i) {
        texts[i] = text_of_file(parts[i].folder / "cases.jsonl");
        of_parts[i] = records_of(texts[i]);
      },
      Work::waiting);
  std::vector<Record> records;
  const std::vector<Line> own = lines_of(own_text);
  const std::size_t before = own.size();
  std::unordered_set<Line> known;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::size_t strange = 0;
    for (Record& record : of_parts[i])
      if (!is_of(parts[i], record))
        ++strange;
      else if (known.insert(record.line).second)
        records.push_back(std::move(record));
    if (strange > 0)
      collected.notes.push_back(
          fmt::format("{}: {} record(s) of another plugin, or of cases that its shard does not have; they are left out",
                      (parts[i].folder / "cases.jsonl").string(), strange));
  }
  record::JsonTree tree;
  for (const Line line : own)
    if (!known.contains(line)) records.push_back(record_of(line, tree));
  if (by_time)
    std::stable_sort(records.begin(), records.end(),
                     [](const auto& a, const auto& b) { return a.started < b.started; });
  note_builds(records, run, collected.notes);
  collected.records = static_cast<std::int64_t>(records.size());
  collected.added = static_cast<std::int64_t>(records.size() - before);
  // Before the records that name them.
  results::merge_environments(run, folders_of(parts), collected.notes);
  if (collected.added > 0) write_lines(held.cases_path(), records);
  return collected;
}

// "" where it is absent.
std::string fact_in(const Json& facts, const char* group, const char* name) {
  const auto of_group = facts.find(group);
  if (of_group == facts.end() || !of_group->is_object()) return "";
  const auto fact = of_group->find(name);
  if (fact == of_group->end()) return "";
  return fact->is_string() ? fact->get<std::string>() : fact->dump();
}

// Writes the environment of the first part, with the machines of all of them: a batch's run folder was made on a login
// node, which measured nothing.
void write_environment(const fs::path& run, const std::vector<fs::path>& folders) {
  Json environment;
  std::map<std::string, std::set<std::string>> hosts;  // by host: the jobs
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / "environment.json", ignored)) continue;
    Json facts = json_or_discarded(read_file(folder / "environment.json"));
    if (!facts.is_object()) continue;
    hosts[fact_in(facts, "os", "hostname")].insert(fact_in(facts, "job", "id"));
    if (environment.is_null()) environment = std::move(facts);
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
