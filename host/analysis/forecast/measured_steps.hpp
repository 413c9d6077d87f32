// Steps on several ranks, and the messages between them, read from records.
#pragma once
#include "forecast/wire.hpp"
#include "record/case_record.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::forecast {

// Collectives of one kind in a step of one rank.
struct Messages {
  Collective collective = Collective::all_reduce;
  double count = 0;
  double bytes = 0;  // of all of them, each as the workload all_reduce counts it
};

// Collectives of a step that wait, or hide, in one way.
struct Exchange {
  std::vector<Messages> messages;
  std::optional<double> busy_s, exposed_s;  // from their start to their end; that the step waited. Unknown in a graph
  bool overlaps = false;                    // they run beside the computation
  double beside_s = 0;                      // the part of the step that may hide them
  double unhidden = 1;                      // so many of them have nothing to hide behind
  bool grows_with_imbalance = false;        // rows of experts: the busiest rank decides
  bool grows_with_stages = false;           // messages on the way of a micro-batch through all ranks and back

  double count() const;
};

// What a rank computes on n ranks, if each rank of the case has as much to do as is usual for its workload.
enum class Computation {
  same,    // as on one rank
  partly,  // a part of it is shared out over the ranks, such as the update
  shared,  // all ranks work on one batch
};

// The experts of a step are spread over the ranks.
struct ExpertLoads {
  double imbalance = 1;         // rows of the busiest rank over the mean of the ranks
  double share_of_compute = 0;  // of a step's operations, those of experts
  int experts = 1;              // of a layer: the most ranks
};

// A step's layers are spread over the ranks, and micro-batches pass through them.
struct PipelineShape {
  double micro_batches = 1, virtual_stages = 1;
  double layers = 1;
  double share_of_micro_batches = 1;  // of a rank's work; the rest is the update, once in a step
  std::optional<double> head_layers;  // the head's operations, in those of a layer; older records do not say
  bool by_work = true;                // ranks have equal work, or else equally many layers
};

// A training step on so many ranks.
struct MeasuredStep {
  int ranks = 1;
  double step_s = 0;
  std::optional<double> silent_s;  // without its communication
  std::vector<Exchange> exchanges;
  bool assumes_beside = false;  // the record has no phases: what may hide collectives is a usual share of the step
  Computation computation = Computation::same;
  std::optional<ExpertLoads> experts;
  std::optional<PipelineShape> pipeline;
  double items = 0;  // of a step, of all ranks
  int records = 1;   // whose mean this is
  Link link;
  int machines = 1;
  // On a CPU: so many ranks of a machine, with as many threads as these, have their own processors. Not known: each
  // has its own device.
  std::optional<double> ranks_at_full_speed;

  bool is_timed() const;     // of several ranks: each exchange has times
  bool overlaps() const;     // of any exchange
  double exposed_s() const;  // that are known
  double count() const;      // of collectives
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

// Cases whose records say what a step exchanges (recorded_step.hpp). Of each other one `left_out` says why: "WORKLOAD:
// what is missing, and the remedy". Records are of one family where the parameters that both say are equal.
std::vector<StepFamily> step_families(const std::vector<ObservedCase>& cases, std::set<std::string>& left_out);

// Messages of the workload all_reduce, and of the collectives of training steps.
std::vector<WirePoint> wire_points(const std::vector<ObservedCase>& cases);
std::vector<WirePoint> wire_points(const std::vector<StepFamily>& families);

}  // namespace assay::host::forecast
