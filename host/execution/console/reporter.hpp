// What a run reports: progress and a table for people, one JSON event a line for programs (docs/experiment.md,
// "Events"), and its errors alone for whoever wants to hear nothing else.
#pragma once
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"
#include "record/case_record.hpp"
#include "results/summary.hpp"
#include "results/terminal.hpp"
#include "run/run_listener.hpp"

namespace assay::host::console {

enum class ReportMode { people, quiet, json };

// "expected: about 4:10 for 12 of 15 cases, as in results/sizes/20261124T120000Z-9f2c; no earlier run has the others";
// "" where nothing is known.
std::string estimate_text(const run::Estimate& estimate);
nlohmann::ordered_json estimate_json(const run::Estimate& estimate);

class Reporter final : public run::RunListener {
 public:
  explicit Reporter(ReportMode mode);

  void run_started(const experiment::Experiment& experiment, const std::string& run_folder, bool resumed,
                   std::size_t skipped) override;
  void estimated(const run::Estimate& estimate) override;
  void case_started(const experiment::Case& c, std::size_t position, std::size_t count) override;
  void progress(const char* stage, std::int64_t step, std::int64_t total_steps, const std::string& phase,
                const std::string& part) override;
  void case_finished(const record::CaseRecord& record) override;
  void message(const std::string& text) override;
  void run_finished(const experiment::Experiment& experiment, const results::Views& views,
                    const std::string& run_folder, bool interrupted, int exit_code) override;

 private:
  // Adds the time, and the case that is at hand.
  void emit(const char* name, const nlohmann::ordered_json& fields);
  // What is reported where nobody reads a table.
  void tell_errors(const results::Views& views, const std::vector<std::string>& problems, const std::string& run_folder,
                   int exit_code) const;

  ReportMode mode_;
  results::Progress progress_;
  std::string stage_;
  std::chrono::steady_clock::time_point stage_begin_{}, last_event_{};
  std::optional<std::int64_t> index_, repeat_;  // of the case that is at hand
};

}  // namespace assay::host::console
