#include "shard/shard_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/files.hpp"

namespace assay::host::shard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path file_of_start(const fs::path& shard_folder, const char* what, const JobStart& start) {
  return shard_folder / (start.job.empty() ? what : fmt::format("{}-{}-{}", what, start.job, start.restart));
}

}  // namespace

double ShardPlan::budget_s_of(std::int64_t case_index) const {
  const auto found = std::find(cases.begin(), cases.end(), case_index);
  return found == cases.end() ? 0 : budgets_s[static_cast<std::size_t>(found - cases.begin())];
}

std::int64_t ShardPlan::unfinished_before_of(std::int64_t case_index) const {
  const auto found = std::find(cases.begin(), cases.end(), case_index);
  return found == cases.end() ? 0 : unfinished_before[static_cast<std::size_t>(found - cases.begin())];
}

void write_shard_plan(const fs::path& shard_folder, const ShardPlan& plan) {
  Json json{{"schema", 1},
            {"cases", plan.cases},
            {"budgets_s", plan.budgets_s},
            {"unfinished_before", plan.unfinished_before},
            {"experiment_file", plan.experiment_file},
            {"experiment_hash", plan.experiment_hash},
            {"plugin_file", plan.plugin_file},
            {"plugin_hash", plan.plugin_hash},
            {"promised",
             {{"has_gpus", plan.promised.has_gpus},
              {"batch_id", plan.promised.batch_id},
              {"environment", plan.promised.environment},
              {"cluster", plan.promised.cluster},
              {"kind", plan.promised.kind},
              {"program_hash", plan.promised.program_hash}}},
            {"canary", plan.is_canary}};
  if (const HealthRule& rule = plan.promised.health; !rule.experiment.empty()) {
    Json& health = json["promised"]["health"];
    health = {{"experiment", rule.experiment}, {"timeout_s", rule.timeout_s}};
    if (rule.tflop_per_s_min) health["tflop_per_s_min"] = *rule.tflop_per_s_min;
    if (rule.gbytes_per_s_min) health["gbytes_per_s_min"] = *rule.gbytes_per_s_min;
  }
  write_file_atomically(shard_folder / "shard.json", json.dump() + "\n");
}

void flush_shard_plan(const fs::path& shard_folder) {
  flush_to_disk(shard_folder / "shard.json");
  flush_folder(shard_folder);
}

ShardPlan read_shard_plan(const fs::path& shard_folder) try {
  const Json json = Json::parse(read_file(shard_folder / "shard.json"));
  ShardPlan plan;
  json.at("cases").get_to(plan.cases);
  json.at("budgets_s").get_to(plan.budgets_s);
  json.at("unfinished_before").get_to(plan.unfinished_before);
  json.at("experiment_file").get_to(plan.experiment_file);
  json.at("experiment_hash").get_to(plan.experiment_hash);
  json.at("plugin_file").get_to(plan.plugin_file);
  json.at("plugin_hash").get_to(plan.plugin_hash);
  json.at("canary").get_to(plan.is_canary);
  if (const auto promised = json.find("promised"); promised != json.end()) {
    promised->at("has_gpus").get_to(plan.promised.has_gpus);
    promised->at("batch_id").get_to(plan.promised.batch_id);
    promised->at("environment").get_to(plan.promised.environment);
    promised->at("cluster").get_to(plan.promised.cluster);
    plan.promised.kind = promised->value("kind", "slurm");  // older versions have none
    plan.promised.program_hash = promised->value("program_hash", "");
    if (const auto health = promised->find("health"); health != promised->end()) {
      HealthRule& rule = plan.promised.health;
      health->at("experiment").get_to(rule.experiment);
      health->at("timeout_s").get_to(rule.timeout_s);
      const auto number = [&](const char* key) {
        const auto found = health->find(key);
        return found == health->end() ? std::nullopt : std::optional(found->get<double>());
      };
      rule.tflop_per_s_min = number("tflop_per_s_min"), rule.gbytes_per_s_min = number("gbytes_per_s_min");
    }
  }
  if (plan.budgets_s.size() != plan.cases.size() || plan.unfinished_before.size() != plan.cases.size())
    throw StorageError("it does not say the same number of cases, budgets and earlier starts");
  return plan;
} catch (const std::exception& e) {
  throw StorageError(fmt::format("{} is no folder of a shard: {}; expected one that `assay submit` has made",
                                 shard_folder.string(), e.what()));
}

void mark_moved(const fs::path& shard_folder, const std::vector<std::int64_t>& cases) {
  std::set<std::int64_t> moved = moved_cases(shard_folder);
  moved.insert(cases.begin(), cases.end());
  write_file_atomically(shard_folder / "moved.json", Json(moved).dump() + "\n", Durable::yes);
}

std::set<std::int64_t> moved_cases(const fs::path& shard_folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(shard_folder / "moved.json", ignored)) return {};
  const Json json = Json::parse(read_file(shard_folder / "moved.json"), nullptr, /*allow_exceptions=*/false);
  std::set<std::int64_t> moved;
  if (json.is_array())
    for (const Json& index : json)
      if (index.is_number_integer()) moved.insert(index.get<std::int64_t>());
  return moved;
}

fs::path verdict_file(const fs::path& shard_folder, const JobStart& start) {
  return file_of_start(shard_folder, "verdict", start);
}

fs::path stop_file(const fs::path& shard_folder, const JobStart& start) {
  return file_of_start(shard_folder, "stop", start);
}

}  // namespace assay::host::shard
