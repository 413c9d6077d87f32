// How many trials a simulation makes.
#pragma once

namespace assay::test {

// Under a sanitizer a trial takes ten times as long, and a tenth of them reaches the same code. What share of them may
// go wrong is shown by the optimised build, which makes them all.
constexpr int that_many(int trials) {
#ifdef __SANITIZE_ADDRESS__
  return trials / 10;
#else
  return trials;
#endif
}

}  // namespace assay::test
