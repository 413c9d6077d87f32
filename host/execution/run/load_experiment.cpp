#include "run/load_experiment.hpp"

#include "common/files.hpp"
#include "plugin/search.hpp"

namespace assay::host::run {

namespace fs = std::filesystem;

LoadResult load_experiment(const ExperimentSource& source) {
  const auto parsed = source.text_of
                          ? experiment::ExperimentFile::from_text(read_file(*source.text_of), source.file, source.set)
                          : experiment::ExperimentFile::read(source.file, source.set);
  std::vector<experiment::Mistake> more;
  std::optional<RunTarget> target;
  if (parsed.plugin()) {
    try {
      const fs::path base = source.file.has_parent_path() ? source.file.parent_path() : fs::path(".");
      target =
          open_target(plugin::find_workload(*parsed.plugin(), plugin::plugin_folders(source.plugin_folders), base));
    } catch (const plugin::PluginError& e) {
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
