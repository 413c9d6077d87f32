// Run folders of a test: a record a run, day by day, with the environment that it names.
#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "unit/compare/noisy_records.hpp"

namespace assay::host::history {

struct RunOnDisk {
  int day = 1;  // of November 2026
  std::vector<double> steps_ms;
  std::string revision = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", driver = "580.95.05", host = "node1";
  std::string status = "ok", size = "small";
  int repeat = 0;       // 0: none
  std::string command;  // of the run
};

inline std::string line_of(const RunOnDisk& run) {
  auto record = compare::record_of({{"size", run.size}}, run.steps_ms, {{"size", run.size}});
  record["started"] = fmt::format("2026-11-{:02}T12:{:02}:00Z", run.day, run.repeat);
  if (run.repeat > 0) record["repeat"] = run.repeat;
  record["host"] = run.host;
  record["status"] = run.status;
  record["device"]["driver"] = run.driver;
  return record.dump() + "\n";
}

inline std::filesystem::path put_run(const std::filesystem::path& results, const std::string& experiment,
                                     const RunOnDisk& run) {
  const auto folder = results / experiment / fmt::format("202611{:02}T120000Z-{:04x}", run.day, run.day);
  test::put_file(folder / "cases.jsonl", line_of(run));
  test::put_file(folder / "environment.json",
                 fmt::format(R"({{"schema":1,"command":"{}","os":{{"hostname":"{}"}},"assay":{{"revision":"{}"}}}})",
                             run.command, run.host, run.revision));
  return folder;
}

}  // namespace assay::host::history
