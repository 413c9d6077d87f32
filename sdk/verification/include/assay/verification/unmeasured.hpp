// Verifications are not measured, so their operations are prepared without autotuning.
#pragma once
#include <assay/compute/backend.hpp>

namespace assay::verification {

class Unmeasured {
 public:
  explicit Unmeasured(compute::Backend& backend) : backend_(backend) {
    backend_.set_tuning(compute::Tuning::first_choice);
  }
  Unmeasured(const Unmeasured&) = delete;
  Unmeasured& operator=(const Unmeasured&) = delete;
  ~Unmeasured() { backend_.set_tuning(compute::Tuning::measured); }

 private:
  compute::Backend& backend_;
};

}  // namespace assay::verification
