// What mutated sources ask: whether a mutant lives, and a few facts on which mutants depend. Each of these sources
// starts with this header (-include).
#pragma once
#include <assay/abi.h>

#include <cstdint>

namespace assay_mutant {

// True where the mutant of this name lives (ASSAY_MUTANT). Counts that its place was reached (ASSAY_MUTANT_COUNTS), as
// assay::mutants::breaks() does: to be asked last of all conditions.
bool on(const char* name);

// Steps are counted from the first one of the warm-up on, which has as many as it takes to settle.
inline std::int64_t first_measured(std::int64_t step) {
  static const std::int64_t first = step;
  return first;
}

// Of a launch, which may be one that marks nothing and knows no stage.
template <class AnyLaunch>
bool measured(const AnyLaunch& launch) {
  if constexpr (requires { launch.stage(); })
    return launch.stage() == ASSAY_STAGE_MEASURE;
  else
    return false;
}
// The number of a measured step, from 0 on; -1 outside of the measured ones.
template <class AnyLaunch>
std::int64_t measured_step(const AnyLaunch& launch) {
  if (!measured(launch)) return -1;
  if constexpr (requires { launch.iteration(); }) {
    const auto step = static_cast<std::int64_t>(launch.iteration());
    return step - first_measured(step);
  }
  return -1;
}

// Whether the forward or backward that runs now is of a measured step: for models, which know no launch. A step notes
// it for as long as it enqueues.
inline bool& in_measured_step() {
  static bool is = false;
  return is;
}
class Noted {
 public:
  template <class AnyLaunch>
  explicit Noted(const AnyLaunch& launch) {
    in_measured_step() = measured(launch);
  }
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;
  ~Noted() { in_measured_step() = false; }
};

// A number in a tensor of one int64. A CPU's memory is read as it is, and its operations are carried out at once.
template <class AnyTensor>
std::int64_t number_in(const AnyTensor& tensor) {
  return tensor.data ? *static_cast<const std::int64_t*>(tensor.data) : 0;
}

}  // namespace assay_mutant
