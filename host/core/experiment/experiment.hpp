// An experiment, as its file says it after validation, and the cases it expands to.
#pragma once
#include "common/value.hpp"
#include "measure/stopping.hpp"
#include "plugin/schema.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::experiment {

// [measure]: what the measuring loop needs, and how long the whole case may take.
struct MeasureSettings : measure::MeasurePlan {
  bool prepare = true;  // false: the first step is taken with what it costs to find kernels and to take memory
  std::chrono::milliseconds timeout{600'000};
};

// What `RunSettings::ranks` says in place of a number of processes.
inline constexpr std::int64_t ranks_auto = -1;  // as many as the job that assay runs in; one when assay starts them
inline constexpr std::int64_t ranks_all = 0;    // one per device

struct RunSettings {
  std::string device = "auto";      // auto | cpu | cuda
  std::int64_t ranks = ranks_auto;  // or ranks_all, or their number
  bool copies = false;              // ranks of a workload whose ranks do not work together are asked for
  std::string bind = "none";        // none | cores: each rank of a host keeps to its own share of the cores
  // With several ranks: the case ends when none has shown a sign of life for so long (0: never), and when some rank
  // has not come to the meeting point after so long.
  std::chrono::milliseconds stall_timeout{120'000};
  std::chrono::milliseconds wireup_timeout{60'000};
  std::chrono::milliseconds teardown_timeout{30'000};  // from the beginning of destroy to a worker's end
  bool isolate = true;                                 // a worker process per case
  std::vector<std::string> allow;
  std::vector<std::string> hosts;  // that ssh reaches, with slots: ranks run there, and none here
  std::uint64_t seed = 1234;
  std::int64_t threads = 0;                                 // of the CPU device, per rank; 0: cores / local ranks
  std::optional<std::uint64_t> memory_limit_bytes;          // of the worker's resident memory
  std::uint64_t log_limit_bytes = std::uint64_t{64} << 20;  // of a worker's standard output and error
};

// What `ClusterSettings::ranks_per_node` says in place of a number.
inline constexpr std::int64_t ranks_per_node_auto = 0;  // as [run] ranks needs; one where that is not set

// [cluster]: the machines that a case wants, and for how long. A batch takes them from here; a case that is run by hand
// takes its number of ranks.
struct ClusterSettings {
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = ranks_per_node_auto;
  std::optional<std::chrono::milliseconds> budget;  // of one case, set-up and verification included
  bool each_node = false;                           // the same cases on every node, or pair of nodes, by itself
  std::optional<std::string> node;                  // the case runs there and nowhere else: "n1", "n1+n2"

  bool says_ranks() const { return nodes > 1 || ranks_per_node != ranks_per_node_auto; }
};

// [output], and what else is of the run as a whole.
struct OutputSettings {
  std::int64_t repeat = 1;             // how often each case runs, a record each
  std::string repeat_order = "turns";  // turns | together
  std::string verify = "full";         // full | first | sampled: which cases are verified in full
  std::filesystem::path dir = "results";
  std::vector<std::string> formats = {"json", "csv", "markdown"};
  std::vector<std::string> columns;           // empty: chosen from the workload's tables
  std::vector<std::string> reported_columns;  // of these, those that only a program's report can fill
  // Axes and the values that make a case the baseline of those that differ in nothing else; empty: there is none.
  std::vector<std::pair<std::string, Value>> relative_to;
};

struct ProfileSettings {
  bool nvtx = true;   // named ranges for an external profiler
  bool nsys = false;  // the worker runs under nsys where that is installed
  std::vector<std::string> nsys_trace = {"cuda", "nvtx", "osrt", "cublas", "cudnn"};  // what nsys then traces
  bool ncu = false;                  // Nsight Compute counts what the kernels of a step do; the case has no times
  std::int64_t ncu_launches = 1000;  // of them at most so many
  bool kernels = false;              // a table of kernels per phase, of a few steps after the measured ones
  bool memory_snapshot = false;      // a file for PyTorch's memory viewer
};

// One resolved set of values: what a worker process is started for.
struct Case {
  std::int64_t index = 0;  // 0-based, in sweep order
  // Which one it is of the cases that have had this index in a run that has grown: their files have separate names.
  std::int64_t namesake = 1;
  std::optional<std::int64_t> repeat;   // which time of [run] repeat, from 1; nothing where each case runs once
  std::map<std::string, Value> params;  // every parameter of the workload's table, defaults included
  // Integers of a workload that takes parameters of any name (`items_per_step = "{batch}"`): the parameter whose value
  // each has.
  std::map<std::string, std::string> params_from;
  std::set<std::string> given_params;  // those that the file, --set or an axis gives a value: no preset does
  MeasureSettings measure;
  RunSettings run;
  ClusterSettings cluster;
  ProfileSettings profile;
  std::vector<std::pair<std::string, Value>> axes;  // the swept keys and their values, in the file's order
  // Whether the experiment has several cases, whatever a filter leaves of them: the files that it writes bear its
  // number.
  bool is_one_of_several = false;
  // As the experiment has them, where the case's device has given some another value ("auto" is "fp16" there).
  std::optional<std::map<std::string, Value>> params_of_any_device;

  // The settings by their dotted names ("measure.warmup", "run.device", ...), for columns, filters and the record.
  std::map<std::string, Value> settings() const;
  // Those that are lists, which no axis, column or record has.
  std::map<std::string, std::vector<Value>> list_settings() const;
  // Axis, parameter or setting by name; nothing when there is none.
  std::optional<Value> find(const std::string& key) const;
};

// ".repeat2", for the names of files: a repeat overwrites none of another one. The first repeat, which a run may have
// begun with before there were others, has the names of a case that runs once: "".
std::string repeat_suffix(const std::optional<std::int64_t>& repeat);

struct Experiment {
  std::int64_t schema = 1;
  std::string name;
  std::string description;
  std::filesystem::path file;  // as given
  std::string plugin;          // as written in the file: a name, or a path
  OutputSettings output;
  std::vector<Case> cases;
  std::string resolved_toml;  // the file with --set applied and every default written out; parses to the same cases
};

}  // namespace assay::host::experiment
