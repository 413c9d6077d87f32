#include "batch/collect.hpp"

#include "common/files.hpp"
#include "results/reader.hpp"
#include "results/store.hpp"
#include "shard/attempt.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  if (!fs::exists(cases_jsonl, ignored)) return lines;
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

std::vector<fs::path> attempts_of(const fs::path& run, const Submission& submission) {
  std::vector<fs::path> folders;
  for (const SubmittedArray& array : submission.arrays)
    for (std::int64_t task = 0; task < array.tasks; ++task)
      for (const shard::Attempt& attempt : shard::read_attempts(array.shard_folder(run, task)))
        folders.push_back(attempt.folder);
  return folders;
}

// The newest record of a case stands last in the file, where it counts.
Collected write_lines(const fs::path& cases_jsonl, std::vector<Line> lines, std::size_t before) {
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.started < b.started; });
  std::string text;
  std::size_t bytes = 0;
  for (const Line& line : lines) bytes += line.text.size() + 1;
  text.reserve(bytes);
  for (const Line& line : lines) text += line.text, text += '\n';
  write_file_atomically(cases_jsonl, text, Durable::yes);
  return {static_cast<std::int64_t>(lines.size()), static_cast<std::int64_t>(lines.size() - before), {}};
}

Collected merge_into(const fs::path& run, const std::vector<fs::path>& folders) {
  // Held, so that no other process of assay appends meanwhile.
  const results::RunFolder held = results::RunFolder::reopen(run, results::RunFolder::Reading::last_line);
  std::vector<Line> lines = lines_of(held.cases_path());
  const std::size_t before = lines.size();
  std::set<std::string> known;
  for (const Line& line : lines) known.insert(line.text);
  for (const fs::path& folder : folders)
    for (Line& line : lines_of(folder / "cases.jsonl"))
      if (known.insert(line.text).second) lines.push_back(std::move(line));
  if (lines.size() == before) return {static_cast<std::int64_t>(before), 0, held.notes()};
  Collected collected = write_lines(held.cases_path(), std::move(lines), before);
  collected.notes = held.notes();
  return collected;
}

// Writes the environment of the first part, with the machines of all of them: a batch's run folder was made on a login
// node, which measured nothing.
void write_environment(const fs::path& run, const std::vector<fs::path>& folders) {
  Json environment;
  std::map<std::string, std::set<std::string>> hosts;  // by host: the jobs
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (!fs::exists(folder / "environment.json", ignored)) continue;
    Json one = Json::parse(read_file(folder / "environment.json"), nullptr, false);
    if (!one.is_object()) continue;
    const std::string host = one.contains("os") ? one["os"].value("hostname", std::string()) : "";
    const std::string job = one.contains("job") ? one["job"].value("id", std::string()) : "";
    hosts[host].insert(job);
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
  const std::vector<fs::path> folders = attempts_of(run, submission);
  Collected collected = merge_into(run, folders);
  write_environment(run, folders);
  return collected;
}

Collected merge_runs(const fs::path& into, const std::vector<fs::path>& from) {
  Collected collected = merge_into(into, from);
  write_environment(into, from);
  return collected;
}

experiment::Experiment as_recorded(experiment::Experiment experiment, const std::vector<record::CaseRecord>& records) {
  std::map<std::int64_t, experiment::Case*> by_index;
  for (experiment::Case& c : experiment.cases) by_index[c.index] = &c;
  for (const record::CaseRecord& record : records) {
    const auto found = by_index.find(record.identity.index);
    if (found == by_index.end() || record.identity.axes != found->second->axes) continue;
    experiment::Case& c = *found->second;
    if (!c.params_of_any_device) c.params_of_any_device = c.params;
    c.params = {record.identity.params.begin(), record.identity.params.end()};
  }
  return experiment;
}

}  // namespace assay::host::batch
