#include "planned/planned_backend.hpp"

#include <algorithm>
#include <cstring>

#include "common/checks.hpp"
#include "common/operation_checks.hpp"
#include "planned/costs.hpp"
#include "planned/listener.hpp"

namespace assay::planned {
namespace {

class PlannedGraph final : public Graph {
 public:
  explicit PlannedGraph(std::vector<assay_planned_operation> operations) : operations_(std::move(operations)) {}
  void launch() override {
    for (const assay_planned_operation& operation : operations_) tell(operation);
  }
  std::size_t node_count() const override { return operations_.size(); }

 private:
  std::vector<assay_planned_operation> operations_;
};

// Its host buffers are real: threads that nobody here knows fill them.
class PlannedFeed final : public Feed {
 public:
  PlannedFeed(std::size_t slots, std::size_t bytes_per_slot, const void* device_memory)
      : slots_(slots),
        bytes_per_slot_(bytes_per_slot),
        step_(feed_slot_step(slots, bytes_per_slot, device_memory)),
        host_(new char[slots * step_]) {}
  void* host_buffer(std::size_t slot) const override {
    require_feed_slot("host_buffer", slot, slots_);
    return host_.get() + slot * step_;
  }
  void send(std::size_t slot) override { require_feed_slot("send", slot, slots_); }
  void deliver(std::size_t slot, const Tensor& to) override {
    require_feed_slot("deliver", slot, slots_);
    require_delivery(to, bytes_per_slot_);
  }
  void reclaim(std::size_t slot) override { require_feed_slot("reclaim", slot, slots_); }

 private:
  std::size_t slots_, bytes_per_slot_, step_;
  std::unique_ptr<char[]> host_;
};

}  // namespace

const char* PlannedBackend::kind() const { return ASSAY_PLANS_CUDA ? "cuda" : "cpu"; }

void PlannedBackend::set_mode(Mode mode) {
  mode_ = mode;
  lane_ = 0;
}

void PlannedBackend::set_product_math(ProductMath math) {
  if (!ASSAY_PLANS_CUDA && math != ProductMath::exact)
    reject("set_product_math", "there is no tf32 arithmetic; expected exact");
  math_ = math;
}

std::unique_ptr<Graph> PlannedBackend::capture(const std::function<void()>& enqueue) {
  if (!ASSAY_PLANS_CUDA) return nullptr;
  std::vector<assay_planned_operation> operations;
  capture_into(&operations);
  try {
    enqueue();
  } catch (...) {
    capture_into(nullptr);
    throw;
  }
  capture_into(nullptr);
  return std::make_unique<PlannedGraph>(std::move(operations));
}

std::unique_ptr<Feed> PlannedBackend::open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) {
  return std::make_unique<PlannedFeed>(slots, bytes_per_slot, device_memory);
}

void PlannedBackend::download(void* host_target, const Tensor& from) { std::memset(host_target, 0, from.bytes()); }

void PlannedBackend::run_any(const AnyOperation& operation) {
  run_checked(operation, [](const auto&) {});
  require_served(operation, math_);
  if (mode_ == Mode::prepare) {
    scratch_bytes_[lane_] = std::max(scratch_bytes_[lane_], scratch_of(operation));
    return;
  }
  tell(cost_of(operation, math_));
}

}  // namespace assay::planned
