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
  const std::string before = is_file(file) ? read_file(file) : "";
  write_file_atomically(file, (before.empty() ? text : record::with_invocations_of(before, text)) + "\n", Durable::yes);
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
  return fmt::format("{}: no JSON object; what it says about the machine is left out", file.string());
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
  std::map<std::string, std::string> before, merged;  // by id
  for (const fs::path& folder : from)
    for (const fs::path& file : files_in(folder)) {
      std::string text = read_file(file);
      if (!record::Environment::parse(text)) {
        notes.push_back(not_understood(file));
        continue;
      }
      const std::string id = file.stem().string();
      if (!before.contains(id)) {
        const fs::path there = file_of(into, id);
        before[id] = is_file(there) ? read_file(there) : "";
        merged[id] = before[id];
      }
      std::string& all = merged[id];
      all = (all.empty() ? text : record::with_invocations_of(all, text)) + "\n";
    }
  // Once for each, however many parts have it.
  for (const auto& [id, text] : merged) {
    if (text == before[id]) continue;
    create_folders(folder_in(into));
    write_file_atomically(file_of(into, id), text, Durable::yes);
  }
}

Environments read_environments(const fs::path& run, std::vector<std::string>& warnings) {
  Environments environments;
  for (const fs::path& file : files_in(run)) {
    if (auto environment = record::Environment::parse(read_file(file)))
      environments.emplace(file.stem().string(), std::move(*environment));
    else
      warnings.push_back(not_understood(file));
  }
  return environments;
}

}  // namespace assay::host::results
