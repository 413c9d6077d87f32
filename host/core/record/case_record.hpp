// The record of one case as types: what one line of cases.jsonl says (docs/record.md describes the fields and their
// units). record/json.hpp spells it as JSON and reads it back; nothing else knows a key.
//
// NaN and infinity are `null` in JSON; a value never reported is absent.
#pragma once
#include "common/direction.hpp"
#include "common/stage.hpp"
#include "common/value.hpp"
#include "record/status.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::host::record {

// The axis, and setting, of the number of ranks.
inline constexpr const char* ranks_axis = "run.ranks";

// Values by name. They keep their order: axes, metrics and phases read in the order in which the experiment and the
// workload's tables declare them.
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

// The value with this name, or null. `list` outlives what is returned.
template <class T>
const T* find(const Named<T>& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [name](const auto& entry) { return entry.first == name; });
  return found == list.end() ? nullptr : &found->second;
}
template <class T>
const T* find(const std::optional<Named<T>>& list, std::string_view name) {
  return list ? find(*list, name) : nullptr;
}

using Number = std::optional<double>;
inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// The times of the whole step, or of one of the workload's phases.
struct Phase {
  Number mean_ms, std_ms, cv, min_ms, max_ms, p50_ms, p90_ms, p95_ms, p99_ms, ci_low_ms, ci_high_ms, confidence;
  std::optional<std::int64_t> n;
  std::vector<double> samples_ms;
  Number host_mean_ms;     // on the host's clock, over the same marks
  Number share;            // the mean over the step's mean
  Number device_mean_ms;   // of the step alone: its mean on the device's own timeline
  Number autocorrelation;  // of neighbouring samples
  Number effective_n;      // so many independent samples would give as narrow a mean
};

// How the samples of the step were taken.
struct Sampling {
  std::string rule;  // what chose their number: "steps", "until", "default"
  std::optional<std::int64_t> settling_steps;
  std::optional<std::int64_t> unrecorded_steps;  // within the window; nothing where there are none
  std::string mode;                              // "waited", "back to back"
  std::optional<std::int64_t> inner;             // steps of a sample
  bool is_cold = false;                          // caches were flushed before each
  Number instrument_us;                          // what a sample with nothing in it takes
};

// A metric that the workload reports in each step.
struct StepMetric {
  std::string unit;
  Direction direction = Direction::neither;
  Number mean, std, min, max, last;
  std::optional<std::int64_t> n;
  std::vector<double> samples;
};

// A metric that the workload reports once.
struct CaseMetric {
  double value = no_number;  // a whole one is a count, and is written as one
  std::string unit;
  Direction direction = Direction::neither;
  std::optional<std::string> word;  // where the metric is one of a few words
};

// A count that crossed the plugin's border as a double is a count again: 128625408, not 128625408.0. Above 2^53 doubles
// are no exact counts.
inline Value count_if_whole(double value) {
  constexpr double exact_below = 9007199254740992.0;
  if (value > -exact_below && value < exact_below && value == static_cast<double>(static_cast<std::int64_t>(value)))
    return static_cast<std::int64_t>(value);
  return value;
}
inline Value value_of(const CaseMetric& metric) { return count_if_whole(metric.value); }

struct Work {  // of one step
  std::uint64_t flops = 0, bytes = 0, items = 0;
  std::string item_unit;   // "tokens"
  std::string arithmetic;  // of the flops: "bf16"; "" where the workload does not state it
};

struct Rates {
  Number gflop_per_s, gbytes_per_s, items_per_s;
};

// The most that the devices of a case do together, and how that is known.
struct Peak {
  Number gflop_per_s, gbytes_per_s;
  std::string text;
};

// The same steps with communication left out: what ranks pay for working together (worker/silent_pass.hpp).
struct SilentPass {
  std::int64_t steps = 0;
  Number step_mean_ms;       // of several ranks, the slowest one's
  Number communication_tax;  // the measured steps' mean over this, less 1
};

