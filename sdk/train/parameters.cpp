#include "assay/train/parameters.hpp"

#include <algorithm>
#include <cassert>

#include <assay/compute/checked_size.hpp>
#include <assay/train/unbound_memory.hpp>

namespace assay::train {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {
// In elements: 256 bytes of fp32, 128 of bf16.
constexpr std::int64_t group_alignment = 64;
// The format of a parameter or a gradient that is the widest.
constexpr DType widest = DType::f32;
std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * compute::size_of(widest); }
}  // namespace

ParameterSet::ParameterSet(const workload::PrecisionPolicy& policy)
    : policy_(policy),
      shown_gradients_(unbound_place(UnboundMemory::shown_gradients, 0)),
      values_(unbound_place(UnboundMemory::parameters, 0)),
      copy_(unbound_place(UnboundMemory::compute_copy, 0)),
      gradients_(unbound_place(UnboundMemory::gradients, 0)) {}

void ParameterSet::drop_gradients(const std::vector<Id>& ids) {
  dropped_ = ids;
  std::sort(dropped_.begin(), dropped_.end());
  for (const Id id : dropped_)
    if (group_end(id) < 0)
      throw Error(ASSAY_INVALID_ARGUMENT,
                  "the gradient of '" + parameters_[id].name + "' cannot be dropped: the parameter is one of a group");
}

bool ParameterSet::drops_gradient(Id id) const { return std::binary_search(dropped_.begin(), dropped_.end(), id); }

std::int64_t ParameterSet::group_end(Id id) const {
  const auto group = std::lower_bound(groups_.begin(), groups_.end(), id);
  if (group == groups_.end() || *group != id) return -1;
  if (group + 1 == groups_.end()) return id + 1 == parameters_.size() ? elements_ : -1;
  return *(group + 1) == id + 1 ? parameters_[id + 1].offset : -1;
}

std::int64_t ParameterSet::gradient_position(std::int64_t element) const {
  std::int64_t before = 0;
  for (const Id id : dropped_) {
    if (parameters_[id].offset >= element) break;
    before += group_end(id) - parameters_[id].offset;
  }
  return element - before;
}

std::size_t ParameterSet::shown_gradient_bytes() const {
  return static_cast<std::size_t>(arena_elements() - gradient_elements()) * compute::size_of(policy_.gradient);
}

ParameterSet::Id ParameterSet::add(std::vector<Parameter> group) {
  assert(tail_ == 0);
  const Id first = parameters_.size();
  groups_.push_back(first);
  for (Parameter& p : group) {
    for (const Parameter& other : parameters_)
      if (other.name == p.name) throw Error(ASSAY_INVALID_ARGUMENT, "two parameters are named '" + p.name + "'");
    p.offset = elements_;
    const std::size_t bytes = compute::checked_bytes("the parameter '" + p.name + "'", widest, p.dims);
    compute::checked_sum("a model with the parameter '" + p.name + "'", bytes_of(elements_), bytes);
    elements_ += p.elements();
    parameters_.push_back(std::move(p));
  }
  elements_ = (elements_ + group_alignment - 1) / group_alignment * group_alignment;
  return first;
}

void ParameterSet::pad_to(std::int64_t multiple) { tail_ = (multiple - elements_ % multiple) % multiple; }

std::size_t ParameterSet::gradient_offset_bytes(Id id) const {
  return static_cast<std::size_t>(gradient_position(parameters_[id].offset)) * compute::size_of(policy_.gradient);
}

std::int64_t ParameterSet::parameter_count() const {
  std::int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.elements();
  return n;
}

void ParameterSet::bind(void* values, void* compute_copy, void* gradients) {
  values_ = values, copy_ = compute_copy, gradients_ = gradients, shown_gradients_ = nullptr;
}

void ParameterSet::place(Id id, const Place& place) {
  places_.resize(parameters_.size());
  places_[id] = place;
}

void* ParameterSet::address(void* base, void* Place::*place, DType dtype, Id id) const {
  if (!places_.empty()) return places_[id].*place;
  return base ? static_cast<char*>(base) + static_cast<std::size_t>(parameters_[id].offset) * compute::size_of(dtype)
              : nullptr;
}

Tensor ParameterSet::at(void* data, DType dtype, Id id, std::size_t count) const {
  const Parameter& first = parameters_[id];
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < count; ++i) rows += parameters_[id + i].dims[0];
  assert(first.dims.size() <= 3 && (first.dims.size() < 3 || count == 1));
  if (first.dims.size() == 3) return Tensor(data, dtype, {rows, first.dims[1], first.dims[2]});
  return first.dims.size() == 1 ? Tensor(data, dtype, {rows}) : Tensor(data, dtype, {rows, first.dims[1]});
}

Tensor ParameterSet::value(Id id, std::size_t count) const {
  return at(address(values_, &Place::value, policy_.parameter, id), policy_.parameter, id, count);
}
Tensor ParameterSet::gradient(Id id, std::size_t count) const {
  if (!places_.empty()) return at(places_[id].gradient, policy_.gradient, id, count);
  const std::int64_t position = gradient_position(parameters_[id].offset);
  const bool is_dropped = drops_gradient(id);
  void* const base = is_dropped ? shown_gradients_ : gradients_;
  const std::int64_t from_base = is_dropped ? parameters_[id].offset - position : position;
  void* const data =
      base ? static_cast<char*>(base) + static_cast<std::size_t>(from_base) * compute::size_of(policy_.gradient)
           : nullptr;
  return at(data, policy_.gradient, id, count);
}
Tensor ParameterSet::compute(Id id, std::size_t count) const {
  if (!policy_.compute_copy()) return value(id, count);
  return at(address(copy_, &Place::compute, policy_.activation, id), policy_.activation, id, count);
}
Tensor ParameterSet::all_values() const { return Tensor(values_, policy_.parameter, {arena_elements()}); }
Tensor ParameterSet::all_gradients() const { return Tensor(gradients_, policy_.gradient, {gradient_elements()}); }
Tensor ParameterSet::compute_copy() const {
  return policy_.compute_copy() ? Tensor(copy_, policy_.activation, {arena_elements()}) : Tensor();
}

void ParameterSet::initialize(compute::Backend& backend, std::uint64_t seed, std::span<const Id> streams) const {
  // The padding too: optimizers walk over it.
  backend.run(op::Fill{.x = all_values(), .value = 0.0});
  if (gradients_) backend.run(op::Fill{.x = all_gradients(), .value = 0.0});
  for (Id id = 0; id < parameters_.size(); ++id) {
    const Parameter& p = parameters_[id];
    if (p.init_std == 0)
      backend.run(op::Fill{.x = value(id), .value = p.init_mean});
    else
      backend.run(op::RandomNormal{.x = value(id),
                                   .seed = seed,
                                   .stream = streams.empty() ? id : streams[id],
                                   .mean = p.init_mean,
                                   .std = p.init_std});
  }
  refresh_compute_copy(backend);
}

void ParameterSet::refresh_compute_copy(compute::Backend& backend) const {
  if (policy_.compute_copy()) backend.run(op::Copy{.to = compute_copy(), .from = all_values()});
}

}  // namespace assay::train
