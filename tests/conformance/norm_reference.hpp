// RMS and layer normalisation in float64, for the tests of what is made of them.
#pragma once
#include <cmath>

#include "harness.hpp"

namespace assay::conformance {

inline constexpr double norm_eps = 1e-5;

struct NormTypes {
  DType x, weight, weight_gradient;
};
inline std::vector<NormTypes> norm_type_sets() {
  std::vector<NormTypes> sets = {{DType::f32, DType::f32, DType::f32}};
  for (const DType t : float_types())
    if (t != DType::f32) {
      sets.push_back({t, t, t});
      sets.push_back({t, t, DType::f32});
      sets.push_back({t, DType::f32, DType::f32});
    }
  return sets;
}
struct Normalised {
  Values y, mean, rstd;
};

// RMS normalisation is layer normalisation with mean and bias 0.
inline Normalised normalise(bool layer, const Values& x, const Values& weight, const Values& bias) {
  const std::size_t columns = weight.size(), rows = x.size() / columns;
  Normalised n{Values(x.size()), Values(rows), Values(rows)};
  for (std::size_t r = 0; r < rows; ++r) {
    const double* const row = x.data() + r * columns;
    double sum = 0.0, squares = 0.0;
    for (std::size_t c = 0; layer && c < columns; ++c) sum += row[c];
    n.mean[r] = sum / static_cast<double>(columns);
    for (std::size_t c = 0; c < columns; ++c) squares += (row[c] - n.mean[r]) * (row[c] - n.mean[r]);
    n.rstd[r] = 1.0 / std::sqrt(squares / static_cast<double>(columns) + norm_eps);
    for (std::size_t c = 0; c < columns; ++c)
      n.y[r * columns + c] = (row[c] - n.mean[r]) * n.rstd[r] * weight[c] + (layer ? bias[c] : 0.0);
  }
  return n;
}

struct NormGradients {
  Values x, weight, bias;
};

// Written from the sums, not as the kernels have it; itself checked against central differences below.
inline NormGradients normalise_backward(bool layer, const Values& dy, const Values& x, const Values& weight,
                                        const Normalised& n) {
  const std::size_t columns = weight.size(), rows = x.size() / columns;
  NormGradients g{Values(x.size()), Values(columns), Values(columns)};
  for (std::size_t r = 0; r < rows; ++r) {
    double along_one = 0.0, along_normal = 0.0;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t i = r * columns + c;
      const double normal = (x[i] - n.mean[r]) * n.rstd[r];
      g.weight[c] += dy[i] * normal;
      g.bias[c] += dy[i];
      if (layer) along_one += dy[i] * weight[c] / static_cast<double>(columns);
      along_normal += dy[i] * weight[c] * normal / static_cast<double>(columns);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t i = r * columns + c;
      const double normal = (x[i] - n.mean[r]) * n.rstd[r];
      g.x[i] = n.rstd[r] * (dy[i] * weight[c] - along_one - normal * along_normal);
    }
  }
  return g;
}

inline Values added(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace assay::conformance
