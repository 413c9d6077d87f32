// A session: both sides in turns until the verdict is clear or the budget is spent. Knows no process, no file and no
// clock; a test plays all three.
#pragma once
#include "ab/judgement.hpp"
#include "ab/looks.hpp"
#include "compare/comparison.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace assay::host::ab {

struct SessionPlan {
  LookPlan looks;
  double max_time_s = 600;      // no pair of runs begins later
  bool stops_at_worse = false;  // one worse case is all that is asked for
};

// What became of one run of one side.
struct TurnEnd {
  bool interrupted = false;
  std::string failure;  // what went wrong, or ""
};

// After each pair of runs. The interval is the one that a look would have.
struct Round {
  std::int64_t runs = 0;  // a side
  bool is_look = false;
  double seconds = 0;  // since the session began
  const compare::Comparison& comparison;
};

struct SessionParts {
  std::function<TurnEnd(std::size_t side, std::int64_t repeat)> run;  // sides 0 and 1; repeats from 1
  std::function<compare::Comparison(double confidence)> compare;      // of all runs so far
  std::function<double()> seconds;                                    // since the session began
  std::function<void(const Round&)> report;
};

enum class End { clear, runs_spent, time_spent, interrupted, failed };

struct SessionResult {
  End end = End::failed;
  std::int64_t runs = 0;  // whole pairs
  double seconds = 0;
  Judgement judgement;                            // `cannot_tell` where the session was cut off
  std::optional<compare::Comparison> comparison;  // the last one
  double confidence = 0;                          // of its intervals
  std::size_t failed_side = 0;
  bool failed_both = false;  // no side alone is to blame
  std::string failure;
};

// The side that begins alternates (a b, b a, a b, ...), so that a machine that grows slower favours none.
SessionResult run_session(const SessionPlan& plan, const SessionParts& parts);

}  // namespace assay::host::ab
