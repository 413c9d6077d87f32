// The toy model's gradients once more, row by row in float64.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "dtypes.hpp"

namespace mixed_precision {

std::vector<std::vector<double>> toy_gradients(const std::vector<std::vector<float>>& parameters,
                                               const std::vector<float>& x, const std::vector<std::int64_t>& labels) {
  constexpr std::size_t rows = toy_rows, inputs = toy_inputs, hidden = toy_hidden, classes = toy_classes;
  const auto& [fc2, norm_weight, norm_bias, fc1] = std::tie(parameters[0], parameters[1], parameters[2], parameters[3]);
  std::vector<std::vector<double>> gradients;
  for (const auto& p : parameters) gradients.emplace_back(p.size(), 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    double z[hidden], unit[hidden], y[hidden], logits[classes];
    double mean = 0;
    double variance = 0;
    for (std::size_t h = 0; h < hidden; ++h) {
      z[h] = 0;
      for (std::size_t i = 0; i < inputs; ++i) z[h] += double{x[r * inputs + i]} * double{fc1[h * inputs + i]};
      mean += std::max(z[h], 0.0) / double{hidden};
    }
    for (const double v : z) variance += std::pow(std::max(v, 0.0) - mean, 2) / double{hidden};
    const double rstd = 1 / std::sqrt(variance + 1e-5);
    for (std::size_t h = 0; h < hidden; ++h) {
      unit[h] = (std::max(z[h], 0.0) - mean) * rstd;
      y[h] = unit[h] * double{norm_weight[h]} + double{norm_bias[h]};
    }
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      logits[c] = 0;
      for (std::size_t h = 0; h < hidden; ++h) logits[c] += y[h] * double{fc2[c * hidden + h]};
      total += std::exp(logits[c]);
    }
    double dunit[hidden] = {};
    double dunit_mean = 0;
    double dunit_by_unit_mean = 0;
    double dy[hidden] = {};
    for (std::size_t c = 0; c < classes; ++c) {
      const bool is_label = labels[r] == static_cast<std::int64_t>(c);
      const double dlogit = (std::exp(logits[c]) / total - (is_label ? 1 : 0)) / double{rows};
      for (std::size_t h = 0; h < hidden; ++h) {
        gradients[0][c * hidden + h] += dlogit * y[h];
        dy[h] += dlogit * double{fc2[c * hidden + h]};
      }
    }
    for (std::size_t h = 0; h < hidden; ++h) {
      gradients[1][h] += dy[h] * unit[h];
      gradients[2][h] += dy[h];
      dunit[h] = dy[h] * double{norm_weight[h]};
      dunit_mean += dunit[h] / double{hidden};
      dunit_by_unit_mean += dunit[h] * unit[h] / double{hidden};
    }
    for (std::size_t h = 0; h < hidden; ++h) {
      const double dz = z[h] > 0 ? rstd * (dunit[h] - dunit_mean - unit[h] * dunit_by_unit_mean) : 0;
      for (std::size_t i = 0; i < inputs; ++i) gradients[3][h * inputs + i] += dz * double{x[r * inputs + i]};
    }
  }
  return gradients;
}

}  // namespace mixed_precision
