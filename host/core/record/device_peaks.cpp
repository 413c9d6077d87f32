#include "record/device_peaks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::host::record {
namespace {

struct Row {
  std::string_view name;               // as the driver reports it
  double fp64, fp32, tf32, fp16, fp8;  // TFLOP/s without sparsity; 0: the device has no such arithmetic
  double gbytes_per_s;
  std::string_view source;  // a datasheet states products of tensor cores with sparsity: half of that is here
};

// bf16 is as fast as fp16 on all of them. fp64 and fp32 are those of the ordinary cores.
constexpr std::string_view a100 = "NVIDIA A100 Tensor Core GPU datasheet",
                           h100 = "NVIDIA H100 Tensor Core GPU datasheet",
                           h200 = "NVIDIA H200 Tensor Core GPU datasheet", b200 = "NVIDIA HGX B200 datasheet, per GPU",
                           gh200 = "NVIDIA GH200 Grace Hopper Superchip datasheet",
                           ada = "NVIDIA Ada GPU Architecture whitepaper";
constexpr std::array rows{Row{"NVIDIA A100-SXM4-40GB", 9.7, 19.5, 156, 312, 0, 1555, a100},
                          Row{"NVIDIA A100-PCIE-40GB", 9.7, 19.5, 156, 312, 0, 1555, a100},
                          Row{"NVIDIA A100-SXM4-80GB", 9.7, 19.5, 156, 312, 0, 2039, a100},
                          Row{"NVIDIA A100 80GB PCIe", 9.7, 19.5, 156, 312, 0, 1935, a100},
                          Row{"NVIDIA A30", 5.2, 10.3, 82, 165, 0, 933, "NVIDIA A30 Tensor Core GPU datasheet"},
                          Row{"NVIDIA A40", 0, 37.4, 74.8, 149.7, 0, 696, "NVIDIA A40 datasheet"},
                          Row{"NVIDIA A10", 0, 31.2, 62.5, 125, 0, 600, "NVIDIA A10 Tensor Core GPU datasheet"},
                          Row{"NVIDIA L4", 0, 30.3, 60, 121, 242.5, 300, "NVIDIA L4 Tensor Core GPU datasheet"},
                          Row{"NVIDIA L40", 0, 90.5, 90.5, 181, 362, 864, "NVIDIA L40 datasheet"},
                          Row{"NVIDIA L40S", 0, 91.6, 183, 362, 733, 864, "NVIDIA L40S datasheet"},
                          Row{"NVIDIA H100 80GB HBM3", 33.5, 66.9, 494.7, 989.4, 1978.9, 3352, h100},  // SXM
                          Row{"NVIDIA H100 PCIe", 25.6, 51.2, 378, 756, 1513, 2039, h100},
                          Row{"NVIDIA H100 NVL", 30, 60, 417.5, 835.5, 1670.5, 3938, h100},
                          Row{"NVIDIA GH200 480GB", 33.5, 66.9, 494.7, 989.4, 1978.9, 4023, gh200},
                          Row{"NVIDIA H200", 33.5, 66.9, 494.7, 989.4, 1978.9, 4800, h200},  // SXM
                          Row{"NVIDIA H200 NVL", 30, 60, 417.5, 835.5, 1670.5, 4800, h200},
                          Row{"NVIDIA B200", 37, 75, 1125, 2250, 4500, 8000, b200},
                          Row{"NVIDIA GeForce RTX 4090", 1.29, 82.6, 82.6, 165.2, 330.3, 1008, ada}};

double tflop_per_s(const Row& row, std::string_view arithmetic) {
  if (arithmetic == "fp64") return row.fp64;
  if (arithmetic == "fp32") return row.fp32;
  if (arithmetic == "tf32") return row.tf32;
  if (arithmetic == "fp16" || arithmetic == "bf16") return row.fp16;
  if (arithmetic == "fp8") return row.fp8;
  return 0;
}

}  // namespace

std::optional<Peak> stated_peak(std::string_view device_name, std::string_view arithmetic) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == device_name; });
  if (row == rows.end()) return std::nullopt;
  Peak peak;
  peak.gbytes_per_s = row->gbytes_per_s;
  peak.text = fmt::format("{}: {:g} GB/s", row->source, row->gbytes_per_s);
  if (const double tflop = tflop_per_s(*row, arithmetic); tflop > 0) {
    peak.gflop_per_s = tflop * 1e3;
    peak.text += fmt::format(", {:g} TFLOP/s in {}, dense", tflop, arithmetic);
  }
  return peak;
}

}  // namespace assay::host::record
