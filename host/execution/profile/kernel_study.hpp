// What the kernels of a case say of its step and of each phase: which take most, and what share the matrix products,
// attention and softmax have.
#pragma once
#include "record/case_record.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace assay::host::profile {

// The notes of a record that say why it has no kernels begin so.
inline constexpr std::string_view kernels_note = "kernels: ";

// A kernel, or a class of kernels, in one part of a step. All figures are those of one step.
struct KernelWork {
  std::string kernel_class, name;  // of a class, no name
  double count = 0, time_us = 0;
};

// How the softmax of attention is computed.
enum class Softmax {
  none,        // the part has neither a softmax nor attention
  of_its_own,  // by kernels that do nothing else
  fused,       // inside the kernels of attention: its time is inseparable from the products' there
};

// The whole step, or one of its phases.
struct KernelPart {
  std::string phase;  // "step" for the whole
  double count = 0, time_us = 0;
  std::vector<KernelWork> kernels;  // the longest first
  std::vector<KernelWork> classes;  // the longest first

  double time_of_class_us(std::string_view kernel_class) const;
  double share_of_class(std::string_view kernel_class) const;  // of the part's time; 0 where it has none
  Softmax softmax() const;
};

// The whole step first, then the phases in the record's order.
std::vector<KernelPart> kernel_parts(const record::Kernels& kernels);

}  // namespace assay::host::profile
