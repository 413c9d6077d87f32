#include "assay/verification/spread_constants.hpp"

#include <assay/workload/host_copies.hpp>
#include <limits>
#include <numeric>

#include "scrambled.hpp"

namespace assay::verification {

namespace op = compute::op;

void spread_constants(compute::Backend& backend, const train::ParameterSet& set,
                      const std::vector<train::ParameterSet::Id>& ids) {
  for (const train::ParameterSet::Id id : ids) {
    const train::Parameter& p = set.all()[id];
    if (p.init_std != 0) continue;
    std::vector<float> values(static_cast<std::size_t>(p.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = p.init_mean - 0.5F + static_cast<float>(scrambled(i + 1000 * id) % 128) / 128;
    workload::upload_f32(backend, set.value(id), values);
  }
  set.refresh_compute_copy(backend);
}

void spread_constants(compute::Backend& backend, const train::ParameterSet& set) {
  std::vector<train::ParameterSet::Id> ids(set.all().size());
  std::iota(ids.begin(), ids.end(), train::ParameterSet::Id{0});
  spread_constants(backend, set, ids);
}

void spoil(compute::Backend& backend, const compute::Tensor& x) {
  backend.run(op::Fill{.x = x, .value = std::numeric_limits<double>::quiet_NaN()});
}

void spoil_gradients(compute::Backend& backend, const train::ParameterSet& set) {
  for (train::ParameterSet::Id id = 0; id < set.all().size(); ++id) spoil(backend, set.gradient(id));
}

void spoil_compute_copy(compute::Backend& backend, const train::ParameterSet& set) {
  if (const compute::Tensor copy = set.compute_copy()) spoil(backend, copy);
}

}  // namespace assay::verification
