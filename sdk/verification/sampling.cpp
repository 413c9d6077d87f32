#include "assay/verification/sampling.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace assay::verification {

using compute::Tensor;

std::vector<train::ElementRange> spread_ranges(std::int64_t elements, std::int64_t most, std::int64_t run) {
  if (elements <= most) return {{0, elements}};
  const std::int64_t length = std::min(run, elements);
  const std::int64_t count = std::max<std::int64_t>(2, most / length);
  if (count * length >= elements) return {{0, elements}};
  std::vector<train::ElementRange> ranges;
  for (std::int64_t i = 0; i < count; ++i) {
    // In floating point, since a product of two such counts may be too large for an integer.
    const double begin =
        static_cast<double>(i) / static_cast<double>(count - 1) * static_cast<double>(elements - length);
    const auto first = i + 1 == count ? elements - length : static_cast<std::int64_t>(begin);
    ranges.push_back({first, first + length});
  }
  return ranges;
}

std::vector<float> sample(compute::Backend& backend, const Tensor& t, std::int64_t most) {
  const Tensor flat = t.flat();
  const std::vector<train::ElementRange> ranges = spread_ranges(flat.elements(), most);
  if (ranges.size() == 1) return workload::download_f32(backend, flat);
  std::vector<float> values;
  values.reserve(ranges.size() * static_cast<std::size_t>(sample_run));
  for (const train::ElementRange& range : ranges) {
    const std::vector<float> part = workload::download_f32(backend, flat.slice(0, range.begin, range.elements()));
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
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

Samples sample_values(compute::Backend& backend, const train::ParameterSet& set, std::int64_t budget) {
  Samples samples;
  for (train::ParameterSet::Id id = 0; id < set.all().size(); ++id)
    samples.push_back(sample(backend, set.value(id), sampled_elements(set, id, budget)));
  return samples;
}

Samples sample_gradients(compute::Backend& backend, const train::ParameterSet& set, std::int64_t budget) {
  Samples samples;
  for (train::ParameterSet::Id id = 0; id < set.all().size(); ++id)
    samples.push_back(sample(backend, set.gradient(id), sampled_elements(set, id, budget)));
  return samples;
}

double relative_difference(const std::vector<float>& found, const std::vector<float>& expected, double scale) {
  compute::Difference difference(scale);
  difference.add_all(found, expected);
  return difference.relative();
}

std::uint64_t hash_of(compute::Backend& backend, const Tensor& t) {
  constexpr std::int64_t chunk_elements = std::int64_t{1}
                                          << 24;  // the arena of a large model is more than the host has
  std::uint64_t hash = 0xcbf29ce484222325u;
  const Tensor flat = t.flat();
  std::vector<std::byte> bytes;
  for (std::int64_t begin = 0; begin < flat.elements(); begin += chunk_elements) {
    const Tensor part = flat.slice(0, begin, std::min(chunk_elements, flat.elements() - begin));
    bytes.assign((part.bytes() + 7) / 8 * 8, std::byte{0});
    backend.download(bytes.data(), part);
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, &bytes[i], 8);
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

}  // namespace assay::verification
