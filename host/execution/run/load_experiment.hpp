// An experiment file and the plugin that it names, as every command that needs both reads them.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiment/parse.hpp"
#include "run/target.hpp"

namespace assay::host::run {

struct ExperimentSource {
  // What relative paths in it refer to. A name without '/' and ".toml" that no file has is that of a workload, whose
  // parameters have their defaults.
  std::filesystem::path file;
  std::optional<std::filesystem::path> text_of;  // read in its place: a run's resolved experiment.toml
  std::vector<std::string> set, filters;
  std::vector<std::string> plugin_folders;  // searched first
  std::optional<std::string> text = {};     // read in the place of a file
};

struct LoadedExperiment {
  std::filesystem::path file;
  experiment::Experiment experiment;
  RunTarget target;
  // Where the file or the command line gives a parameter its value, and under "" where the plugin is named.
  std::map<std::string, experiment::Place> places = {};
};

struct LoadResult {
  std::optional<LoadedExperiment> loaded;  // absent exactly when there are mistakes
  std::vector<experiment::Mistake> mistakes;
};
LoadResult load_experiment(const ExperimentSource& source);

// The experiment.toml of a run that was submitted as a batch, read as if it stood where `experiment_file` does, and the
// plugin that it was submitted with.
LoadResult load_submitted(const std::filesystem::path& experiment_toml, const std::filesystem::path& experiment_file,
                          const std::filesystem::path& plugin_file);

}  // namespace assay::host::run
