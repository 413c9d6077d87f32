#include "run/nsys_note.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/device_kinds.hpp"
#include "profile/nsys.hpp"
#include "profile/program.hpp"

namespace assay::host::run {

std::optional<std::string> nsys_note(const RunPlan& plan, bool in_process, const std::filesystem::path& run_folder,
                                     const std::filesystem::path& plugin_file) {
  std::size_t wanting = 0;
  bool on_gpu = false;
  std::vector<std::string> trace;  // a list of the experiment, the same for all cases
  for (const CasePlan& planned : plan.cases) {
    if (!planned.values.profile.nsys) continue;
    ++wanting;
    trace = planned.values.profile.nsys_trace;
    on_gpu = on_gpu || has_nvidia_tools(planned.device.device.kind);
  }
  if (wanting == 0) return std::nullopt;
  if (!on_gpu) return "note: [profile] nsys records GPU cases; there is none in this run";
  const bool is_wrapped = plan.settings.isolate && !in_process;
  if (in_process || (is_wrapped && profile::find_program("nsys"))) return std::nullopt;
  // The resolved experiment says all that the command line said, so that this line is all there is to copy.
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(run_folder).lexically_normal();
  std::vector<std::string> words = profile::nsys_arguments(folder / "nsys", trace, wanting);
  words.insert(words.begin(), "nsys");
  for (const std::string& word : {std::filesystem::read_symlink("/proc/self/exe", error).string(), std::string("run"),
                                  (folder / "experiment.toml").string(), std::string("--in-process"),
                                  std::string("--plugin-path"), plugin_file.parent_path().string()})
    words.push_back(word);
  return fmt::format("note: nsys {}; the cases run without it. To record them, run: {}",
                     is_wrapped ? "is not on the PATH" : "needs isolate = true", profile::shell_command(words));
}

}  // namespace assay::host::run
