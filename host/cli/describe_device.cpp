// assay describe-device
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "plan/describe_device_command.hpp"
#include "plugin/device_words.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_describe_device =
    "Writes the file that `assay plan --device-file` reads: this machine's device, its maker's peaks, and the\n"
    "memory that a process holds before it asks for any. --from adds figures of runs: peaks where the maker's\n"
    "are not known, and the memory of kernels, products and communicators. --probe measures launches and\n"
    "events, how often telemetry changes, rates, and the shapes that libraries take (docs/devices.md). That\n"
    "takes up to a minute, in which nobody else may use the device.";

}  // namespace

int describe_device_command(const Arguments& arguments) {
  plan::DescribeDeviceRequest request;
  std::optional<std::string> device;
  Options options("assay describe-device [options]", about_describe_device);
  options.add("device", device,
              plugin::device_words_in_sentence() + "; auto, the default, is the GPU where there is one");
  options.add("from", request.from, "a run on this device; repeatable");
  options.add("probe", request.probe, "try the device out, and add what was found");
  options.add("output", request.output, "the file that is written (default: standard output)");
  if (!options.read(arguments)) return exit_ok;
  request.device = device.value_or(request.device);
  return plan::describe_device(request);
}

}  // namespace assay::host::cli
