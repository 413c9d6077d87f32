// A workload's schema, copied out of its tables: an experiment is validated against it.
#pragma once
#include "common/device_kinds.hpp"
#include "common/direction.hpp"
#include "common/value.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::plugin {

enum class ParamType { boolean, integer, real, text };

struct ParamSpec {
  std::string name;
  std::string unit;  // "" when none
  std::string help;
  ParamType type = ParamType::integer;
  Value default_value;  // of the alternative that `type` names
  bool required = false;
  std::optional<double> min, max;    // inclusive
  std::vector<std::string> choices;  // of a text; empty: any
  bool input_path = false;           // an existing file, relative to the experiment file; "" stands for no file
  bool output_path = false;          // written by the workload, relative to the run folder; "" stands for no file
  bool words = false;                // of a command line; an array of strings stands for them, too
};

struct MetricSpec {
  std::string name;
  std::string unit;
  std::string help;
  Direction direction = Direction::neither;
  bool per_step = true;
  std::vector<std::string> words;  // not empty: the value is an index into them
};

// What a choice stands for: where text parameters have these choices, on devices of this kind, `param` has this value
// unless the experiment gives it another value than its default.
struct PresetSpec {
  std::string when, choice;
  std::string also_when, also_choice;  // a further condition, or ""
  std::string device_kind;             // "" is any
  std::string param;
  Value value;
};

// What several ranks of a workload are to each other.
enum class RanksAre {
  unsaid,       // built before a workload could say it
  copies,       // each does the whole work, whatever the others do
  cooperating,  // they divide the work of a step, or talk to one another
};

struct WorkloadSchema {
  std::string id;
  std::string summary;
  std::string item_unit;  // "tokens"; "" when the workload counts nothing
  std::vector<ParamSpec> params;
  std::vector<MetricSpec> metrics;
  std::vector<std::string> phases;
  std::vector<PresetSpec> presets;
  std::vector<std::string> devices = device_kind_names();  // the kinds that it runs on
  bool verifies = false;
  bool starts_cold = false;  // heeds [measure] prepare = false
  RanksAre ranks = RanksAre::unsaid;
  bool steps_elsewhere = false;  // in other processes
  bool is_open = false;          // takes parameters, and reports phases and metrics, that are in no table

  bool runs_on(std::string_view kind) const { return std::find(devices.begin(), devices.end(), kind) != devices.end(); }
};

const char* name_of(ParamType type);  // "bool", "int", "float", "string"

}  // namespace assay::host::plugin
