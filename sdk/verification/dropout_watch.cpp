#include "assay/verification/dropout_watch.hpp"

#include <array>
#include <assay/comm/exchange.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

#include "counter_random.hpp"

namespace assay::verification {

namespace op = compute::op;

using compute::Dropout;
using compute::Tensor;

namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(ASSAY_WRONG_RESULT, "dropout: " + text); }

std::string place_text(std::size_t place) { return "place " + std::to_string(place + 1); }

// The mask of one place in one step. The step's number gives a separate key and stream, and each word decides on an
// element.
std::vector<float> mask_of(const Dropout& d, std::int64_t step, std::int64_t elements) {
  const std::array<std::uint32_t, 4> words = philox_block(d.seed, d.stream, static_cast<std::uint64_t>(step));
  const std::uint64_t seed = words[0] | std::uint64_t{words[1]} << 32,
                      stream = words[2] | std::uint64_t{words[3]} << 32;
  const auto probability = static_cast<double>(d.probability);
  const double dropped_below = std::round(probability * 0x1p32);
  std::vector<float> mask;
  for (std::int64_t i = 0; i < elements; i += 4)
    for (const std::uint32_t word : philox_block(seed, stream, static_cast<std::uint64_t>(i / 4)))
      mask.push_back(word < dropped_below ? 0.0F : static_cast<float>(1 / (1 - probability)));
  mask.resize(static_cast<std::size_t>(elements));
  return mask;
}

}  // namespace

void DropoutWatch::use(const Dropout& dropout, std::int64_t elements, const void* result, const char* operation) {
  if (dropout.probability > 0) (is_backward_ ? backward_ : forward_).push_back({dropout, elements, result, operation});
}

void DropoutWatch::keep_relu_states(const Tensor& y) {
  if (keep_ == Keep::relu_states && !is_backward_) relu_states_.push_back(workload::download_f32(real(), y));
}

void DropoutWatch::run_any(const compute::AnyOperation& operation) {
  real().run_any(operation);
  const auto score_elements = [](const Tensor& q, const Tensor& k) {
    return q.dim(0) * q.dim(2) * q.dim(1) * k.dim(1);
  };
  compute::visit_operation(
      operation, [](const auto&) {},
      [&](const op::ApplyDropout& o) { use(o.dropout, o.x.elements(), o.y.data, o.name); },
      [&](const op::BiasReluDropoutForward& o) {
        use(o.dropout, o.x.elements(), o.y.data, o.name);
        keep_relu_states(o.y);
      },
      [&](const op::ActivationForward& o) {
        if (o.kind == compute::Activation::relu) keep_relu_states(o.y);
      },
      // It has no stream: it reads the forward's result, and knows the mask by it.
      [&](const op::ReluDropoutBackward& o) { use({.probability = o.probability}, o.y.elements(), o.y.data, o.name); },
      [&](const op::DropoutAddLayerNormForward& o) { use(o.dropout, o.x.elements(), o.y.data, o.name); },
      [&](const op::DropoutAddLayerNormBackward& o) { use(o.dropout, o.dy.elements(), nullptr, o.name); },
      [&](const op::AttentionForward& o) { use(o.shape.dropout, score_elements(o.q, o.k), o.out.data, o.name); },
      [&](const op::AttentionBackward& o) { use(o.shape.dropout, score_elements(o.q, o.k), nullptr, o.name); });
}

// Of the forward; memory may serve several, and then the last one's result lies there.
std::size_t DropoutWatch::place_of(const Use& use) const {
  const bool by_result = use.operation == op::ReluDropoutBackward::name;
  for (std::size_t i = forward_.size(); i-- > 0;)
    if (by_result ? forward_[i].result == use.result : forward_[i].dropout.stream == use.dropout.stream) return i;
  return no_place;
}

std::string DropoutWatch::check(const Expected& expected) const {
  const std::size_t places = expected.probability > 0 ? expected.places : 0;
  if (forward_.size() != places)
    refuse("the forward drops at " + std::to_string(forward_.size()) + " places; expected " + std::to_string(places));
  for (const std::vector<Use>* const uses : {&forward_, &backward_})
    for (const Use& use : *uses) {
      const Dropout& d = use.dropout;
      if (d.probability != expected.probability)
        refuse(std::string(use.operation) + " drops with a probability of " +
               workload::number(static_cast<double>(d.probability)) + "; expected " +
               workload::number(static_cast<double>(expected.probability)));
      if (use.operation == op::ReluDropoutBackward::name) continue;
      if (d.seed != expected.seed)
        refuse(std::string(use.operation) + " has the seed " + std::to_string(d.seed) + "; expected " +
               std::to_string(expected.seed));
      if (d.step.data != expected.step.data)
        refuse(std::string(use.operation) + " reads another number than the one that counts the steps");
    }
  for (std::size_t i = 0; i < forward_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (forward_[i].dropout.stream == forward_[j].dropout.stream)
        refuse(place_text(j) + " and " + place_text(i) + " of the forward draw their masks from one stream, " +
               std::to_string(forward_[i].dropout.stream));
  // Backward comes to the places in the opposite order; an operation may be made of several that need the mask.
  std::size_t next = forward_.size();
  for (const Use& use : backward_) {
    const std::size_t place = place_of(use);
    if (next < forward_.size() && place == next && forward_[place].elements == use.elements) continue;
    if (next == 0) refuse("the backward drops at more places than its forward");
    --next;
    if (place != next || forward_[place].elements != use.elements)
      refuse("the backward of " + place_text(next) + " has the mask of " +
             (place == no_place ? "no place of the forward" : place_text(place)) + " (" + use.operation + ")");
  }
  if (next != 0)
    refuse("the backward leaves out " + std::to_string(next) + " of " + std::to_string(forward_.size()) + " places");
  return places == 0 ? "" : std::to_string(places) + " places of dropout, each with its own mask; ";
}

std::vector<std::vector<float>> DropoutWatch::masks() const {
  std::vector<std::vector<float>> all;
  for (const Use& use : forward_) {
    std::int64_t step = 0;
    real().download(&step, use.dropout.step);
    all.push_back(mask_of(use.dropout, step, use.elements));
  }
  return all;
}

void check_seeds_of_ranks(const Host& host, std::string_view name, std::uint64_t seed) {
  const std::vector<std::uint64_t> seeds = comm::exchange(host, name, seed);
  for (std::size_t i = 0; i < seeds.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (seeds[i] == seeds[j])
        refuse("rank " + std::to_string(j) + " and rank " + std::to_string(i) + " draw their masks from one seed, " +
               std::to_string(seeds[i]));
}

}  // namespace assay::verification
