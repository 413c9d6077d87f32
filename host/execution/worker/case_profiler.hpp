// What [profile] asks of a worker: ranges for an external profiler, the memory snapshot, the table of kernels.
//
// All of it is beside the measurement. What fails here, or is not offered by the device, is a note in the record; the
// case goes on.
#pragma once
#include <assay/profiling.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/recorder.hpp"
#include "plugin/device_library.hpp"
#include "profile/kernel_table.hpp"
#include "worker/case_memory.hpp"
#include "worker/case_spec.hpp"
#include "worker/device_ranges.hpp"

namespace assay::host::worker {

class CaseProfiler {
 public:
  CaseProfiler(const CaseSpec& spec, const plugin::OpenDevice& device, CaseMemory& memory, record::CaseResult& result);

  // The part that an external profiler records. Before the steps between the host's own work and the window: it may
  // take long.
  void start_range();
  // Around the measured steps: their ranges, and the end of that part. `recorder` and `phase_names` outlive the
  // measurement.
  void begin_measure(measure::Recorder& recorder, const std::vector<std::string>& phase_names);
  void end_measure(measure::Recorder& recorder);

  // Runs a few more steps and traces what they do on the device. After the measured ones, so that tracing does not slow
  // those down. `run_step` enqueues a step; `recorder` has given its samples away.
  void trace_kernels(measure::Timeline& timeline, measure::Recorder& recorder,
                     const std::vector<std::string>& phase_names,
                     const std::function<void(std::uint64_t step)>& run_step);

  // Runs one more step as the part that Nsight Compute counts, which runs each of its kernels several times.
  void count_kernels(measure::Timeline& timeline, measure::Recorder& recorder,
                     const std::function<void(std::uint64_t step)>& run_step);

  // Writes what was taken and released so far, once: a second call does nothing.
  void write_memory_snapshot();

 private:
  void note(std::string text);
  bool is_done(assay_status status, const char* doing);  // false: with a note
  bool write(const std::string& file, const std::string& bytes, const char* what);
  // The table of those steps whose work lies between their marks, and a note on the others.
  void record_table(std::vector<profile::TracedStep> steps, bool in_graph, const std::vector<std::string>& phase_names);

  const bool is_counted_;                   // by Nsight Compute, in a separate step
  const bool is_watched_;                   // named ranges, and the range that an external profiler records
  const std::string kernels_file_;          // Markdown: the table of kernels per phase; "": none
  const std::string memory_snapshot_file_;  // a pickle; "": none
  const plugin::OpenDevice& device_;
  CaseMemory& memory_;
  record::CaseResult& result_;
  const assay_profiler* profiler_;
  std::optional<DeviceRanges> ranges_;  // while steps are measured, on a device that offers ranges
};

}  // namespace assay::host::worker
