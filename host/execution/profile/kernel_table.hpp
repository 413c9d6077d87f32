// From a trace of some steps to the time of each kernel in each phase.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "measure/recorder.hpp"
#include "record/case_record.hpp"

namespace assay::host::profile {

struct TracedWork {
  std::string name;                 // as the compiler mangled it
  double start_ns = 0, end_ns = 0;  // on the trace's clock; in a step, from its begin
  bool is_anchor = false;
  bool is_copy = false;  // or a fill
};

// All times from the step's begin: length and phases on the clock of events, the work on that of the trace.
struct TracedStep {
  double length_ns = 0;
  std::vector<measure::PhaseSpan> phases;
  std::vector<TracedWork> work = {};
};

// Gives each step its part of `work`, which is in the order of start. Each step begins with an anchor, whose end is the
// step's begin; false, and nothing is done, unless there are as many anchors as steps. What comes before the first
// anchor is of no step.
bool place_work(const std::vector<TracedWork>& work, std::vector<TracedStep>& steps);

// By how much the placed work leaves the step, before its begin or behind its end; 0 when the step holds all of it. An
// anchor that ended before the host came to mark the begin shows as work behind the end, and then no phase is right.
// Copies are ignored: a loader's, on a separate stream, run when they can.
double misplaced_ns(const TracedStep& step);

// What two clocks that are right may differ by over a step of this length.
double clock_tolerance_ns(double length_ns);

// A piece of work belongs to the innermost phase that is open at the middle of its run: the two clocks meet to about a
// microsecond only, so a kernel's edge may seem to lie beyond its phase's. What lies in no phase goes to "outside".
//
// Phases come in the workload's order, kernels by time, the longest first. Count and time are those of one step, the
// share is of the phase's work.
record::Kernels kernels_of(const std::vector<TracedStep>& steps, const std::vector<std::string>& phase_names);

// A line for each class of kernels in each phase, as an aligned table with a header; none for an empty record.
std::vector<std::string> kernel_lines(const record::Kernels& kernels);

// Both tables, of classes and of kernels.
std::string kernel_markdown(const record::Kernels& kernels, const std::string& title);

}  // namespace assay::host::profile
