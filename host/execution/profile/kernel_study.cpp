#include "profile/kernel_study.hpp"

#include <algorithm>
#include "profile/kernel_class.hpp"

namespace assay::host::profile {
namespace {

void add(std::vector<KernelWork>& into, const std::string& kernel_class, const std::string& name, double count,
         double time_us) {
  auto found = std::find_if(into.begin(), into.end(), [&](const KernelWork& work) {
    return work.kernel_class == kernel_class && work.name == name;
  });
  if (found == into.end()) found = into.insert(into.end(), KernelWork{kernel_class, name});
  found->count += count;
  found->time_us += time_us;
}

void add(KernelPart& part, const record::KernelRow& row) {
  part.count += row.count;
  part.time_us += row.time_us;
  add(part.kernels, row.kernel_class, row.name, row.count, row.time_us);
  add(part.classes, row.kernel_class, "", row.count, row.time_us);
}

}  // namespace

double KernelPart::time_of_class_us(std::string_view kernel_class) const {
  for (const KernelWork& work : classes)
    if (work.kernel_class == kernel_class) return work.time_us;
  return 0;
}

double KernelPart::share_of_class(std::string_view kernel_class) const {
  return time_us > 0 ? time_of_class_us(kernel_class) / time_us : 0;
}

Softmax KernelPart::softmax() const {
  if (time_of_class_us(class_of_softmax) > 0) return Softmax::of_its_own;
  return time_of_class_us(class_of_attention) > 0 ? Softmax::fused : Softmax::none;
}

std::vector<KernelPart> kernel_parts(const record::Kernels& kernels) {
  std::vector<KernelPart> parts(1);
  parts[0].phase = "step";
  for (const auto& [phase, rows] : kernels) {
    KernelPart part;
    part.phase = phase;
    for (const record::KernelRow& row : rows) {
      add(part, row);
      add(parts[0], row);
    }
    parts.push_back(std::move(part));
  }
  for (KernelPart& part : parts)
    for (std::vector<KernelWork>* works : {&part.kernels, &part.classes})
      std::stable_sort(works->begin(), works->end(),
                       [](const KernelWork& a, const KernelWork& b) { return a.time_us > b.time_us; });
  return parts;
}

}  // namespace assay::host::profile
