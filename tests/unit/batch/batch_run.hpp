// A run that was submitted as a batch, as its files have it, without a scheduler.
#pragma once
#include "batch/submission.hpp"
#include "batch/submit.hpp"

#include <fmt/format.h>

#include "common/files.hpp"
#include "results/store.hpp"
#include "shard/attempt.hpp"
#include "shard/journal.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::batch {

class BatchRun {
 public:
  using Event = shard::JournalEntry::Event;

  BatchRun() : run_(results::RunFolder::create(folder_.path(), "sweep", "schema = 1\n", "{}").path()) {
    submission_.experiment_file = "/e/x.toml", submission_.experiment_hash = "aa";
    submission_.plugin_file = "/p/x.so", submission_.plugin_hash = "bb", submission_.site = "/s/site.toml";
    site_.limits.margin = std::chrono::minutes(5);
  }

  // One round: each list of cases is a shard of the array, 100 s a case; `canary` comes first.
  void submit(const std::vector<std::vector<std::int64_t>>& shards, std::optional<std::int64_t> canary = {},
              std::int64_t unfinished_before = 0) {
    BatchPlan plan;
    if (canary) plan.arrays.push_back({{}, {{{{*canary, 100, 0}}}}, true});
    PackedArray array;
    for (const auto& cases : shards) {
      PackedShard shard;
      for (const std::int64_t index : cases) shard.cases.push_back({index, 100, unfinished_before});
      array.shards.push_back(shard);
    }
    plan.arrays.push_back(array);
    write_round(run_, submission_, plan, site_, "/opt/assay", "sweep");
  }
  void give_job(std::size_t array, const std::string& job) { set_job(run_, submission_.arrays.at(array), {job, ""}); }
  std::filesystem::path shard(std::size_t array, std::int64_t task) const {
    return submission_.arrays.at(array).shard_folder(run_, task);
  }
  // An attempt with what it says of its cases; `verdict` "": it goes on, or was killed.
  std::filesystem::path attempt(std::size_t array, std::int64_t task, std::int64_t number,
                                const std::vector<shard::JournalEntry>& entries, const std::string& verdict = "",
                                const std::string& records = "") {
    const auto folder = shard(array, task) / fmt::format("attempts/{:04}", number);
    test::put_file(folder / "claim.json", R"({"job":"70","restart":0,"host":"n1","nodes":["n1"],"began_s":1000})");
    shard::Journal journal(folder / "journal.jsonl");
    for (const auto& entry : entries) journal.append(entry);
    if (!records.empty()) test::put_file(folder / "cases.jsonl", records);
    if (!verdict.empty()) shard::write_end(folder, {verdict, "", 4600});
    return folder;
  }
  static shard::JournalEntry begin(std::int64_t index, double at_s = 2000) { return {Event::begin, index, at_s, ""}; }
  static shard::JournalEntry end(std::int64_t index, const std::string& status = "ok") {
    return {Event::end, index, 2050, status};
  }

  test::TemporaryFolder folder_;
  std::filesystem::path run_;
  Submission submission_;
  Site site_;
};

}  // namespace assay::host::batch
