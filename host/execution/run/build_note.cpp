#include "run/build_note.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "telemetry/environment.hpp"

namespace assay::host::run {

bool is_unoptimised(const std::string& build) {
  if (build.empty()) return false;  // it does not say
  // Behind the compiler stands CMake's build type, which is empty where nobody chose one.
  return build.ends_with(' ') || build.ends_with("Debug") || build.find("unoptimised") != std::string::npos ||
         build.find("not optimised") != std::string::npos;
}

std::string note_on_builds(const RunTarget& target, const record::Device& device, const std::string& host_build) {
  std::vector<std::string> found;
  const auto look = [&found](const std::string& what, const std::string& build) {
    if (is_unoptimised(build))
      found.push_back(fmt::format("{} ({})", what, build.substr(0, build.find_last_not_of(' ') + 1)));
  };
  // As cmake's ASSAY_QUICK_LABEL and the CUDA device have it.
  const auto is_quick = [](const std::string& build) {
    return build.find("kernels not optimised") != std::string::npos || build.ends_with("-O1, not optimised");
  };
  look("plugin " + target.plugin_id, target.plugin_build);
  look("the " + device.kind + " device", device.build);
  look("assay", host_build);
  if (found.empty()) return "";
  return fmt::format("not optimised: {}; times may be many times too long: build with -DCMAKE_BUILD_TYPE=Release{}",
                     fmt::join(found, ", "),
                     is_quick(target.plugin_build) || is_quick(device.build) ? " and ASSAY_QUICK_KERNELS=OFF" : "");
}

std::string note_on_builds(const RunTarget& target, const record::Device& device) {
  return note_on_builds(target, device, telemetry::assay_compiler());
}

}  // namespace assay::host::run
