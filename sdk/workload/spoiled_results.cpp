#include "assay/workload/spoiled_results.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace assay::workload {

namespace op = compute::op;

using compute::DType;
using compute::MarkColumns;
using compute::Tensor;

namespace {

// The counter's size, and what the marks' size is rounded up to: each tensor on a separate aligned line.
constexpr std::size_t line = 256;

std::size_t marks_bytes(std::size_t results) {
  const std::size_t bytes = 2 * results * static_cast<std::size_t>(MarkColumns::count) * sizeof(float);
  return (bytes + line - 1) / line * line;
}

Tensor flat(const Tensor& t) { return t.view({t.elements()}); }

}  // namespace

void SpoiledResults::take_memory(const Host& host, compute::Backend& backend, std::vector<Result> results) {
  results_ = std::move(results);
  spoiled_.assign(results_.size(), false);
  std::vector<std::int64_t> places;
  first_place_ = {0};
  for (const Result& result : results_) {
    const std::int64_t count = std::min(result.elements, most_places);
    for (std::int64_t k = 0; k < count; ++k) places.push_back(count == 1 ? 0 : k * (result.elements - 1) / (count - 1));
    first_place_.push_back(static_cast<std::int64_t>(places.size()));
  }
  if (places.empty()) return;
  const std::size_t before_places = line + marks_bytes(results_.size());
  memory_ = DeviceMemory(host, ASSAY_MEMORY_WORKSPACE, before_places + places.size() * sizeof(std::int64_t),
                         "account of steps");
  backend.upload(Tensor(memory_.data<char>() + before_places, DType::i64, {static_cast<std::int64_t>(places.size())}),
                 places.data());
}

Tensor SpoiledResults::places_of(std::size_t result) const {
  const std::int64_t first = first_place_[result], end = first_place_[result + 1];
  auto* const all = reinterpret_cast<std::int64_t*>(memory_.data<char>() + line + marks_bytes(results_.size()));
  return Tensor(all + first, DType::i64, {end - first});
}
// A mark for each result: rows in the first half of their table, which no later one overwrites.
Tensor SpoiledResults::count() const { return Tensor(memory_.data(), DType::i64, {1}); }
Tensor SpoiledResults::marks() const {
  return Tensor(memory_.data<char>() + line, DType::f32,
                {2 * static_cast<std::int64_t>(results_.size()), MarkColumns::count});
}

void SpoiledResults::spoil(compute::Backend& backend, const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < results_.size(); ++i) {
    spoiled_[i] = results[i] && results_[i].elements > 0;
    if (spoiled_[i]) backend.run(op::SpoilPlaces{.x = flat(results[i]), .places = places_of(i), .loss = {}});
  }
}

std::vector<StepMark> SpoiledResults::read(compute::Backend& backend, const std::vector<Tensor>& results) const {
  std::vector<StepMark> found(results_.size());
  if (!memory_.data()) return found;
  constexpr std::int64_t none_yet = 0;
  backend.upload(count(), &none_yet);
  std::vector<std::size_t> marked;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (!results[i] || results_[i].elements == 0) continue;
    op::MarkStep mark;
    mark.count = count(), mark.marks = marks(), mark.results = flat(results[i]), mark.places = places_of(i);
    backend.run(mark);
    marked.push_back(i);
  }
  std::vector<float> rows(static_cast<std::size_t>(marks().elements()));
  backend.download(rows.data(), marks());
  for (std::size_t row = 0; row < marked.size(); ++row) {
    const float* const columns = &rows[row * static_cast<std::size_t>(MarkColumns::count)];
    const std::size_t i = marked[row];
    found[i] = {double{columns[MarkColumns::results]}, double{columns[MarkColumns::results_magnitude]}};
    // The magnitudes add up to a number, or to infinity, wherever each of the places holds one.
    if (spoiled_[i] && std::isnan(found[i].magnitude))
      throw Error(ASSAY_WRONG_RESULT, "the measured steps have not written " + results_[i].name +
                                          ": some places of it were spoiled before the first of them, and hold no "
                                          "number after the last one");
  }
  return found;
}

}  // namespace assay::workload
