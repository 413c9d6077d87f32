// Tensors that lie in the memory of the test, for what reads them through a backend and runs no operation.
#pragma once
#include <assay/compute/silent_backend.hpp>

#include <cstring>

namespace assay::test {

class HostTensors final : public compute::SilentBackend {
 public:
  const char* kind() const override { return "cpu"; }
  void upload(const compute::Tensor& to, const void* from) override { std::memcpy(to.data, from, to.bytes()); }
  void download(void* to, const compute::Tensor& from) override { std::memcpy(to, from.data, from.bytes()); }
  void run_any(const compute::AnyOperation&) override { throw Error(ASSAY_INTERNAL, "no operation runs here"); }
};

}  // namespace assay::test
