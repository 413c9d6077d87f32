#include "results/reader.hpp"

#include "common/files.hpp"
#include "common/foreign_json.hpp"
#include "common/parallel.hpp"
#include "common/utc.hpp"
#include "record/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <tuple>

namespace assay::host::results {
namespace {

struct Line {
  std::string_view text;
  bool complete = true;  // has its end
};

std::vector<Line> lines_of(std::string_view view) {
  std::vector<Line> lines;
  for (std::size_t begin = 0; begin < view.size();) {
    const std::size_t end = view.find('\n', begin);
    const bool complete = end != std::string_view::npos;
    lines.push_back({view.substr(begin, complete ? end - begin : std::string_view::npos), complete});
    begin = complete ? end + 1 : view.size();
  }
  return lines;
}

// In the order of the lines; those that are no records are empty. Reading is most of the work with a large run.
std::vector<std::optional<record::CaseRecord>> records_of(const std::vector<Line>& lines) {
  std::vector<std::optional<record::CaseRecord>> records(lines.size());
  for_each_in_parallel(lines.size(), [&](std::size_t i) { records[i] = record::record_from_line(lines[i].text); });
  return records;
}

// What the lines from byte `from` on say, where a line begins. Numbers of lines are those of the whole text.
CasesFile cases_in(std::string_view text, std::size_t from, const std::filesystem::path& cases_jsonl) {
  CasesFile result;
  result.whole_bytes = from;
  // Counted for a warning alone: a large file has megabytes before its last line.
  const auto place_of_line = [&](std::size_t index) {
    const auto before = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(from), '\n');
    return fmt::format("{}:{}", cases_jsonl.string(), static_cast<std::size_t>(before) + index + 1);
  };
  const std::vector<Line> lines = lines_of(text.substr(from));
  std::vector<std::optional<record::CaseRecord>> records = records_of(lines);
  result.records.reserve(lines.size());
  std::size_t begin = from;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [line, complete] = lines[i];
    begin += line.size() + (complete ? 1 : 0);

    if (std::optional<record::CaseRecord>& record = records[i]) {
      result.records.push_back(std::move(*record));
      result.whole_bytes = begin;
      result.newline_missing = !complete;
    } else if (complete || nlohmann::json::accept(line)) {
      // Whole, whatever it says: it may come from a newer assay.
      result.whole_bytes = begin;
      result.newline_missing = !complete;
      if (!line.empty())
        result.warnings.push_back(fmt::format(
            "{}: {} bytes that are no record; expected a JSON object with a status; the line does not count",
            place_of_line(i), line.size()));
    } else {
      result.torn = true;
      result.warnings.push_back(fmt::format(
          "{}: the last line is torn after {} bytes (the host was stopped while writing it); that case does not "
          "count, and --resume runs it again",
          place_of_line(i), line.size()));
    }
  }
  return result;
}

}  // namespace

CasesFile read_cases(const std::filesystem::path& cases_jsonl) {
  std::error_code ignored;
  if (!std::filesystem::exists(cases_jsonl, ignored)) return {};
  return cases_in(read_regular_file(cases_jsonl), 0, cases_jsonl);
}

CasesFile read_last_case(const std::filesystem::path& cases_jsonl) {
  std::error_code ignored;
  if (!std::filesystem::exists(cases_jsonl, ignored)) return {};
  const std::string text = read_regular_file(cases_jsonl);
  // The last byte may be the last line's own end.
  const std::size_t before = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  return cases_in(text, before == std::string::npos ? 0 : before + 1, cases_jsonl);
}

std::optional<SummaryFile> read_summary_file(const std::filesystem::path& file) {
  const auto json = json_or_discarded(read_regular_file(file));
  const auto cases = json.is_object() ? json.find("cases") : json.end();
  if (cases == json.end() || !cases->is_array()) return std::nullopt;
  SummaryFile summary;
  for (const auto& entry : *cases)
    if (auto record = record::record_from_json(entry)) summary.records.push_back(std::move(*record));
  if (const auto metadata = json.find("metadata"); metadata != json.end() && metadata->is_object()) {
    if (const auto environment = metadata->find("environment"); environment != metadata->end())
      summary.environment = record::Environment::parse(record::json_text(*environment));
    if (const auto by_id = metadata->find("environments"); by_id != metadata->end() && by_id->is_object())
      for (const auto& [id, json] : by_id->items())
        if (auto environment = record::Environment::parse(record::json_text(json)))
          summary.environments.emplace(id, std::move(*environment));
    if (const auto name = metadata->find("experiment"); name != metadata->end() && name->is_string())
      summary.experiment = name->get<std::string>();
  }
  return summary;
}

std::optional<std::string> stamp_of_run(const std::filesystem::path& run_folder) {
  const std::string name = run_folder.filename().string();
  const std::size_t dash = name.find('-');
  if (dash == std::string::npos) return std::nullopt;
  std::string stamp = name.substr(0, dash);
  if (stamp.size() != 16 || !parse_utc(stamp)) return std::nullopt;
  return stamp;
}

std::string suffix_of_run(const std::filesystem::path& run_folder) {
  const std::string name = run_folder.filename().string();
  const std::size_t id = name.find('-');
  const std::size_t suffix = id == std::string::npos ? id : name.find('-', id + 1);
  return suffix == std::string::npos ? "" : name.substr(suffix);
}

namespace {

bool has_records(const std::filesystem::path& run_folder) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(run_folder / "cases.jsonl", error);
  return !error && bytes > 0;
}

}  // namespace

std::vector<std::filesystem::path> runs_newest_first(const std::filesystem::path& dir, const std::string& name,
                                                     const std::string& suffix) {
  const std::filesystem::path parent = dir / name;
  std::error_code error;
  const std::filesystem::path latest = std::filesystem::read_symlink(parent / "latest", error).filename();
  std::vector<std::filesystem::path> runs;
  for (std::filesystem::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (stamp_of_run(it->path()) && suffix_of_run(it->path()) == suffix &&
        std::filesystem::is_regular_file(it->path() / "experiment.toml", ignored) && has_records(it->path()))
      runs.push_back(it->path());
  }
  const auto age = [&latest](const std::filesystem::path& run) {
    return std::tuple(*stamp_of_run(run), run.filename() == latest, run);
  };
  std::sort(runs.begin(), runs.end(), [&age](const auto& a, const auto& b) { return age(a) > age(b); });
  return runs;
}

}  // namespace assay::host::results
