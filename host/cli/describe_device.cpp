// assay describe-device
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "plan/describe_device_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_describe_device =
    "Writes the file of this machine's device that `assay plan --device-file` reads: what it is, what its\n"
    "maker says that it does at most, and what a process holds of its memory without asking for any. --from\n"
    "adds what runs on it have measured: its peaks where the maker's are not known, and what kernels, products\n"
    "and communicators hold. --probe tries out what it and its libraries do: costs of launches and events, how\n"
    "often telemetry changes, rates, the shapes that libraries take (docs/devices.md). That takes up to a minute.\n"
    "Nobody else may use the device meanwhile.";

}  // namespace

int describe_device_command(const Arguments& arguments) {
  plan::DescribeDeviceRequest request;
  std::optional<std::string> device;
  Options options("assay describe-device [options]", about_describe_device);
  options.add("device", device, "cuda or cpu; auto, the default, is the GPU where there is one");
  options.add("from", request.from, "a run on this device; repeatable");
  options.add("probe", request.probe, "try the device out, and add what was found");
  options.add("output", request.output, "the file that is written (default: standard output)");
  if (!options.read(arguments)) return exit_ok;
  request.device = device.value_or(request.device);
  return plan::describe_device(request);
}

}  // namespace assay::host::cli
