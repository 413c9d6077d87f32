#include "run/load_experiment.hpp"

#include "common/files.hpp"
#include "plugin/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <system_error>

namespace assay::host::run {

namespace fs = std::filesystem;

namespace {

bool is_workload(const fs::path& name) {
  std::error_code error;
  const std::string text = name.string();
  return text.find('/') == std::string::npos && !text.ends_with(".toml") && !fs::exists(name, error) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == ':'; });
}

// The experiment of a workload as it is without a file.
std::string text_of_workload(const std::string& plugin) {
  std::string name = plugin;
  std::replace(name.begin(), name.end(), ':', '-');
  return fmt::format("schema = 1\nname = \"{}\"\n[workload]\nplugin = \"{}\"\n", name, plugin);
}

experiment::ExperimentFile parsed_of(const ExperimentSource& source, bool names_workload) {
  using experiment::ExperimentFile;
  if (source.text) return ExperimentFile::from_text(*source.text, source.file, source.set);
  if (source.text_of) return ExperimentFile::from_text(read_file(*source.text_of), source.file, source.set);
  if (names_workload) return ExperimentFile::from_text(text_of_workload(source.file.string()), source.file, source.set);
  return ExperimentFile::read(source.file, source.set);
}

}  // namespace

LoadResult load_experiment(const ExperimentSource& source) {
  const bool names_workload = !source.text && !source.text_of && is_workload(source.file);
  const auto parsed = parsed_of(source, names_workload);
  std::vector<experiment::Mistake> more;
  std::optional<RunTarget> target;
  if (parsed.plugin()) {
    try {
      const fs::path base = source.file.has_parent_path() ? source.file.parent_path() : fs::path(".");
      target =
          open_target(plugin::find_workload(*parsed.plugin(), plugin::plugin_folders(source.plugin_folders), base));
    } catch (const plugin::PluginError& e) {
      if (names_workload)
        more.push_back({source.file.string(), 0, 0, fmt::format("no experiment file, and {}", e.what())});
      else
        more.push_back(parsed.plugin_mistake(e.what()));
    }
  }
  if (target)
    for (plugin::ParamSpec& own : parsed.own_params_of(target->schema)) target->schema.params.push_back(std::move(own));
  experiment::ParseResult result = parsed.finish(target ? &target->schema : nullptr, source.filters, more);
  if (!result.mistakes.empty()) return {std::nullopt, std::move(result.mistakes)};
  LoadedExperiment loaded{source.file, std::move(*result.experiment), std::move(*target)};
  loaded.places[""] = parsed.plugin_place();
  for (const plugin::ParamSpec& p : loaded.target.schema.params)
    if (auto place = parsed.place_of_param(p.name)) loaded.places[p.name] = std::move(*place);
  return {std::move(loaded), {}};
}

LoadResult load_submitted(const fs::path& experiment_toml, const fs::path& experiment_file,
                          const fs::path& plugin_file) {
  ExperimentSource source;
  source.file = experiment_file;
  source.text_of = experiment_toml;
  source.plugin_folders = {plugin_file.parent_path().string()};
  return load_experiment(source);
}

}  // namespace assay::host::run
