#include "assay/train/step_account.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::train {

namespace op = compute::op;

using compute::DType;
using compute::MarkColumns;
using compute::Tensor;

namespace {

// Each tensor on a separate aligned line.
constexpr std::size_t line = 256;
constexpr std::size_t marks_bytes =
    static_cast<std::size_t>(StepAccount::kept_steps * MarkColumns::count) * sizeof(float);
static_assert(marks_bytes % line == 0);

}  // namespace

std::vector<std::int64_t> StepAccount::spread(const std::vector<ElementRange>& ranges) {
  std::vector<std::int64_t> places;
  std::int64_t elements = 0, filled = 0;
  for (const ElementRange& range : ranges) elements += range.elements(), filled += range.elements() > 0 ? 1 : 0;
  // First its ends for each range, or as many of them as there are places for; then the rest by size.
  const std::int64_t room = std::clamp(2 * filled, usual_places, most_places);
  const std::int64_t rest = room - std::min(2 * filled, room);
  std::int64_t nth = 0;
  for (const ElementRange& range : ranges) {
    if (range.elements() <= 0) continue;
    const std::int64_t share_of_places = (nth + 1) * room / filled - nth * room / filled;
    ++nth;
    const double size = static_cast<double>(range.elements()) / static_cast<double>(elements);
    const std::int64_t wanted = std::min(
        std::min<std::int64_t>(share_of_places, 2) + static_cast<std::int64_t>(size * static_cast<double>(rest)),
        range.elements());
    for (std::int64_t k = 0; k < wanted; ++k)
      places.push_back(range.begin + (wanted == 1 ? 0 : k * (range.elements() - 1) / (wanted - 1)));
  }
  return places;
}

Tensor StepAccount::count() const { return Tensor(memory_.data(), DType::i64, {1}); }
Tensor StepAccount::marks() const {
  return Tensor(memory_.data<char>() + line, DType::f32, {kept_steps, MarkColumns::count});
}
Tensor StepAccount::places() const {
  if (place_count_ == 0) return {};
  return Tensor(memory_.data<char>() + line + marks_bytes, DType::i64, {place_count_});
}

Tensor StepAccount::spoiled_places() const {
  if (spoiled_place_count_ == 0) return places();
  return Tensor(memory_.data<std::int64_t>() + (line + marks_bytes) / sizeof(std::int64_t) + place_count_, DType::i64,
                {spoiled_place_count_});
}

void StepAccount::take_memory(const Host& host, compute::Backend& backend, const std::vector<std::int64_t>& places_of,
                              const std::vector<std::int64_t>& spoiled_places_of) {
  place_count_ = static_cast<std::int64_t>(places_of.size());
  spoiled_place_count_ = static_cast<std::int64_t>(spoiled_places_of.size());
  memory_ = DeviceMemory(host, ASSAY_MEMORY_WORKSPACE,
                         line + marks_bytes + (places_of.size() + spoiled_places_of.size()) * sizeof(std::int64_t),
                         "account of steps");
  if (place_count_ > 0) backend.upload(places(), places_of.data());
  if (spoiled_place_count_ > 0) backend.upload(spoiled_places(), spoiled_places_of.data());
  reset(backend);
}

void StepAccount::reset(compute::Backend& backend) const {
  if (!is_kept()) return;
  backend.run(op::Fill{.x = count(), .value = 0});
  backend.run(op::Fill{.x = marks(), .value = 0});
}

void StepAccount::begin_step(compute::Backend& backend, const Subjects& subjects) const {
  if (!is_kept()) return;
  op::SpoilPlaces spoil;
  spoil.loss = subjects.loss;
  if (place_count_ > 0)
    spoil.x = subjects.spoiled ? subjects.spoiled : subjects.results, spoil.places = spoiled_places();
  backend.run(spoil);
}

