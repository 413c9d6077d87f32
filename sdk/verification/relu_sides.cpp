#include "assay/verification/relu_sides.hpp"

#include <assay/plugin.hpp>

#include <algorithm>
#include <assay/compute/host_threads.hpp>
#include <assay/compute/inspector.hpp>
#include <assay/compute/operations.hpp>
#include <assay/compute/tensor_parts.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace assay::verification {

using compute::AnyOperation;
using compute::Backend;
using compute::DType;
using compute::Mode;
using compute::Tensor;

namespace {

constexpr std::int64_t states_at_once = std::int64_t{1} << 22;

// Where the states of an operation with a ReLU lie; null: it has none.
Tensor states_of(const AnyOperation& any) {
  if (const auto* op = compute::operation_cast<compute::op::BiasReluDropoutForward>(any))
    return op->dropout.probability > 0 ? Tensor() : Tensor(op->y);
  if (const auto* op = compute::operation_cast<compute::op::ActivationForward>(any))
    return op->kind == compute::Activation::relu ? Tensor(op->y) : Tensor();
  return {};
}

// `visit(part, bytes, values, first)`: the states in parts.
template <class Visit>
void for_each_part_on_host(Backend& backend, const Tensor& states, const Visit& visit) {
  compute::for_each_part(states, states_at_once, [&](std::int64_t first, const Tensor& part) {
    std::vector<std::byte> bytes(part.bytes());
    backend.download(bytes.data(), part);
    const auto n = static_cast<std::size_t>(part.elements());
    visit(part, bytes, workload::widened(bytes.data(), part.dtype, n), static_cast<std::size_t>(first));
  });
}

// A state beyond it is not within rounding of 0.
double limit_of(Backend& backend, const Tensor& states, double error) {
  constexpr std::int64_t together = 4096;
  const std::int64_t n = states.elements();
  std::vector<compute::WeightedSpan> spans;
  for (std::int64_t first = 0; first < n; first += together) spans.push_back({first, std::min(together, n - first), 0});
  double squares = 0;
  for (const compute::WeightedSum& sum :
       compute::inspector_of(backend)->sum_spans(states, spans, std::vector<float>(together, 1)))
    squares += sum.squares;
  return error * std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(1, n)));
}

// The least positive number that devices do not take for 0, and 0.
void put_side(std::byte* at, DType type, bool positive) {
  const std::uint32_t wide = positive ? 0x00800000 : 0;
  const std::uint16_t narrow = !positive ? 0 : type == DType::f16 ? 1 : 0x0080;
  if (type == DType::f32)
    std::memcpy(at, &wide, sizeof wide);
  else
    std::memcpy(at, &narrow, sizeof narrow);
}

// `look(i)` over all processors.
template <class Look>
void over_states(std::size_t count, const Look& look) {
  constexpr std::int64_t states_of_a_thread = std::int64_t{1} << 17;
  compute::in_parts(static_cast<std::int64_t>(count), states_of_a_thread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) look(static_cast<std::size_t>(i));
  });
}

}  // namespace

void NotesSides::set_mode(Mode mode) {
  executes_ = mode == Mode::execute;
  real().set_mode(mode);
}

void NotesSides::run_any(const AnyOperation& operation) {
  real().run_any(operation);
  const Tensor states = states_of(operation);
  if (!executes_ || !states) return;
  real().synchronize();
  const auto n = static_cast<std::size_t>(states.elements());
  std::vector<ReluSides::Side>& sides = sides_.of_operations.emplace_back(n);
  const double limit = limit_of(real(), states, sides_.error);
  for_each_part_on_host(real(), states,
                        [&](const Tensor&, const auto&, const std::vector<float>& values, std::size_t first) {
                          over_states(values.size(), [&](std::size_t i) {
                            sides[first + i] = static_cast<double>(values[i]) > limit ? ReluSides::Side::clear
                                               : values[i] > 0                        ? ReluSides::Side::positive
                                                                                      : ReluSides::Side::other;
                          });
                        });
}

void FollowsSides::set_mode(Mode mode) {
  executes_ = mode == Mode::execute;
  real().set_mode(mode);
}

void FollowsSides::run_any(const AnyOperation& operation) {
  real().run_any(operation);
  const Tensor states = states_of(operation);
  if (!executes_ || !states) return;
  real().synchronize();
  const std::size_t which = next_++;
  if (which >= sides_.of_operations.size() ||
      sides_.of_operations[which].size() != static_cast<std::size_t>(states.elements()))
    throw Error(ASSAY_INTERNAL, "ReLU " + std::to_string(which) + " of " + std::to_string(states.elements()) +
                                    " states has no counterpart in the path that was noted");
  const std::vector<ReluSides::Side>& sides = sides_.of_operations[which];
  const double limit = limit_of(real(), states, sides_.error);
  for_each_part_on_host(
      real(), states,
      [&](const Tensor& part, std::vector<std::byte>& bytes, const std::vector<float>& values, std::size_t first) {
        std::atomic<std::int64_t> followed = 0;
        over_states(values.size(), [&](std::size_t i) {
          const ReluSides::Side side = sides[first + i];
          const bool positive = side != ReluSides::Side::other;
          if ((values[i] > 0) == positive || std::isnan(values[i])) return;
          if (static_cast<double>(values[i]) > limit || side == ReluSides::Side::clear)
            throw Error(ASSAY_WRONG_RESULT, "state " + std::to_string(first + i) + " of ReLU " + std::to_string(which) +
                                                " is positive on one path alone, and by more than the " +
                                                workload::number(limit) + " that rounding explains");
          put_side(bytes.data() + i * size_of(part.dtype), part.dtype, positive);
          ++followed;
        });
        if (followed > 0) real().upload(part, bytes.data());
        followed_ += followed;
      });
  states_ += states.elements();
}

std::string FollowsSides::text() const {
  if (next_ != sides_.of_operations.size())
    throw Error(ASSAY_INTERNAL,
                std::to_string(next_) + " ReLUs follow the sides of " + std::to_string(sides_.of_operations.size()));
  return std::to_string(followed_) + " of " + std::to_string(states_) +
         " states of ReLUs, within rounding of 0, taken on the timed path's side; ";
}

}  // namespace assay::verification