// Steps after the measured ones that give the phases, where the events that time phases would have taken too much of
// the measured steps (worker/phase_pass.hpp).
struct PhasePass {
  std::int64_t steps = 0;
  Number step_mean_ms;  // of these steps; of several ranks, the slowest one's
  std::optional<std::int64_t> events;
  Number event_us;  // what the device's backend states that each adds to a step
};

// What the step is compared with (record/efficiency.hpp).
struct Efficiency {
  std::optional<Peak> stated, measured;  // by the table of devices, by trial
  Number mfu, bound_percent;             // of the stated peak
  Number mfu_measured, bound_percent_measured;
  Number j_per_item, items_per_j;
};

struct Figure {
  double mean = no_number, min = no_number, max = no_number;
};

// The most that was held within a step, over the measured steps.
struct StepPeak : Figure {
  std::vector<double> samples;  // of each step; empty where steps are short
};

struct MemoryAtMoment {
  std::string name;
  // By kind; a kind that was never held is left out.
  std::optional<Named<double>> current_mib, peak_mib;
  Number current_total_mib, peak_total_mib;
  // With several ranks: the largest difference between what two of them hold, of one kind or in total. Absent if all
  // hold the same.
  Number rank_spread_mib;
};

struct Memory {
  std::optional<std::vector<MemoryAtMoment>> moments;
  std::optional<Named<double>> peak_mib;  // by kind, over the whole case
  Number peak_total_mib;
  std::optional<StepPeak> step_peak_mib;  // of all kinds together, within each measured step
  Number process_peak_mib;
  // The device's memory after the measured steps, by its own account: what the process has taken since it was opened,
  // and what of it the account by kind does not know.
  Number device_used_mib, unexplained_mib;
};

// A case of the same run that was verified in full.
struct VerifiedCase {
  std::int64_t index = -1;
  std::optional<std::int64_t> repeat;
  std::string hash;
  Verification status = Verification::ok;
};
std::string text_of(const VerifiedCase& which);  // "case 3 (9f2c0a1b7d3e4f55)"

struct VerificationResult {
  Verification status = Verification::not_checked;
  std::string text;
  std::string mode = {};                       // of [run] verify; "" where all cases are verified in full
  std::optional<VerifiedCase> refers_to = {};  // which computes the same
};

// Who else used the processors over the measured window.
struct ProcessorShares {
  Number window_s, others_share, steal_share, wait_share, stall_share, foreign_wait_share, foreign_stall_share;
  std::optional<std::uint64_t> busy_threads;
};

// How many threads the workload was given on the CPU, and how they wait for one another.
struct Threads {
  std::optional<std::int64_t> count;
  std::string count_from;   // why so many
  Number taken_processors;  // in older records: by other processes when the run began
  std::string waiting;      // how
  std::optional<std::int64_t> spin_count;
  Number spin_us;
  bool empty() const { return !count; }
};

struct Telemetry {
  std::optional<std::uint64_t> samples;
  Number period_ms;
  std::optional<Figure> gpu_utilisation_percent, cpu_utilisation_percent;
  Number utilisation_span_s;
  std::vector<double> step_utilisation_percent;  // of each measured step; empty where steps are too short for it
  std::optional<Figure> sm_clock_mhz, memory_clock_mhz, power_w, temperature_c;
  Number energy_j;                        // by the device's counter
  Number power_integral_j;                // by the samples of power
  std::optional<Named<double>> throttle;  // by reason: its share of the time
  std::optional<std::uint64_t> foreign_processes;
  Number foreign_memory_mib;
};

struct Validity {
  ValidityVerdict verdict = ValidityVerdict::unknown;
  std::string text;
};

struct Device {
  std::string kind;  // "cpu", "cuda"
  std::optional<std::int32_t> ordinal;
  std::string name;
  std::optional<std::int32_t> compute_units;
  Number memory_total_mib;
  std::string libraries;
  std::string bus_address;  // "" where the hardware has none
  std::string uuid;         // "GPU-...", "MIG-..." of a part of one; "" where the hardware has none
  std::string driver;
  std::string abi;    // "1.1": of its table, as the backend was built
  std::string build;  // of the backend
  Number max_sm_clock_mhz, max_memory_clock_mhz, application_sm_clock_mhz, application_memory_clock_mhz;
  Number power_limit_w, default_power_limit_w;
};