void StepAccount::end_step(compute::Backend& backend, const Subjects& subjects) const {
  if (!is_kept()) return;
  op::MarkStep mark;
  mark.count = count(), mark.marks = marks(), mark.loss = subjects.loss;
  if (place_count_ > 0) mark.results = subjects.results, mark.state = subjects.state, mark.places = places();
  backend.run(mark);
}

Account StepAccount::read(compute::Backend& backend, double tolerance, bool may_overflow) const {
  Account account;
  backend.synchronize();
  std::int64_t steps = 0;
  backend.download(&steps, count());
  std::vector<float> rows(static_cast<std::size_t>(kept_steps * MarkColumns::count));
  backend.download(rows.data(), marks());
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return double{rows[static_cast<std::size_t>(row * MarkColumns::count + column)]};
  };
  const auto check = [&](std::int64_t step) {
    const std::int64_t row = compute::row_of_mark(step, kept_steps);
    const auto wrong = [&](const char* what) {
      throw Error(ASSAY_WRONG_RESULT,
                  "step " + std::to_string(step + 1) + " of " + std::to_string(steps) + " has left " + what);
    };
    if (!std::isfinite(at(row, MarkColumns::loss))) wrong("no finite number for its loss");
    if (!may_overflow && !std::isfinite(at(row, MarkColumns::results_magnitude))) wrong("results that are not finite");
  };
  const std::int64_t first = std::min(steps, kept_steps / 2);
  for (std::int64_t step = 0; step < first; ++step) check(step);
  for (std::int64_t step = std::max(first, steps - kept_steps / 2); step < steps; ++step) check(step);
  account.steps = static_cast<std::uint64_t>(steps);
  account.marks_per_step = marks_per_step;
  account.tolerance = tolerance;
  for (std::int64_t row = 0; row < std::min(steps, kept_steps / 2); ++row) {
    const double loss = at(row, MarkColumns::loss);
    account.marks.push_back({loss, std::abs(loss)});
    account.marks.push_back({at(row, MarkColumns::results), at(row, MarkColumns::results_magnitude)});
    account.marks.push_back({at(row, MarkColumns::state), at(row, MarkColumns::state_magnitude)});
  }
  return account;
}

// Of the first step's gradients an H200 had 2.8e-4 of their magnitude in one of some twenty runs: where attention adds
// in no fixed order every rounding behind it differs, and a few large elements make most of a sum. This is 3.5 times
// that.
//
// From the second step on the weights differ as well, and of gradients in 16 bits more: an H200 had 1e-3 of their
// magnitude at the second step of a small decoder, in one run of several. This is four times that, and as much as a
// rounding of all of them; of the loss a quarter of it. What is left out of a step is a hundred times that.
//
// Each further step adds as much to the difference of the weights: with AdamW in pure bf16 gradients were 6e-3 of their
// magnitude apart at the fifth step, and 8e-3 at the sixth. At the sixteenth the limit is that of unrelated sums over
// so many places, and loss and state have to show what is left out.
//
// Top-k routing sends a few tokens to other experts, which changes whole terms of those experts' gradients: an H200 had
// 5e-3 of their magnitude at the second step of four layers of Qwen3-30B-A3B. From the second step on the limit is that
// of the fifth, three times as much.
void StepAccount::allow_for_earlier_steps(Account& account, bool picks_by_comparison) {
  constexpr std::array<double, marks_per_step> more{4, 16, 1};  // loss, results, state
  constexpr std::size_t results = 1, most_steps = 16;
  constexpr double more_of_first_results = 4;
  const std::size_t least_steps = picks_by_comparison ? 4 : 1;
  if (account.marks.size() > results) account.marks[results].magnitude *= more_of_first_results;
  for (std::size_t i = marks_per_step; i < account.marks.size(); ++i) {
    const std::size_t kind = i % marks_per_step, steps_before = i / marks_per_step;
    account.marks[i].magnitude *=
        more[kind] * (kind == results ? double(std::clamp(steps_before, least_steps, most_steps)) : 1.0);
  }
}

}  // namespace assay::train
