// One of the two variants: what differs in it from the other, and the command that runs it once more.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::ab {

// This executable, also where its file has been replaced meanwhile.
inline constexpr const char* this_program = "/proc/self/exe";

struct SideSpec {
  std::string label;                                             // "A", "B"
  std::filesystem::path experiment;                              // the same for both, or a different one
  std::string executable;                                        // that runs it
  std::vector<std::string> settings;                             // key=value, of this side alone
  std::vector<std::string> plugin_folders;                       // of this side alone, searched before the common ones
  std::vector<std::pair<std::string, std::string>> environment;  // set for its processes
  std::filesystem::path folder;                                  // its results

  // True where the two sides differ in label and folder only.
  bool equals(const SideSpec& other) const {
    return experiment == other.experiment && executable == other.executable && settings == other.settings &&
           plugin_folders == other.plugin_folders && environment == other.environment;
  }
};

// What both sides have.
struct CommonPart {
  std::vector<std::string> settings, filters, plugin_folders;
};

// The command that checks the side and starts nothing.
std::vector<std::string> check_command(const SideSpec& side, const CommonPart& common);
// The command that adds the repeat of this number, from 1, to the side's run.
std::vector<std::string> turn_command(const SideSpec& side, const CommonPart& common, std::int64_t repeat);
// "work=10.3, OMP_NUM_THREADS=1"; "as the experiment has it" of a side without anything. With `names_experiment` its
// file comes first.
std::string description_of(const SideSpec& side, bool names_experiment = false);

}  // namespace assay::host::ab