struct Plugin {
  std::string id, version, build, file_hash;
  std::string abi = {};  // "1.3": that it was built against
};

struct KernelTrace {
  std::int64_t steps = 0;
  double step_ms = 0, busy_ms = 0;
  bool in_graph = false;
  std::string file;  // "" when it could not be written
};

// One kernel's work in one phase of a step.
struct KernelRow {
  std::string kernel_class, name;
  double count = 0, time_us = 0, share = 0;
};
using Kernels = Named<std::vector<KernelRow>>;  // by phase

// The launches of one kernel in a step, as Nsight Compute counted them. Shares are of the most that it knows of the
// device, the mean over the launches by their time.
struct CountedKernel {
  std::string kernel_class, name;
  std::int64_t count = 0;
  double time_us = 0;        // of all of them
  Number dram_bytes, flops;  // likewise; absent if some launch does not report it
  Number dram_percent, sm_percent, tensor_percent, occupancy_percent;
  std::string bound;  // "memory", "tensor cores", "instructions", "latency"; "" where it is not known
};

// What Nsight Compute has counted. A case that has it has no times: profile/counted_kernels.hpp.
struct CounterProfile {
  std::string version;  // of ncu; "" where it did not say
  std::int64_t launches = 0;
  bool is_at_limit = false;  // [profile] ncu_launches: there may have been more
  std::string table, file;   // of the run folder: ncu's own, and what assay made of it ("": could not be written)
  std::vector<CountedKernel> kernels;  // those that take longest first
};

// What is known of one of several ranks.
struct RankEntry {
  std::int32_t rank = 0;
  std::string host;
  // In a case in which every rank is ok.
  std::optional<std::int32_t> device;
  Number step_mean_ms, step_std_ms, step_p50_ms, step_min_ms, step_max_ms;
  std::optional<Named<double>> phases, step_metrics;  // the means
  std::optional<Named<Value>> metrics;                // those that differ between the ranks
  Number memory_peak_mib, process_peak_mib;
  std::optional<Named<double>> telemetry;
  std::optional<ValidityVerdict> validity;
  // In a case that has failed.
  std::optional<Status> status;
  std::optional<Stage> stage;
  std::string phase;
  std::optional<std::int64_t> step;
  std::string reason;
};

struct Straggler {
  std::int32_t rank = 0;
  double share = 0;  // of the steps, in which this rank was the slowest
};

// Where the time of a case went, in the order of its stages. `repeat` is a part of `verify`: the steps that are taken
// once more for the account. Of several ranks each is the largest, and parts are those of the rank whose stage took
// longest, so that they add up to no more than it.
struct WallTimes {
  Number case_s, load_s, create_s, setup_s, warmup_s, measure_s, finish_s, verify_s, repeat_s, peak_s, destroy_s;
  Named<double> setup_parts_s, verify_parts_s;  // by the names that the workload gives them
  // `stage`: its place in the order of time, from 1; 0 where it is none of the stages.
  struct Row {
    const char* name = "";
    Number WallTimes::*time = nullptr;
    std::size_t stage = 0;
  };
  static constexpr std::array<Row, 11> all();
  // The stages alone, in the order of time. They add up to nearly the whole case.
  static constexpr std::array<Row, 9> stages();
  bool empty() const;
};
constexpr std::array<WallTimes::Row, 11> WallTimes::all() {
  // The first three as older records have them.
  return {{{"measure", &WallTimes::measure_s, 5},
           {"setup", &WallTimes::setup_s, 3},
           {"case", &WallTimes::case_s, 0},
           {"load", &WallTimes::load_s, 1},
           {"create", &WallTimes::create_s, 2},
           {"warmup", &WallTimes::warmup_s, 4},
           {"finish", &WallTimes::finish_s, 6},
           {"verify", &WallTimes::verify_s, 7},
           {"repeat", &WallTimes::repeat_s, 0},
           {"peak", &WallTimes::peak_s, 8},
           {"destroy", &WallTimes::destroy_s, 9}}};
}
constexpr std::array<WallTimes::Row, 9> WallTimes::stages() {
  std::array<Row, 9> ordered;
  for (const Row& row : all())
    if (row.stage > 0) ordered.at(row.stage - 1) = row;
  return ordered;
}
inline bool WallTimes::empty() const {
  for (const Row& row : all())
    if (this->*row.time) return false;
  return setup_parts_s.empty() && verify_parts_s.empty();
}

