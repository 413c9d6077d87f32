// For workloads whose steps write the same results each time (assay.account/1): destroys some places of them before the
// first measured step, and checks these places after the last one. This finds steps that wrote nothing, or not all of
// their results, and no step takes longer.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/backend.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::workload {

class SpoiledResults {
 public:
  static constexpr std::int64_t most_places = 256;  // of each result: few, so that caches stay as they are

  // The results in the order of the calls below, each with as many elements as it will have.
  struct Result {
    std::string name;
    std::int64_t elements;
  };
  // Blocks. In set-up, since no step takes memory.
  void take_memory(const Host& host, compute::Backend& backend, std::vector<Result> results);

  // Enqueues: spoils places of each result. `results`: contiguous, fp32, bf16 or fp16; those without memory are left
  // out, since no step has written them yet.
  void spoil(compute::Backend& backend, const std::vector<compute::Tensor>& results);
  // Waits for the device. WRONG_RESULT where a spoiled place holds no number yet; otherwise the sum over the places of
  // each result, and over their magnitudes. Results without memory have the mark 0.
  std::vector<StepMark> read(compute::Backend& backend, const std::vector<compute::Tensor>& results) const;

 private:
  compute::Tensor places_of(std::size_t result) const;
  compute::Tensor count() const, marks() const;

  DeviceMemory memory_;
  std::vector<Result> results_;
  std::vector<std::int64_t> first_place_;  // of each result, and the end
  std::vector<bool> spoiled_;
};

}  // namespace assay::workload
