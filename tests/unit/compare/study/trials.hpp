// One comparison, one comparison of many cases, one session of `assay ab`, played on a machine with a seed. B's steps
// are those of A's machine, longer by a change; with each odd seed it is A's that are longer. The same seed has the
// same noise whatever the change.
#pragma once
#include "compare/verdict.hpp"
#include "worlds.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::host::compare::study {

struct Design {
  std::size_t runs = 1, steps = 50;  // a side; of a run
  std::string name() const;
};

// A run as compare makes it of a record.
RunFigure figure_of(std::vector<double> step_ms);

// What a trial ended with, seen from the longer side.
enum class Ending { same, cannot_tell, right, wrong, other };
Ending ending_of(Outcome outcome, std::uint64_t seed);

Ending play_verdict(const World& world, const Design& design, double change, std::uint64_t seed,
                    const TestOptions& options);

// Many cases of one run share its state, or each has its own.
enum class StateOf { run, each_case };
// How many of the cases, none of which differs, are called faster or slower.
std::size_t play_family(const World& world, const Design& design, std::size_t cases, StateOf state, std::uint64_t seed,
                        const TestOptions& options);

struct SessionEnding {
  Ending ending = Ending::cannot_tell;
  std::size_t runs = 0;  // a side
};
SessionEnding play_session(const World& world, std::size_t steps, double change, std::uint64_t seed,
                           const TestOptions& options);

// B as the reviewers had it: shorter steps, some of which are slow.
struct TailRow {
  const char* name;
  double step_ms, slow_share, slow_ms;
};
inline constexpr std::array<TailRow, 2> tail_rows{{{"faster, 10% slow", 9.6, 0.1, 15}, {"4% slow", 10, 0.04, 20}}};
// The outcome of B, which is slower, against A: 10 ms, noise 0.2%.
Outcome play_tail(const TailRow& row, const Design& design, std::uint64_t seed, const TestOptions& options);

}  // namespace assay::host::compare::study
