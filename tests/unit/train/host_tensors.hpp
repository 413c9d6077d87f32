// Tensors that lie in the memory of the test, for what reads them through a backend and runs no operation.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstring>

namespace assay::test {

class HostTensors final : public compute::Backend {
 public:
  const char* kind() const override { return "cpu"; }
  void set_mode(compute::Mode) override {}
  void synchronize() override {}
  std::size_t workspace_bytes() const override { return 0; }
  void set_workspace(void*, std::size_t) override {}
  std::vector<compute::PrimitiveInfo> primitives() const override { return {}; }
  void set_product_math(compute::ProductMath) override {}
  std::unique_ptr<compute::Graph> capture(const std::function<void()>&) override { return nullptr; }
  std::unique_ptr<compute::Feed> open_feed(std::size_t, std::size_t, void*) override { return nullptr; }
  void upload(const compute::Tensor& to, const void* from) override { std::memcpy(to.data, from, to.bytes()); }
  void download(void* to, const compute::Tensor& from) override { std::memcpy(to, from.data, from.bytes()); }
  void run_any(const compute::AnyOperation&) override { throw Error(ASSAY_INTERNAL, "no operation runs here"); }
};

}  // namespace assay::test