// What was to be run: known before the case starts.
struct CaseIdentity {
  std::int64_t index = -1;             // in the experiment, from 0
  std::optional<std::int64_t> repeat;  // which time of [run] repeat, from 1; absent where each case runs once
  std::string hash;
  Named<Value> axes;
  std::optional<std::int32_t> ranks;
  std::string workload;
  std::optional<Plugin> plugin;
  Named<std::string>
      files;  // SHA-256 of what makes the number: "host", "plugin", "device", "comm.gloo", "input.weights"
  Named<Value> params, settings;
};

// What became of it: the worker's part of the record, or what its supervisor knows of a worker that left none.
struct CaseResult {
  Status status = Status::ok;
  std::string unknown_status;  // its word, where the status is unknown
  std::string reason;
  std::optional<Stage> stage;  // where it ended
  std::string phase;
  std::string part;                  // of setup or the verification; "" if none was reported
  std::optional<std::int32_t> rank;  // of several, the one that ended the case
  std::optional<Device> device;
  Named<std::string> libraries;                   // that the worker had loaded: the build id of each, by its name
  Named<std::string> algorithms;                  // that libraries have chosen, by what they were chosen for
  std::optional<std::vector<std::string>> notes;  // absent when no worker reported
  WallTimes wall;
  std::optional<Work> work;
  std::string memory_snapshot;  // a file of the run folder, or ""
  std::optional<KernelTrace> kernel_trace;
  std::optional<Kernels> kernels;
  std::optional<CounterProfile> ncu;
  std::optional<ProcessorShares> contention;
  Threads threads;
  std::optional<Telemetry> telemetry;
  std::optional<Validity> validity;
  std::optional<Memory> memory;
  std::optional<VerificationResult> verify;
  std::optional<Named<CaseMetric>> metrics;
  // These belong to a case that is ok: a number only if correct.
  std::optional<Named<Phase>> phases;  // "step" first
  std::optional<Named<StepMetric>> step_metrics;
  std::optional<Sampling> sampling;
  std::optional<Rates> rates;
  std::optional<Efficiency> efficiency;
  std::optional<SilentPass> silent;
  std::optional<PhasePass> phase_pass;
  Number drift;
  std::optional<std::int64_t> step;  // of the stage, where a case that is not ok ended
  std::vector<std::string> log_tail;
  // Only of several ranks.
  std::optional<std::int32_t> copies;  // that did the same work side by side; absent where the ranks worked together
  std::vector<RankEntry> by_rank;
  std::optional<Straggler> straggler;
  Number spread;

  bool is_ok() const { return status == Status::ok; }
  std::string status_text() const { return status == Status::unknown ? unknown_status : name_of(status); }
  void note(std::string text) {
    if (!notes) notes.emplace();
    notes->push_back(std::move(text));
  }
};

struct CaseRecord {
  CaseIdentity identity;
  CaseResult result;
  std::string started;      // UTC
  std::string host;         // the name of the machine that led the case
  std::string environment;  // the id of the environment it ran in: environments/ID.json of the run folder
  // A case that the experiment no longer has. Not part of the file: a later run of the experiment decides it.
  bool is_former = false;
};

// The result of a case that ended before a worker could report anything.
inline CaseResult result_without_worker(Status status, std::string reason) {
  CaseResult result;
  result.status = status;
  result.reason = std::move(reason);
  result.stage = Stage::load;
  return result;
}

// The times of the whole step; null where the case has none.
const Phase* step_of(const CaseResult& result);

// The same text for two records of one measurement, as in a folder that was copied: when, where and of what, with the
// figures to the last bit. "" of a record that has no time or figure, or does not say when.
std::string measurement_key(const CaseRecord& record);

}  // namespace assay::host::record
