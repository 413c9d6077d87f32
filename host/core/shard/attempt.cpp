#include "shard/attempt.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/files.hpp"

namespace assay::host::shard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path attempts_folder(const fs::path& shard_folder) { return shard_folder / "attempts"; }
fs::path attempt_folder(const fs::path& shard_folder, std::int64_t number) {
  return attempts_folder(shard_folder) / fmt::format("{:04}", number);
}

// What is not there, or is half written, is an object without keys.
Json object_in(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return Json::object();
  Json json = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

template <class T>
void read_into(const Json& json, const char* key, T& value) {
  try {
    if (const auto found = json.find(key); found != json.end()) found->get_to(value);
  } catch (const Json::exception&) {  // of another type: as if it were not there
  }
}

Json to_json(const AttemptClaim& claim) {
  Json json{{"job", claim.start.job}, {"restart", claim.start.restart}, {"host", claim.host},
            {"pid", claim.pid},       {"nodes", claim.nodes},           {"began_s", claim.began_s}};
  if (!claim.start.cluster.empty()) json["cluster"] = claim.start.cluster;
  if (!claim.start.kind.empty()) json["kind"] = claim.start.kind;
  return json;
}

AttemptClaim claim_in(const fs::path& folder) {
  const Json json = object_in(folder / "claim.json");
  AttemptClaim claim;
  read_into(json, "job", claim.start.job);
  read_into(json, "restart", claim.start.restart);
  read_into(json, "cluster", claim.start.cluster);
  read_into(json, "kind", claim.start.kind);
  read_into(json, "host", claim.host);
  read_into(json, "pid", claim.pid);
  read_into(json, "nodes", claim.nodes);
  read_into(json, "began_s", claim.began_s);
  return claim;
}

std::optional<AttemptEnd> end_in(const fs::path& folder) {
  const Json json = object_in(folder / "end.json");
  if (json.empty()) return std::nullopt;
  AttemptEnd end;
  read_into(json, "verdict", end.verdict);
  read_into(json, "reason", end.reason);
  read_into(json, "ended_s", end.ended_s);
  return end;
}

std::optional<AttemptProgress> progress_in(const fs::path& folder) {
  const Json json = object_in(folder / "progress.json");
  if (json.empty()) return std::nullopt;
  AttemptProgress progress;
  read_into(json, "case", progress.case_index);
  read_into(json, "stage", progress.stage);
  read_into(json, "step", progress.step);
  read_into(json, "steps", progress.steps);
  read_into(json, "at_s", progress.at_s);
  return progress;
}

// Opening the folder makes a network file system ask the server what is in it.
std::vector<std::int64_t> attempt_numbers(const fs::path& shard_folder) {
  std::vector<std::int64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator it(attempts_folder(shard_folder), error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.empty() && name.size() < 10 &&
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      numbers.push_back(std::strtoll(name.c_str(), nullptr, 10));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool is_over_already(const fs::path& folder, const AttemptClaim& holder, const JobStart& mine, const IsOver& is_over) {
  if (end_in(folder)) return true;
  if (!mine.job.empty() && holder.start.job == mine.job && holder.start.restart < mine.restart) return true;
  return is_over(holder);
}

}  // namespace

std::vector<Attempt> read_attempts(const fs::path& shard_folder) {
  std::vector<Attempt> attempts;
  for (const std::int64_t number : attempt_numbers(shard_folder)) {
    const fs::path folder = attempt_folder(shard_folder, number);
    attempts.push_back({number, folder, claim_in(folder), end_in(folder), std::nullopt});
    if (!attempts.back().end) attempts.back().progress = progress_in(folder);
  }
  return attempts;
}

std::vector<fs::path> attempt_folders(const fs::path& shard_folder) {
  std::vector<fs::path> folders;
  for (const std::int64_t number : attempt_numbers(shard_folder))
    folders.push_back(attempt_folder(shard_folder, number));
  return folders;
}

Claimed claim_next_attempt(const fs::path& shard_folder, const AttemptClaim& claim, const IsOver& is_over) {
  create_folders(attempts_folder(shard_folder));
  std::string prepared = (attempts_folder(shard_folder) / ".prepared-XXXXXX").string();
  if (!::mkdtemp(prepared.data())) throw_storage_error("create the folder", prepared, errno);
  ::chmod(prepared.c_str(), 0755);  // others may read a run
  const auto drop = [&prepared] {
    std::error_code ignored;
    fs::remove_all(prepared, ignored);
  };
  try {
    write_file_atomically(fs::path(prepared) / "claim.json", to_json(claim).dump() + "\n", Durable::yes);
    for (;;) {
      const std::vector<std::int64_t> numbers = attempt_numbers(shard_folder);
      const std::int64_t last = numbers.empty() ? 0 : numbers.back();
      if (last > 0) {
        const fs::path folder = attempt_folder(shard_folder, last);
        const AttemptClaim holder = claim_in(folder);
        if (!is_over_already(folder, holder, claim.start, is_over)) {
          drop();
          return {std::nullopt, last, holder};
        }
      }
      const fs::path mine = attempt_folder(shard_folder, last + 1);
      if (::rename(prepared.c_str(), mine.c_str()) == 0) {
        flush_name(mine);
        return {mine, last + 1, {}};
      }
      if (errno != EEXIST && errno != ENOTEMPTY) throw_storage_error("create the folder", mine, errno);
    }
  } catch (...) {
    drop();
    throw;
  }
}

bool is_superseded(const fs::path& shard_folder, std::int64_t number) {
  const std::vector<std::int64_t> numbers = attempt_numbers(shard_folder);
  return !numbers.empty() && numbers.back() > number;
}

void write_end(const fs::path& attempt_folder, const AttemptEnd& end) {
  const Json json{{"verdict", end.verdict}, {"reason", end.reason}, {"ended_s", end.ended_s}};
  write_file_atomically(attempt_folder / "end.json", json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
                        Durable::yes);
}

void write_progress(const fs::path& attempt_folder, const AttemptProgress& progress) {
  const Json json{{"case", progress.case_index},
                  {"stage", progress.stage},
                  {"step", progress.step},
                  {"steps", progress.steps},
                  {"at_s", progress.at_s}};
  write_file_atomically(attempt_folder / "progress.json", json.dump() + "\n");
}

}  // namespace assay::host::shard
