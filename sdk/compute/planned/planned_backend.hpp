// The backend of a device that carries nothing out. It checks operations as the device's own backend does, asks for the
// scratch that their kernels want, and reports what they cost.
#pragma once
#include <assay/compute/backend.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace assay::planned {

using namespace compute;

class PlannedBackend final : public Backend {
 public:
  const char* kind() const override;
  void set_mode(Mode mode) override;
  void synchronize() override {}
  std::size_t workspace_bytes() const override { return scratch_bytes_[0] + scratch_bytes_[1]; }
  void set_workspace(void*, std::size_t) override {}
  std::vector<PrimitiveInfo> primitives() const override { return {}; }
  void set_product_math(ProductMath math) override;
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override;
  std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) override;
  void begin_side() override { lane_ = 1; }
  void end_side() override { lane_ = 0; }
  void upload(const Tensor&, const void*) override {}
  void download(void* host_target, const Tensor& from) override;  // zeros
  void run_any(const AnyOperation& operation) override;

 private:
  Mode mode_ = Mode::execute;
  ProductMath math_ = ProductMath::exact;
  std::size_t lane_ = 0;
  std::array<std::size_t, 2> scratch_bytes_{};  // the most that an operation of each lane wants
};

// Throws as the device's backend does where no kernel serves the operation, which has been checked.
void require_served(const AnyOperation& operation, ProductMath math);
// Scratch of the GPU's kernels for an operation; that of the CPU's depends on the processor, and counts as none.
std::size_t scratch_of(const AnyOperation& operation);

}  // namespace assay::planned
