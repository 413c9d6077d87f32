// When a comparison that goes on is looked at, and how sure it has to be each time.
//
// Whoever looks again and again, and stops at the first verdict, is wrong more often than any single look says. So the
// error that is allowed for all looks together is divided among them, by the runs that have come since the look before:
// the error of a look is (1 - confidence) * new runs / most runs. However many looks there are, and whatever the
// figures have in common, their errors add up to 1 - confidence at most (Bonferroni's inequality).
#pragma once
#include <cstdint>

namespace assay::host::ab {

// A side: fewer do not show how much runs differ.
inline constexpr std::int64_t fewest_runs = 3;

struct LookPlan {
  double confidence = 0.99;                  // of the whole session
  std::int64_t min_runs = 6, max_runs = 30;  // a side; the first look of five could not decide within two states
};

class Looks {
 public:
  explicit Looks(const LookPlan& plan) : plan_(plan), next_(plan.min_runs) {}

  // Says whether there is a look after so many runs a side: at the fewest, then each time when there are a third more,
  // and at the most. A look with hardly more runs than the one before would cost confidence and show nothing new.
  bool is_due(std::int64_t runs) const { return runs >= next_ || runs >= plan_.max_runs; }

  // The confidence of a comparison in a look after so many runs. Several cases share what it may err by, as those of
  // every comparison do (compare/family.hpp).
  double confidence_at(std::int64_t runs) const;

  // There was one. What it was allowed to err is spent.
  void looked(std::int64_t runs);

 private:
  LookPlan plan_;
  std::int64_t next_;
  std::int64_t last_ = 0;  // the runs of the last look
};

}  // namespace assay::host::ab
