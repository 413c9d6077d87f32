#include "worker/peak_probe.hpp"

#include <fmt/format.h>

#include <array>

namespace assay::host::worker {

std::string arithmetic_name(assay_arithmetic arithmetic) {
  constexpr std::array names{"", "fp64", "fp32", "tf32", "fp16", "bf16", "fp8"};
  const bool is_known = arithmetic >= 0 && static_cast<std::size_t>(arithmetic) < names.size();
  return is_known ? names[static_cast<std::size_t>(arithmetic)] : "";
}

std::optional<record::Peak> measured_peak(const assay_workload& workload, assay_workload_self* object,
                                          HostServices& services) {
  const auto* probe = workload.get_extension
                          ? static_cast<const assay_peak_probe*>(workload.get_extension(object, ASSAY_EXT_PEAK))
                          : nullptr;
  if (!probe || !ASSAY_HAS(probe, assay_peak_probe, measure)) return std::nullopt;
  assay_peak found{};
  found.struct_size = sizeof found;
  const assay_launch launch = services.launch(ASSAY_STAGE_VERIFY, 0, nullptr);
  const assay_status status = probe->measure(object, &launch, &found);
  const std::string text = services.take_message();
  if (status != ASSAY_OK) return std::nullopt;
  record::Peak peak;
  if (found.flops_per_s > 0) peak.gflop_per_s = found.flops_per_s * 1e-9;
  if (found.bytes_per_s > 0) peak.gbytes_per_s = found.bytes_per_s * 1e-9;
  peak.text = text;
  return peak;
}

}  // namespace assay::host::worker
