#include "run/node_health_check.hpp"

#include <fmt/format.h>

#include "common/command.hpp"
#include "common/files.hpp"
#include "results/case_order.hpp"
#include "results/reader.hpp"
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
  std::size_t judged = 0;
  for (const record::CaseRecord& record : records) {
    const std::string axes = axes_of(record);
    if (record.result.status == record::Status::unsupported) continue;
    ++judged;
    if (!record.result.is_ok()) {
      health.problems.push_back(fmt::format("{}: {}: {}", axes, record.result.status_text(), record.result.reason));
      continue;
    }
    if (!record.result.rates) continue;
    const auto hold = [&](const char* column, const std::optional<double>& rate, double unit,
                          const std::optional<double>& least) {
      if (!rate) return;
      const double found = *rate / unit;
      health.figures[axes + " " + column] = found;
      if (least && found < *least)
        health.problems.push_back(
            fmt::format("{}: {} is {:.4g}, and the site asks for {:.4g}", axes, column, found, *least));
    };
    hold("tflop_per_s", record.result.rates->gflop_per_s, 1000, rule.tflop_per_s_min);
    hold("gbytes_per_s", record.result.rates->gbytes_per_s, 1, rule.gbytes_per_s_min);
  }
  if (judged == 0) health.problems.push_back("the health check has left no record that could be judged");
  return health;
}

shard::NodeHealth check_node_health(const fs::path& batch_folder, const std::string& node, const shard::JobStart& start,
                                    const shard::HealthRule& rule) {
  if (auto known = shard::read_node_health(batch_folder, node)) return *known;
  const fs::path folder = batch_folder / "nodes" / fmt::format("{}-{}-{}", node, start.job, start.restart);
  create_folders(folder);
  const CommandAnswer answer = run_command(
      {fs::read_symlink("/proc/self/exe").string(), "run", rule.experiment, "--quiet", "--output", folder.string()},
      std::chrono::seconds(rule.timeout_s));
  shard::NodeHealth health;
  if (const auto file = records_below(folder); file && !answer.timed_out)
    health = judge_node(node, results::last_of_each_case(results::read_cases(*file).records), rule);
  else
    health.problems.push_back(
        fmt::format("the health check {}: {}", rule.experiment,
                    answer.timed_out ? fmt::format("took more than {} s", rule.timeout_s) : answer.complaint()));
  health.node = node, health.job = start.job, health.at_s = shard::seconds_since_1970();
  shard::write_node_health(batch_folder, health);
  return health;
}

}  // namespace assay::host::run
