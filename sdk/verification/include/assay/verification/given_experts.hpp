// The experts chosen in one step, on the device again, for models to be compared with it: if two scores are nearly
// equal, rounding decides which expert a token goes to.
#pragma once
#include <assay/verification/decoder_reference.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::verification {

class GivenExperts {
 public:
  // Throws OUT_OF_MEMORY. Blocks.
  GivenExperts(const Host& host, compute::Backend& backend, const ChosenExperts& chosen, std::int64_t per_token) {
    std::size_t count = 0;
    for (const auto& of_layer : chosen.by_layer) count += of_layer.size();
    memory_ = DeviceMemory(host, ASSAY_MEMORY_DATA, count * sizeof(std::int32_t), "verification");
    auto* at = memory_.data<char>();
    for (const auto& of_layer : chosen.by_layer) {
      by_layer_.emplace_back();
      if (of_layer.empty()) continue;
      by_layer_.back() =
          compute::Tensor(at, compute::DType::i32, {static_cast<std::int64_t>(of_layer.size()) / per_token, per_token});
      backend.upload(by_layer_.back(), of_layer.data());
      at += by_layer_.back().bytes();
    }
  }
  // For models::DecoderModel::give_experts.
  const std::vector<compute::Tensor>& by_layer() const { return by_layer_; }

 private:
  DeviceMemory memory_;
  std::vector<compute::Tensor> by_layer_;
};

}  // namespace assay::verification
