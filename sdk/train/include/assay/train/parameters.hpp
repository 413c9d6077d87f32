// The parameters of a model in one arena, in the order in which backward finishes their gradients, so that a
// communication bucket, a shard or a registration window is a range of the arena and not a copy.
//
// Parameters that one matrix product reads together (query, key and value; gate and up) form a group: adjacent, without
// padding between them, so that the group is itself a matrix.
//
// A set whose parameters come and go (block_parameters.hpp) has no bound arena: each parameter has its place only while
// it is here.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/element_range.hpp>
#include <assay/workload/precision.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::train {

struct Parameter {
  std::string name;                   // as in a safetensors file
  std::vector<std::int64_t> dims;     // (out, in) for matrices, (count, out, in) for a stack of them
  std::int64_t offset = 0;            // elements from the arena's begin
  float init_mean = 0, init_std = 0;  // it starts from this normal distribution; std 0: the constant mean
  // How an optimizer of matrices (muon.hpp) sees each (out, in): this many matrices, one above the other. 0: none, as
  // for a table of words or a stack of biases.
  std::int64_t row_parts = 1;
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }
};

class ParameterSet {
 public:
  using Id = std::size_t;

  explicit ParameterSet(const workload::PrecisionPolicy& policy);
  // Adds a group of parameters; returns the first one's id, the others follow. INVALID_ARGUMENT for a name that there
  // is, OUT_OF_MEMORY for more bytes than any memory has (checked_size.hpp).
  Id add(std::vector<Parameter> group);
  // To be called after the last add: makes the arenas' length a multiple of `multiple` elements. The padding at the end
  // is zero, and stays so, because its gradients are zero.
  void pad_to(std::int64_t multiple);

  // To be called after the last add, once: the gradients of these parameters, each a group by itself, have no place in
  // the arena. Whoever makes one uses it at once (GradientListener::update_of); show_gradients() gives them places for
  // a while, for a verification.
  void drop_gradients(const std::vector<Id>& ids);
  const std::vector<Id>& dropped_gradients() const { return dropped_; }
  bool drops_gradient(Id id) const;
  // `memory` has shown_gradient_bytes(); null: the places are gone again.
  void show_gradients(void* memory) { shown_gradients_ = memory; }
  std::size_t shown_gradient_bytes() const;

  const std::vector<Parameter>& all() const { return parameters_; }
  std::int64_t parameter_count() const;                              // without padding
  std::int64_t arena_elements() const { return elements_ + tail_; }  // with padding
  std::int64_t tail_elements() const { return tail_; }               // the part of it that pad_to added
  const std::vector<Id>& group_begins() const { return groups_; }    // the first parameter of each group
  // The arena elements before the end of the parameters with an id < end. For the last one this is the whole arena.
  std::int64_t elements_before(Id end) const {
    return end < parameters_.size() ? parameters_[end].offset : arena_elements();
  }
  const workload::PrecisionPolicy& policy() const { return policy_; }

  // Bytes of each arena. The compute copy is 0 where the policy needs none; it counts as parameters.
  std::size_t value_bytes() const { return bytes(policy_.parameter); }
  std::size_t copy_bytes() const { return policy_.compute_copy() ? bytes(policy_.activation) : 0; }
  std::size_t gradient_bytes() const {
    return static_cast<std::size_t>(gradient_elements()) * compute::size_of(policy_.gradient);
  }
  std::int64_t gradient_elements() const { return gradient_position(arena_elements()); }  // of the gradients' arena
  // Where the gradient of an element of the arena lies in that of gradients, which differs behind dropped ones.
  std::int64_t gradient_position(std::int64_t element) const;

  std::size_t gradient_offset_bytes(Id id) const;  // the place of its gradient in the arena

  void bind(void* values, void* compute_copy, void* gradients);
  // The new place of one parameter, instead of the arenas: null while it is not here. Those of a group lie as in the
  // arena, one after the other. From the first call on no tensor of a whole arena is valid.
  struct Place {
    void* value = nullptr;
    void* compute = nullptr;  // where the policy has a copy; else `value` counts
    void* gradient = nullptr;
  };
  void place(Id id, const Place& place);

  // One parameter, or `count` adjacent ones of a group as a single matrix (their first dimensions add up).
  compute::Tensor value(Id id, std::size_t count = 1) const;    // the optimizer updates this
  compute::Tensor compute(Id id, std::size_t count = 1) const;  // a step reads this
  compute::Tensor gradient(Id id, std::size_t count = 1) const;
  compute::Tensor all_values() const;  // the whole arena, flat
  compute::Tensor all_gradients() const;
  compute::Tensor values(const ElementRange& range) const { return piece(all_values(), range); }  // flat
  // Of a range without dropped gradients.
  compute::Tensor gradients(const ElementRange& range) const {
    return all_gradients().slice(0, gradient_position(range.begin), range.elements());
  }
  compute::Tensor compute_copy() const;  // flat; empty when there is none

  // Draws every parameter from its distribution, and sets gradients to 0; the numbers are the same for any device and
  // number of threads. `streams`: of each parameter the id that its numbers are of, where this set is part of another
  // one.
  void initialize(compute::Backend& backend, std::uint64_t seed, std::span<const Id> streams = {}) const;
  void refresh_compute_copy(compute::Backend& backend) const;

 private:
  std::size_t bytes(compute::DType dtype) const {
    return static_cast<std::size_t>(arena_elements()) * compute::size_of(dtype);
  }
  static compute::Tensor piece(const compute::Tensor& arena, const ElementRange& range) {
    return arena.slice(0, range.begin, range.elements());
  }
  compute::Tensor at(void* data, compute::DType dtype, Id id, std::size_t count) const;
  void* address(void* base, void* Place::*place, compute::DType dtype, Id id) const;
  std::int64_t group_end(Id id) const;  // of the group that a single parameter is

  workload::PrecisionPolicy policy_;
  std::vector<Parameter> parameters_;
  std::vector<Id> groups_;
  std::int64_t elements_ = 0;  // to the end of the last group
  std::int64_t tail_ = 0;
  std::vector<Place> places_;          // by parameter; empty: all lie in the arenas
  std::vector<Id> dropped_;            // in order
  void* shown_gradients_;              // of the dropped ones, one after the other
  void *values_, *copy_, *gradients_;  // before bind(): places of no memory, by which a recorded step knows them
};

// A GradientListener hears during a backward how far it has come.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  // The gradients of all parameters with an id < end are enqueued on the backend's stream: later work there may read
  // them, and nothing later in the step writes them. Backward may read these parameters until the next call, or, after
  // the last one, until its end; nothing enqueued later in the step reads them. `end` rises from call to call; the last
  // one is the number of parameters.
  virtual void gradients_ready(ParameterSet::Id end) = 0;
  // The update of a parameter that the operation which makes its gradient is to carry out as well, or none. A model
  // may ask, once for each parameter, when nothing later in the step reads the parameter; what it gets it must pass on.
  virtual compute::WeightUpdate update_of(ParameterSet::Id /*id*/) { return {}; }
};

}  // namespace assay::train
