#include "assay/verification/sampling.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/compute/inspector.hpp>
#include <assay/workload/text.hpp>

namespace assay::verification {

using compute::Tensor;

std::vector<train::ElementRange> spread_ranges(std::int64_t elements, std::int64_t most, std::int64_t run) {
  std::vector<train::ElementRange> ranges;
  for (const compute::ElementSpan& span : compute::spread_spans(elements, most, run))
    ranges.push_back({span.first, span.first + span.count});
  return ranges;
}

std::vector<float> sample(compute::Backend& backend, const Tensor& t, std::int64_t most) {
  return compute::inspector_of(backend)->read(t, compute::spread_spans(t.elements(), most));
}

std::int64_t sampled_elements(const train::ParameterSet& set, train::ParameterSet::Id id, std::int64_t budget) {
  constexpr std::int64_t always = 2 * sample_run;
  const std::int64_t elements = set.all()[id].elements();
  const std::int64_t total = set.parameter_count();
  if (total <= budget || elements <= always) return elements;
  const double share = static_cast<double>(budget) / static_cast<double>(total);
  return std::max(always, static_cast<std::int64_t>(share * static_cast<double>(elements)));
}

double sampled_share(const train::ParameterSet& set, std::int64_t budget) {
  std::int64_t sampled = 0;
  for (train::ParameterSet::Id id = 0; id < set.all().size(); ++id)
    for (const train::ElementRange& range : spread_ranges(set.all()[id].elements(), sampled_elements(set, id, budget)))
      sampled += range.elements();
  return static_cast<double>(sampled) / static_cast<double>(std::max<std::int64_t>(1, set.parameter_count()));
}

std::string share_text(double share) {
  return share >= 1 ? "all elements" : workload::number(100 * share) + "% of the elements, evenly spread";
}

double relative_difference(const std::vector<float>& found, const std::vector<float>& expected, double scale) {
  compute::Difference difference(scale);
  difference.add_all(found, expected);
  return difference.relative();
}

std::uint64_t hash_of(compute::Backend& backend, const Tensor& t) { return compute::inspector_of(backend)->hash(t); }

}  // namespace assay::verification
