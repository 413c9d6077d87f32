// Says what a comparison of two sides means for a session: whether it goes on, and the verdict.
#pragma once
#include "compare/comparison.hpp"

#include <cstdint>
#include <string>

namespace assay::host::ab {

enum class Verdict { faster, slower, same, differs, cannot_tell };
const char* name_of(Verdict verdict);  // "faster", ..., "cannot tell"

struct Judgement {
  Verdict verdict = Verdict::cannot_tell;      // of side B
  std::size_t cases = 0, open = 0, worse = 0;  // compared; of them without a verdict; of them worse
  std::string problem;                         // why the two cannot be compared at all, or ""
  bool is_of_both = false;                     // the problem: no side alone has it
};

// Names the cases without a partner, a line of `unmatched` each, and the remedy.
std::string problem_of(const std::vector<std::string>& unmatched);

// Makes a verdict of fewer runs than `min_runs` on a side `cannot tell`, and notes it: few runs may agree by chance. Of
// fewer than `fewest_runs` there is no interval either, unless the figure is exact.
void hold_to_fewest_runs(compare::Comparison& comparison, std::int64_t min_runs);

// Judges by the first metric. A case has a verdict only with `min_runs` on both sides, counting those that take part:
// runs that had to wait for the processor may have been left out. The verdict is `slower` if one case is worse,
// `cannot_tell` if none is and one is open, `faster` if one is better, else `same`; `differs` where neither is better
// (a count, a word). Cases that are ok on neither side (of an allowed status) count for nothing.
Judgement judge(const compare::Comparison& comparison, std::int64_t min_runs);

}  // namespace assay::host::ab
