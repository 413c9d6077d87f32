// study = "dtypes": which format each tensor of the toy model has while it trains under a precision policy.
#pragma once
#include <memory>
#include <vector>

#include "study.hpp"
#include "toy_model.hpp"

namespace mixed_precision {

class Dtypes final : public Study {
 public:
  explicit Dtypes(const assay::Case& c);
  void setup(const Launch& launch) override;
  void run(const Launch& launch) override { enqueue_step(launch); }
  void finish(const Launch& launch) override;
  std::string verify(const Launch& launch) override;  // the gradients against those of float64

 private:
  void enqueue_step(const Launch& launch) const;
  void check_inputs() const;
  std::string check_operations() const;

  ToyTrainer trainer_;
};

// The gradients of the mean loss by each parameter, with float64 throughout. They are in the order of ToyParameters,
// and so are `parameters`.
std::vector<std::vector<double>> toy_gradients(const std::vector<std::vector<float>>& parameters,
                                               const std::vector<float>& x, const std::vector<std::int64_t>& labels);

}  // namespace mixed_precision
