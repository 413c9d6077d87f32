#include "run/installed_ncu.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/command.hpp"
#include "common/text_format.hpp"
#include "profile/ncu.hpp"
#include "profile/program.hpp"

namespace assay::host::run {
namespace {

constexpr std::chrono::seconds ncu_patience{30};  // its first start reads a large file, perhaps over the network

InstalledNcu look_for_ncu() {
  const auto program = profile::find_program("ncu");
  if (!program)
    return {"",
            "ncu is not on the PATH; install Nsight Compute (it comes with the CUDA toolkit), and add its folder, "
            "such as /usr/local/cuda/bin, to PATH"};
  const CommandAnswer answer = run_command({program->string(), "--version"}, ncu_patience);
  if (!answer.is_good())
    return {"", fmt::format("{} --version does not work: {}", program->string(), one_line(answer.complaint()))};
  const std::string version = profile::ncu_version(answer.out + answer.err);
  if (version.empty())
    return {"", fmt::format("{} --version names no version; is it NVIDIA's Nsight Compute?", program->string())};
  if (profile::is_too_old(version))
    return {version,
            fmt::format("{} is of version {}, and assay needs {} or later; install a newer Nsight Compute, and "
                        "put its folder first on the PATH",
                        program->string(), version, profile::oldest_ncu)};
  return {version, ""};
}

}  // namespace

const InstalledNcu& installed_ncu() {
  static const InstalledNcu installed = look_for_ncu();
  return installed;
}

}  // namespace assay::host::run
