// The account of the measured steps. A step of 20 us has no room for a kernel that counts it, and every step writes the
// same results. So the backend counts the operations that it carries out. Some places of the results are spoiled before
// the first measured step, and the last one must leave what the verification's step leaves again.
#include <assay/workload/text.hpp>
#include <cmath>

#include "workload.hpp"

namespace attention {

using assay::compute::DType;
using assay::compute::Tensor;
using assay::workload::number;

namespace {

// Of the magnitude of a result's places. Kernels that add in no fixed order may round a place the other way, by 2^-8 of
// it in bf16 and 2^-11 in fp16; with random signs 256 places add up to 2^-4 of that, and four deviations are allowed.
// Sums of fp32 differ by some 2^-24 of their terms, which are larger than what they add up to.
double tolerance_of(DType dtype) { return dtype == DType::bf16 ? 0x1p-10 : dtype == DType::f16 ? 0x1p-13 : 0x1p-16; }

}  // namespace

Slots Workload::written() const {
  Slots slots;
  if (has_forward()) slots = layer_->results();
  return has_backward() ? joined(std::move(slots), layer_->gradients()) : slots;
}

std::vector<Tensor> Workload::written_tensors() const {
  std::vector<Tensor> tensors;
  for (const Slot* slot : written()) tensors.push_back(slot->in_memory_order());
  return tensors;
}

void Workload::prepare_account() {
  std::vector<assay::workload::SpoiledResults::Result> results;
  for (const Slot* slot : written()) results.push_back({slot->label(), slot->in_memory_order().elements()});
  results_.take_memory(host_, *backend_, std::move(results));
  backend_->begin_steps();
}

void Workload::open_account(const Launch&) { results_.spoil(*backend_, written_tensors()); }

assay::Account Workload::account(const Launch&) {
  timed_marks_ = results_.read(*backend_, written_tensors());
  return {.steps = backend_->steps(backend_->prepared())};
}

void Workload::compare_with_timed() {
  if (timed_marks_.empty()) return;  // a host before 1.5 asks for no account
  const std::vector<assay::StepMark> again = results_.read(*backend_, written_tensors());
  const Slots slots = written();
  for (std::size_t i = 0; i < again.size(); ++i) {
    const double apart = std::abs(timed_marks_[i].value - again[i].value);
    if (!(apart <= tolerance_of(settings_.problem.dtype) * again[i].magnitude))
      throw assay::Error(ASSAY_WRONG_RESULT, "the timed steps left " + slots[i]->label() + " with a sum of " +
                                                 number(timed_marks_[i].value, "%.9g") +
                                                 " over some places, and the same step once more leaves " +
                                                 number(again[i].value, "%.9g"));
  }
}

}  // namespace attention
