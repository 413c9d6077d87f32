#include "run/node_health_check.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/command.hpp"
#include "common/files.hpp"
#include "common/host_file_name.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "results/case_order.hpp"
#include "results/reader.hpp"
#include "run/load_experiment.hpp"
#include "shard/journal.hpp"

namespace assay::host::run {
namespace {

namespace fs = std::filesystem;

std::string axes_of(const record::CaseRecord& record) {
  std::string text;
  for (const auto& [key, value] : record.identity.axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, host::to_text(value));
  return text.empty() ? "step" : text;
}

// A figure that the site may ask a least value of, and how many records were held to it.
struct Limit {
  const char* column;
  record::Number record::Rates::*rate;
  double unit;  // of the rate, to that of the column
  std::optional<double> least;
  std::size_t held = 0;
};

// The cases.jsonl below the folder of the check: each start of a job has a folder, with one run.
std::optional<fs::path> records_below(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename() == "cases.jsonl") return it->path();
  return std::nullopt;
}

}  // namespace

shard::NodeHealth judge_node(const std::string& node, const std::vector<record::CaseRecord>& records,
                             const shard::HealthRule& rule) {
  shard::NodeHealth health;
  health.node = node;
  Limit limits[] = {{"tflop_per_s", &record::Rates::gflop_per_s, 1000, rule.tflop_per_s_min},
                    {"gbytes_per_s", &record::Rates::gbytes_per_s, 1, rule.gbytes_per_s_min}};
  const bool asks_for_rates = rule.tflop_per_s_min || rule.gbytes_per_s_min;
  std::size_t judged = 0;
  for (const record::CaseRecord& record : records) {
    const std::string axes = axes_of(record);
    if (record.result.status == record::Status::unsupported) continue;
    ++judged;
    if (!record.result.is_ok()) {
      health.problems.push_back(fmt::format("{}: {}: {}", axes, record.result.status_text(), record.result.reason));
      continue;
    }
    bool has_rate = false;
    for (Limit& limit : limits) {
      const record::Number rate = record.result.rates ? (*record.result.rates).*limit.rate : std::nullopt;
      if (!rate) continue;
      has_rate = true;
      const double found = *rate / limit.unit;
      if (!std::isfinite(found)) {
        health.problems.push_back(fmt::format("{}: {} is {}, which is no figure", axes, limit.column, found));
        continue;
      }
      health.figures[axes + " " + limit.column] = found;
      if (!limit.least) continue;
      ++limit.held;
      if (!(found >= *limit.least))
        health.problems.push_back(
            fmt::format("{}: {} is {:.4g}, and the site asks for {:.4g}", axes, limit.column, found, *limit.least));
    }
    if (asks_for_rates && !has_rate)
      health.problems.push_back(fmt::format("{}: its record has no rate, and the site asks for rates", axes));
  }
  if (judged == 0) {
    health.problems.push_back("the health check has left no record that could be judged");
    return health;
  }
  for (const Limit& limit : limits)
    if (limit.least && limit.held == 0)
      health.problems.push_back(fmt::format("the site asks for {} of {:.4g}, and no record of the health check has it",
                                            limit.column, *limit.least));
  return health;
}

shard::NodeHealth check_node_health(const fs::path& batch_folder, const std::string& node, const shard::JobStart& start,
                                    const shard::HealthRule& rule) {
  if (auto known = shard::read_node_health(batch_folder, node)) return *known;
  // A file that is missing here, or has a mistake, says nothing of the node.
  if (const LoadResult loaded = load_experiment({rule.experiment, {}, {}, {}, {}}); !loaded.loaded)
    throw UsageError(fmt::format("the site's health check cannot start: {}", loaded.mistakes.front().to_string()));
  const fs::path folder =
      batch_folder / "nodes" / fmt::format("{}-{}-{}", file_name_of_host(node), start.job, start.restart);
  create_folders(folder);
  const CommandAnswer answer = run_command(
      {fs::read_symlink("/proc/self/exe").string(), "run", rule.experiment, "--quiet", "--output", folder.string()},
      std::chrono::seconds(rule.timeout_s));
  shard::NodeHealth health;
  if (const auto file = records_below(folder); file && !answer.timed_out) {
    health = judge_node(node, results::last_of_each_case(results::read_cases(*file).records), rule);
    // As where it was killed between two cases: those that are missing would not show.
    if (!answer.is_good() && health.is_healthy())
      health.problems.push_back(fmt::format("the health check {} ended with code {}: {}", rule.experiment,
                                            answer.exit_code, answer.complaint()));
  } else {
    health.problems.push_back(
        fmt::format("the health check {}: {}", rule.experiment,
                    answer.timed_out ? fmt::format("took more than {} s", rule.timeout_s) : answer.complaint()));
  }
  health.node = node, health.job = start.job, health.at_s = seconds_since_1970();
  shard::write_node_health(batch_folder, health);
  return health;
}

}  // namespace assay::host::run
