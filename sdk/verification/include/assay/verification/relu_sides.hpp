// Two ways to compute a model with ReLUs agree within rounding once they agree on which states are positive. A state so
// near 0 that rounding decides its side passes all of a gradient or none. If states differ by a relative e, about a
// share e of them is of that kind, and gradients then differ by sqrt(e), a thousand roundings of fp32. So one way notes
// the sides of its states, and the other one follows it where the state is within rounding of 0.
//
//   ReluSides sides{.error = e};               // of states, relative to their root mean square in their operation
//   NotesSides noting(backend, sides);         // the timed way walks through this one
//   FollowsSides following(backend, sides);    // and then the other way through this one
//
// A state that is beyond rounding of 0 and on another side is WRONG_RESULT.
//
// Both look at bias_relu_dropout_forward without dropout and at relu, in the order in which they come. Nothing in
// Mode::prepare. They block, and the sides take a byte of the host's memory for each state.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::verification {

struct ReluSides {
  double error;
  enum class Side : std::uint8_t { other, positive, clear };  // clear: positive, and beyond rounding of 0
  std::vector<std::vector<Side>> of_operations;               // by state
};

class NotesSides final : public compute::ForwardingBackend {
 public:
  NotesSides(compute::Backend& real, ReluSides& sides) : ForwardingBackend(real), sides_(sides) {}
  void set_mode(compute::Mode mode) override;
  void run_any(const compute::AnyOperation& operation) override;

 private:
  ReluSides& sides_;
  bool executes_ = true;
};

class FollowsSides final : public compute::ForwardingBackend {
 public:
  FollowsSides(compute::Backend& real, const ReluSides& sides) : ForwardingBackend(real), sides_(sides) {}
  void set_mode(compute::Mode mode) override;
  void run_any(const compute::AnyOperation& operation) override;

  // "3 of 12345 states of ReLUs, within rounding of 0, taken on the timed path's side"; throws INTERNAL if it did not
  // reach all operations.
  std::string text() const;

 private:
  const ReluSides& sides_;
  bool executes_ = true;
  std::size_t next_ = 0;
  std::int64_t states_ = 0, followed_ = 0;
};

}  // namespace assay::verification
