#include "assay/verification/sampling.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/compute/inspector.hpp>
#include <assay/workload/text.hpp>

namespace assay::verification {

using compute::Tensor;

std::vector<float> sample(compute::Backend& backend, const Tensor& t, std::int64_t most) {
  return compute::inspector_of(backend)->read(t, compute::spread_spans(t.elements(), most));
}

std::int64_t sampled_elements(const train::ParameterSet& set, train::ParameterSet::Id id, std::int64_t budget) {
  constexpr std::int64_t always = 2 * compute::spread_run;
  const std::int64_t elements = set.all()[id].elements();
  const std::int64_t total = set.parameter_count();
  if (total <= budget || elements <= always) return elements;
  const double share = static_cast<double>(budget) / static_cast<double>(total);
  return std::max(always, static_cast<std::int64_t>(share * static_cast<double>(elements)));
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
