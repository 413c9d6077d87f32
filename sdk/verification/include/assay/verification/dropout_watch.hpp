// Where does a step drop, and by which masks? A backend that hands on every operation of a forward and its backward and
// remembers the dropout of each.
//
//   DropoutWatch watch(backend);
//   model.forward(watch, batch);
//   watch.begin_backward();
//   model.backward(watch, batch);
//   text += watch.check({.probability = 0.1, .seed = 7, .step = optimizer.step_number(), .places = 10});
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/forwarding_backend.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::verification {

class DropoutWatch final : public compute::ForwardingBackend {
 public:
  enum class Keep { nothing, relu_states };  // relu_states: downloads the result of each ReLU, which blocks

  explicit DropoutWatch(compute::Backend& real, Keep keep = Keep::nothing) : ForwardingBackend(real), keep_(keep) {}
  void begin_backward() { is_backward_ = true; }
  void run_any(const compute::AnyOperation& operation) override;

  // What the configuration states about a step.
  struct Expected {
    float probability = 0;
    std::uint64_t seed = 0;
    compute::Tensor step;    // the number that a step counts up: another one each step
    std::size_t places = 0;  // where the model drops; none with a probability of 0
  };
  // Throws WRONG_RESULT if two places draw from one stream, if a backward has another mask than its forward, or if
  // probability, seed, step or places are not the expected ones. Returns what was checked.
  std::string check(const Expected& expected) const;

  // The masks of the forward's places, in its order, made on the host. Blocks for the step's number.
  std::vector<std::vector<float>> masks() const;
  // What the forward's ReLUs left, in its order.
  const std::vector<std::vector<float>>& relu_states() const { return relu_states_; }

 private:
  struct Use {  // of a mask, by an operation
    compute::Dropout dropout;
    std::int64_t elements;
    const void* result;     // of the forward: what a backward may know the mask by
    const char* operation;  // static
  };
  static constexpr std::size_t no_place = static_cast<std::size_t>(-1);

  void use(const compute::Dropout& dropout, std::int64_t elements, const void* result, const char* operation);
  void keep_relu_states(const compute::Tensor& y);
  std::size_t place_of(const Use& use) const;

  Keep keep_;
  bool is_backward_ = false;
  std::vector<Use> forward_, backward_;
  std::vector<std::vector<float>> relu_states_;
};

// Every rank calls it, once per name: ranks that train on different samples must have different masks. Throws
// WRONG_RESULT on all of them where two have one seed.
void check_seeds_of_ranks(const Host& host, std::string_view name, std::uint64_t seed);

}  // namespace assay::verification
