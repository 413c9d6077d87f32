// Carries one experiment through: devices, cases, records, views.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "experiment/experiment.hpp"
#include "launch/signals.hpp"
#include "results/store.hpp"
#include "run/case_group.hpp"
#include "run/case_process.hpp"
#include "run/run_listener.hpp"

namespace assay::host {

struct RunOptions {
  bool resume = false;
  bool in_process = false;
};

class ExperimentRun {
 public:
  ExperimentRun(const Experiment& experiment, const RunTarget& target, RunOptions options, RunListener& listener,
                std::optional<LaunchedRank> launched);
  // Runs what is to be run and writes the views. Returns the exit code. Throws StorageError when the disk refuses:
  // finished cases are kept then, too.
  int run();

 private:
  struct Device {
    Record probe;
    bool usable() const { return probe.value("status", "") == "ok"; }
    std::string kind() const { return probe["device"].value("kind", ""); }
    std::int32_t count() const { return probe.value("count", std::int32_t{1}); }
  };
  void open_folder();
  const Device& device_for(const Case& c);
  RankCount ranks_of(const Case& c, const Device& device) const;
  std::string hash_of(const Case& c, const Device& device);
  CaseOutcome run(const Case& c, const Device& device, const CaseContext& context);
  std::set<std::string> finished_before() const;  // hashes
  Record full_record(const Case& c, const std::string& hash, const Device& device, Record worker_part,
                     const std::string& started) const;
  void tell_of_nsys();  // where [profile] nsys cannot be honoured: the command that does it by hand
  int exit_code(const std::vector<Record>& records, bool interrupted) const;

  const Experiment& experiment_;
  const RunTarget& target_;
  RunOptions options_;
  RunListener& listener_;
  InterruptHandler interrupts_;
  const std::optional<LaunchedRank> launched_;
  std::unique_ptr<Crew> crew_;
  std::optional<RunFolder> folder_;
  bool resumed_ = false;
  std::map<std::string, Device> devices_;            // by [run] device
  std::map<std::string, std::string> input_hashes_;  // by path
};

}  // namespace assay::host
