// Hears how a run goes on: the terminal, a program that reads events, a test.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "experiment/experiment.hpp"
#include "record/case_record.hpp"
#include "results/summary.hpp"
#include "run/estimate.hpp"

namespace assay::host::run {

// Called on the thread that carries the run out, in this order: run_started, estimated (but not of a shard), for each
// case case_started, progress and case_finished, and run_finished. A message may come at any time.
class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void run_started(const experiment::Experiment& experiment, const std::string& run_folder, bool resumed,
                           std::size_t skipped) = 0;
  // After run_started: how long the cases that are to run will take, as far as earlier runs show it.
  virtual void estimated(const Estimate& estimate) = 0;
  virtual void case_started(const experiment::Case& c, std::size_t position, std::size_t count) = 0;
  virtual void progress(const char* stage, std::int64_t step, std::int64_t total_steps, const std::string& phase,
                        const std::string& part) = 0;
  virtual void case_finished(const record::CaseRecord& record) = 0;
  virtual void message(const std::string& text) = 0;
  virtual void run_finished(const experiment::Experiment& experiment, const results::Views& views,
                            const std::string& run_folder, bool interrupted, int exit_code) = 0;
};

}  // namespace assay::host::run
