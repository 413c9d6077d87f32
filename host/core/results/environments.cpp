#include "results/environments.hpp"

#include "common/files.hpp"
#include "record/environment_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;

fs::path folder_in(const fs::path& run) { return run / "environments"; }

fs::path file_of(const fs::path& run, const std::string& id) { return folder_in(run) / (id + ".json"); }

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// With the invocations that the file has already.
void add_file(const fs::path& run, const std::string& id, const std::string& text) {
  create_folders(folder_in(run));
  const fs::path file = file_of(run, id);
  record::JoinedEnvironment joined;
  if (is_file(file)) joined.add(read_file(file));
  joined.add(text);
  write_file_atomically(file, joined.text(), Durable::yes);
}

std::vector<fs::path> files_in(const fs::path& run) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder_in(run), error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json" && is_file(it->path())) files.push_back(it->path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string not_understood(const fs::path& file) {
  return fmt::format("{} is not a JSON object; its facts about the machine are left out", file.string());
}

}  // namespace

std::string add_invocation(const fs::path& run, const std::string& captured) {
  const fs::path newest = run / "environment.json";
  const auto file = record::environment_file(captured);
  std::error_code ignored;
  if (file && is_file(newest) && !fs::exists(folder_in(run), ignored))
    if (const auto before = record::environment_file(read_file(newest)))
      add_file(run, record::unnamed_environment, before->text);
  if (file) add_file(run, file->id, file->text);
  write_file_atomically(newest, captured + "\n");
  return file ? file->id : "";
}

void merge_environments(const fs::path& into, const std::vector<fs::path>& from, std::vector<std::string>& notes) {
  struct Merged {
    record::JoinedEnvironment joined;
    bool is_new = true;
  };
  std::map<std::string, Merged> by_id;
  for (const fs::path& folder : from)
    for (const fs::path& file : files_in(folder)) {
      const std::string id = file.stem().string();
      const auto [found, is_first] = by_id.try_emplace(id);
      Merged& merged = found->second;
      if (const fs::path there = file_of(into, id); is_first && is_file(there))
        merged.is_new = !merged.joined.add(read_file(there));
      if (!merged.joined.add(read_file(file))) notes.push_back(not_understood(file));
    }
  // Once for each, however many parts have it.
  for (const auto& [id, merged] : by_id) {
    const std::string text = merged.joined.text();
    if (text.empty() || (!merged.is_new && !merged.joined.has_grown())) continue;
    create_folders(folder_in(into));
    write_file_atomically(file_of(into, id), text, Durable::yes);
  }
}

std::optional<record::Environment> read_environment(const fs::path& file, std::vector<std::string>& warnings) {
  auto environment = record::Environment::parse(read_file(file));
  if (!environment) warnings.push_back(not_understood(file));
  return environment;
}

Environments read_environments(const fs::path& run, std::vector<std::string>& warnings) {
  Environments environments;
  for (const fs::path& file : files_in(run))
    if (auto environment = read_environment(file, warnings))
      environments.emplace(file.stem().string(), std::move(*environment));
  return environments;
}

}  // namespace assay::host::results
