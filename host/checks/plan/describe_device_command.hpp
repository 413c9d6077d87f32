// `assay describe-device`: writes the file of this machine's device that `assay plan` reads.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::plan {

struct DescribeDeviceRequest {
  std::string device = "auto";
  std::vector<std::string> from;  // runs on it
  bool probe = false;             // tries out what it does
  std::optional<std::string> output;
};

// Throws UsageError.
int describe_device(const DescribeDeviceRequest& request);

}  // namespace assay::host::plan
