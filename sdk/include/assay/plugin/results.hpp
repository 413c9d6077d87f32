// What a workload reports about itself: the work of a step, the result of its verification, the device's peak.
#pragma once
#include <assay/abi.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay {

struct Work {
  std::uint64_t flops = 0, bytes = 0, items = 0;
  assay_arithmetic arithmetic = ASSAY_ARITHMETIC_UNSTATED;
};

// The device's peak, measured (assay_peak); `text`: how.
struct Peak {
  double flops_per_s = 0, bytes_per_s = 0;
  std::string text;
};

// A number that a step has left, and the magnitude of the terms of its sum.
struct StepMark {
  double value = 0, magnitude = 0;
};

// What the state of a workload shows of the steps since set-up or the last restart (assay_step_account has each field's
// contract). `marks`: of the first steps, `marks_per_step` each.
struct Account {
  std::uint64_t steps = 0;
  std::uint64_t marks_per_step = 0;
  std::vector<StepMark> marks = {};
  double tolerance = 0;  // relative to a mark's magnitude
};

// The needs of a case, stated without a device, for a workload whose operations do not go through assay/compute
// (assay.plan/1).
class Planning {
 public:
  explicit Planning(const assay_plan* plan) noexcept : plan_(plan) {}
  // In the order of setup and the steps: taken, and freed.
  void take(assay_memory_kind kind, std::uint64_t bytes) const {
    plan_->memory(plan_, kind, static_cast<std::int64_t>(bytes));
  }
  void give_back(assay_memory_kind kind, std::uint64_t bytes) const {
    plan_->memory(plan_, kind, -static_cast<std::int64_t>(bytes));
  }
  // One operation of a step; `name` is static text.
  void operation(const char* name, assay_operation_kind kind, const Work& work) const {
    const assay_planned_operation stated{sizeof stated, name, kind, work.arithmetic, work.flops, work.bytes};
    plan_->operation(plan_, &stated);
  }

 private:
  const assay_plan* plan_;
};

// What a verification found right. A wrong result throws Error(ASSAY_WRONG_RESULT) instead.
struct Verified {
  std::string text;      // what was checked
  bool in_part = false;  // a part that should be checked was not; the text states which, and why

  Verified(std::string text_of_all) : text(std::move(text_of_all)) {}
  Verified(std::string text_of_part, bool is_part) : text(std::move(text_of_part)), in_part(is_part) {}
};

}  // namespace assay
