// A compute backend that hands every call to another one: what looks on, or changes an operation, overrides run_any.
#pragma once
#include <assay/compute/backend.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace assay::compute {

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(Backend& real) : real_(real) {}  // which outlives this one

  const char* kind() const override { return real_.kind(); }
  void set_mode(Mode mode) override { real_.set_mode(mode); }
  void synchronize() override { real_.synchronize(); }
  std::size_t workspace_bytes() const override { return real_.workspace_bytes(); }
  void set_workspace(void* address, std::size_t bytes) override { real_.set_workspace(address, bytes); }
  std::vector<PrimitiveInfo> primitives() const override { return real_.primitives(); }
  void set_product_math(ProductMath math) override { real_.set_product_math(math); }
  void leave_multiprocessors(std::int32_t count) override { real_.leave_multiprocessors(count); }
  void set_tuning(Tuning tuning) override { real_.set_tuning(tuning); }
  void share_tuning(AlgorithmExchange* with) override { real_.share_tuning(with); }
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override { return real_.capture(enqueue); }
  std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) override {
    return real_.open_feed(slots, bytes_per_slot, device_memory);
  }
  void begin_side() override { real_.begin_side(); }
  void end_side() override { real_.end_side(); }
  void join_side() override { real_.join_side(); }
  Inspector* inspector() override { return real_.inspector(); }

  void upload(const Tensor& to, const void* host_source) override { real_.upload(to, host_source); }
  void download(void* host_target, const Tensor& from) override { real_.download(host_target, from); }
  void run_any(const AnyOperation& operation) override { real_.run_any(operation); }

 protected:
  Backend& real() const { return real_; }

 private:
  Backend& real_;
};

}  // namespace assay::compute
