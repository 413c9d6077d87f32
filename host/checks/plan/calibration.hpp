// Expected times: an earlier run on the same device shows how far from the roofline steps are.
//
// The time of a step is taken as a sum: of each kind of operation the least time that the device's peaks allow, times a
// factor, and a time for each operation, which stands for what a kernel costs however small it is. The factors are
// fitted to the earlier cases of the same choices (execution, precision, ...) by least squares of the relative error,
// none below 0, and drawn to one common factor where the cases do not separate them.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/walk.hpp"
#include "record/case_record.hpp"

namespace assay::host::plan {

// A case that was measured, as it would be walked through again.
struct EarlierCase {
  WalkRequest request;
  double step_s = 0;
  double other_s = 0;   // of the case beside its steps: opening, set-up, verification
  double verify_s = 0;  // of it: verification, and the trial of the device's peak
};

// Those of the records that say something of this workload on this device: of cases that are ok, with parameters of the
// types that the workload has; one that a record does not name, as it is older, has its default. Repeats count each.
std::vector<EarlierCase> earlier_cases(const std::vector<record::CaseRecord>& records,
                                       const plugin::WorkloadSchema& schema, const std::string& device_name);

inline constexpr std::size_t feature_count = operation_kinds.size() + 1;  // and the number of operations
using Features = std::array<double, feature_count>;
Features features_of(const Walk& walk);

struct Fit {
  Features factors{};
  std::size_t cases = 0;
  double largest_error = 0;  // of a case that was fitted, relative
  double seconds(const Features& features) const;
};
// Takes at least one case; seconds above 0.
Fit fit(const std::vector<Features>& features, const std::vector<double>& seconds);

// Beyond this factor between a case and all that it stands on no time is expected. Up to 25 times single sizes of the
// decoder predicted those of others within 21% (docs/plan.md); of a tiny one xl, 1,386 times as large, was expected to
// take 1,185 ms eagerly and takes 49 in a graph.
inline constexpr double most_beyond = 30;

enum class WhyNoTime {
  nothing_alike,  // no earlier case has the same choices, switches and ranks
  no_peaks,       // the device's description states no peak that they use
  not_planned,    // they could not be walked through
  too_far,        // beyond `most_beyond`
};

class Calibration {
 public:
  // `walks`: of the earlier cases, in their order. Those that were not walked through are left out.
  Calibration(const plugin::WorkloadSchema& schema, std::vector<EarlierCase> cases, std::vector<Walk> walks);

  struct Expected {
    double step_s = 0;
    double other_s = 0, verify_s = 0;  // as of the earlier cases whose size is the nearest
    std::size_t cases = 0;             // that it stands on
    double largest_error = 0;          // of them
    double beyond = 1;  // how many times the largest of them, or the smallest, the case is; 1: between them
  };
  // The result is empty where no earlier case has the same choices and as many ranks, or none of these is usable.
  std::optional<Expected> expected(const experiment::Case& values, std::int32_t ranks, const Walk& walk) const;
  // Why it is empty: of the earlier cases with the same choices and as many ranks.
  WhyNoTime why_none(const experiment::Case& values, std::int32_t ranks) const;

 private:
  std::string group_of(const experiment::Case& values, std::int32_t ranks) const;

  const plugin::WorkloadSchema& schema_;
  struct Group {
    std::string key;
    std::vector<Features> features;
    std::vector<double> step_s, other_s, verify_s, least_s;
    Fit fit;
  };
  std::vector<Group> groups_;
  std::map<std::string, WhyNoTime> unused_;  // by the key of a group: why some case of it is not usable
};

// The median of `values` over the cases whose size is nearest to `here`, or a quarter farther than that. Sizes are
// above 0, at least one.
double median_of_nearest(const std::vector<double>& sizes, const std::vector<double>& values, double here);

double least_seconds(const Features& features);  // of the operations, one after the other

}  // namespace assay::host::plan
