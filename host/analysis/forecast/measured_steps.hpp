// Steps on several ranks, and the messages between them, read from records.
#pragma once
#include "forecast/wire.hpp"
#include "record/case_record.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::forecast {

// A training step with collectives of one kind, on so many ranks.
struct MeasuredStep {
  int ranks = 1;
  double step_s = 0;
  std::optional<double> silent_s;                 // without its communication
  double backward_s = 0;                          // that collectives may run beside; 0: the workload has no such phase
  double collectives = 0, bytes = 0;              // of a step on this rank
  double small_collectives = 0, small_bytes = 0;  // of these, those of at most small_message_bytes; 0: not known
  double communication_s = 0, exposed_s = 0;      // from the start of collectives to their end; that the step waited
  bool overlaps = false;                          // collectives run beside the backward; false of one rank
  double items = 0;                               // of a step, of all ranks
  int records = 1;                                // whose mean this is
  Link link;
  int machines = 1;
  // On a CPU: so many ranks of a machine, with as many threads as these, have their own processors. Not known: each
  // has its own device.
  std::optional<double> ranks_at_full_speed;
};

// The same case on several numbers of ranks, from the fewest on; several records of one number count by their mean.
struct StepFamily {
  std::string
      label;  // the axes without the number of ranks, and the parameters that distinguish it from others of this label
  std::string workload, item_unit;
  std::set<std::string> doubts;          // verdicts of its records that are not "valid"
  record::Named<Value> params;           // that its records say
  std::set<std::string> taken_to_agree;  // "name=value": what some of its records say and others do not
  std::vector<MeasuredStep> steps;
};

// A record, and what its machine had.
struct ObservedCase {
  const record::CaseRecord* record = nullptr;
  std::optional<double> processors = {};  // that the process might use
};

// How many times longer the work of one rank takes where so many of a machine share processors.
double crowding(int ranks_of_machine, std::optional<double> ranks_at_full_speed);
// How many of these ranks are on one machine, where ranks are spread as those of this step: over as many machines as it
// takes, or all on one.
int ranks_of_machine(const MeasuredStep& step, int ranks);

// Cases that report their all-reduces and the time of these (ddp). Of each other one `left_out` says why: "WORKLOAD:
// what is missing, and the remedy". Records are of one family where the parameters that both say are equal.
std::vector<StepFamily> step_families(const std::vector<ObservedCase>& cases, std::set<std::string>& left_out);

// Messages of the workload all_reduce, and of the collectives of training steps.
std::vector<WirePoint> wire_points(const std::vector<ObservedCase>& cases);
std::vector<WirePoint> wire_points(const std::vector<StepFamily>& families);

}  // namespace assay::host::forecast
