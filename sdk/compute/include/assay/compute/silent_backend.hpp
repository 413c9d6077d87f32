// A compute backend that carries nothing out, for observing calls: a derived class overrides those it needs.
#pragma once
#include <assay/compute/backend.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace assay::compute {

class SilentBackend : public Backend {
 public:
  const char* kind() const override { return "silent"; }
  void set_mode(Mode) override {}
  void synchronize() override {}
  std::size_t workspace_bytes() const override { return 0; }
  void set_workspace(void*, std::size_t) override {}
  std::vector<PrimitiveInfo> primitives() const override { return {}; }
  void set_product_math(ProductMath) override {}
  std::unique_ptr<Graph> capture(const std::function<void()>&) override { return nullptr; }
  std::unique_ptr<Feed> open_feed(std::size_t, std::size_t, void*) override { return nullptr; }
  void upload(const Tensor&, const void*) override {}
  void download(void*, const Tensor&) override {}
  void run_any(const AnyOperation&) override {}
};

}  // namespace assay::compute
