#include "workload.hpp"

#include "accumulation.hpp"
#include "dtypes.hpp"
#include "speed_accuracy.hpp"

namespace mixed_precision {
namespace {

std::unique_ptr<Study> make_study(const assay::Case& c) {
  const StudyKind study = c.choice("study", studies);
  refuse_parameters_of_others(c, study);
  if (study == StudyKind::accumulation) return std::make_unique<Accumulation>(c);
  if (study == StudyKind::dtypes) return std::make_unique<Dtypes>(c);
  return std::make_unique<SpeedAccuracy>(c);
}

}  // namespace

Workload::Workload(const assay::Case& c) : study_(make_study(c)) {}

}  // namespace mixed_precision
