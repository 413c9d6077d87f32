// A GPU's own name as nvidia-smi -L writes it. Plain C++.
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace assay::cuda {

// "GPU-6f2c0a1b-7d3e-4f55-9a01-0123456789ab", or "MIG-..." of a part. "" of 16 zeros, which are no name.
inline std::string uuid_text(const char (&bytes)[16], bool is_part) {
  std::string text = is_part ? "MIG-" : "GPU-";
  bool is_told = false;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
    is_told |= bytes[i] != 0;
  }
  return is_told ? text : "";
}

}  // namespace assay::cuda
