#include "run/node_ready_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "common/device_kinds.hpp"
#include "common/files.hpp"
#include "common/sha256.hpp"
#include "common/utc.hpp"
#include "shard/journal.hpp"
#include "telemetry/environment.hpp"

namespace assay::host::run {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t least_free_bytes = std::uint64_t{1} << 20;

void check_environment(const NodeReadyQuestion& question, shard::NodeReady& ready) {
  const auto value_of = [&](const std::string& name) -> std::string {
    const char* value = question.environment(name.c_str());
    return value ? value : "";
  };
  const shard::SitePromise& promised = question.plan.promised;
  if (!promised.batch_id.empty() && value_of("ASSAY_BATCH") != promised.batch_id)
    ready.problems.push_back(fmt::format(
        "the variables of the batch script do not arrive (ASSAY_BATCH is not set): what the prologue sets is "
        "lost; {}",
        promised.kind == "slurm" ? "take --export out of [slurm] srun_extra"
                                 : "let the container, or whatever starts assay, pass them on"));
  for (const std::string& wanted : promised.environment) {
    const std::size_t equals = wanted.find('=');
    const std::string name = wanted.substr(0, equals), found = value_of(name);
    if (equals == std::string::npos ? found.empty() : found != wanted.substr(equals + 1))
      ready.problems.push_back(fmt::format("{0} is {1}, and [{3}] environment has \"{2}\"; set it in [{3}] prologue",
                                           name, found.empty() ? "not set" : "'" + found + "'", wanted, promised.kind));
  }
}

// An image may have another build.
void check_program(const NodeReadyQuestion& question, shard::NodeReady& ready) {
  const std::string& wanted = question.plan.promised.program_hash;
  if (wanted.empty()) return;
  if (const std::string found = sha256_of_file("/proc/self/exe"); found != wanted)
    ready.problems.push_back(fmt::format(
        "{} in the container is another program than the one that submitted: SHA-256 {} there, {} here; "
        "submit with the image's program, or leave `assay` out of the site file where containers mount this one",
        fs::read_symlink("/proc/self/exe").string(), short_hash(found), short_hash(wanted)));
}

// Each device that a case of the shard names.
void check_devices(const NodeReadyQuestion& question, const LoadedExperiment& loaded, shard::NodeReady& ready) {
  if (!question.plan.promised.has_gpus) return;
  std::set<std::string> wanted;
  const std::vector<std::int64_t>& cases = question.plan.cases;
  for (const experiment::Case& c : loaded.experiment.cases)
    if (std::find(cases.begin(), cases.end(), c.index) != cases.end()) wanted.insert(c.run.device);
  for (const std::string& word : wanted) {
    if (word != "auto" && !is_gpu(word)) continue;
    const worker::FoundDevice found = question.find_device(word);
    if (std::string problem = problem_of_device(question.plan.promised, word, found); !problem.empty())
      ready.problems.push_back(std::move(problem));
    else
      ready.device = found.device.kind + " " + found.device.name;
  }
}

void look_at_memory_and_disk(const NodeReadyQuestion& question, shard::NodeReady& ready) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const auto environment = telemetry::capture_environment();
  if (const auto memory = environment.find("memory"); memory != environment.end())
    if (const auto available = memory->find("available_mib"); available != memory->end() && available->is_number())
      ready.memory_available_mib = available->get<double>();
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error)
    ready.problems.push_back(fmt::format("there is no folder for temporary files: {}; set TMPDIR in [{}] prologue",
                                         error.message(), question.plan.promised.kind));
  else if (const auto free = free_bytes(temporary))
    ready.temporary_free_mib = mib(*free);
  if (const auto free = free_bytes(question.folder)) {
    ready.results_free_mib = mib(*free);
    if (*free < least_free_bytes)
      ready.problems.push_back(
          fmt::format("no space is left for {}; delete old runs (`assay clean`), or submit with "
                      "--output on another file system",
                      question.folder.string()));
  }
}

}  // namespace

std::string problem_of_device(const shard::SitePromise& promised, const std::string& wanted,
                              const worker::FoundDevice& found) {
  if (!promised.has_gpus || (wanted != "auto" && !is_gpu(wanted))) return "";
  if (found.is_usable() && is_gpu(found.device.kind)) return "";
  const std::string why = found.is_usable() ? found.note : found.reason;
  return fmt::format(
      "[run] device = \"{}\" finds no GPU, and the site file asks for GPUs: {}; look at the node, or set "
      "[run] device = \"cpu\"",
      wanted, why.empty() ? "it is the " + found.device.kind : why);
}

shard::NodeReady check_node_ready(const NodeReadyQuestion& question, const LoadResult& loaded) {
  shard::NodeReady ready;
  ready.node = question.node;
  ready.at_s = seconds_since_1970();
  check_environment(question, ready);
  check_program(question, ready);
  for (const experiment::Mistake& mistake : loaded.mistakes) ready.problems.push_back(mistake.to_string());
  if (loaded.loaded) check_devices(question, *loaded.loaded, ready);
  look_at_memory_and_disk(question, ready);
  return ready;
}

}  // namespace assay::host::run
