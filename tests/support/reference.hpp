// How far a run of a model is from PyTorch's numbers in tests/data/<model>/expected.safetensors (made in float64 by
// scripts/make_<model>_reference.py). The compiling test defines ASSAY_TEST_DATA; where the program has been copied to
// another machine, the environment's variable of that name says where the folder is there.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <assay/train/safetensors.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace assay::test {

inline std::string reference_folder(const std::string& model) {
  const char* const folder = std::getenv("ASSAY_TEST_DATA");
  return std::string(folder && *folder ? folder : ASSAY_TEST_DATA) + "/" + model + "/";
}

inline std::vector<float> floats_of(const train::SafetensorsReader& file, const std::string& name) {
  const auto bytes = file.read(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The largest relative error, in the Euclidean norm of a tensor, over the reference's tensors whose names begin with
// `prefix` and do not have `left_out` in them. `values_of(name, dims)` gives the run's tensor, and fails the test where
// its shape is another.
template <class ValuesOf>
double worst_reference_error(const std::string& model, const std::string& prefix, ValuesOf values_of,
                             const std::string& left_out = "") {
  const train::SafetensorsReader expected(reference_folder(model) + "expected.safetensors");
  double worst = 0;
  int compared = 0;
  for (const auto& [name, stored] : expected.tensors()) {
    if (name.rfind(prefix, 0) != 0 || (!left_out.empty() && name.find(left_out) != std::string::npos)) continue;
    const std::vector<float> reference = floats_of(expected, name);
    const auto values = values_of(name, stored.dims);
    EXPECT_EQ(values.size(), reference.size()) << name;
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < std::min(values.size(), reference.size()); ++i) {
      const double d = double(values[i]) - double(reference[i]);
      difference += d * d;
      norm += double(reference[i]) * double(reference[i]);
    }
    const double error = std::sqrt(difference / norm);
    EXPECT_TRUE(std::isfinite(error)) << name;
    worst = std::max(worst, error);
    ++compared;
  }
  EXPECT_GT(compared, 0) << "no reference tensor begins with " << prefix;
  return worst;
}

}  // namespace assay::test
