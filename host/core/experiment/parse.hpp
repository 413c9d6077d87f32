// An experiment file, read in two stages, because what it may say depends on the plugin that it names.
//
//   const auto file = ExperimentFile::read("x.toml", {"measure.steps=3"});
//   const WorkloadSchema* schema = ...find file.plugin()...;
//   ParseResult result = file.finish(schema, filters, {file.plugin_mistake("no plugin 'x'; ...")});
//
// Nothing is printed and nothing is started here.
#pragma once
#include "experiment/document.hpp"
#include "experiment/experiment.hpp"
#include "plugin/schema.hpp"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::experiment {

struct ParseResult {
  std::optional<Experiment> experiment;  // absent exactly when there are mistakes or there was no schema
  std::vector<Mistake> mistakes;         // all of them: the file's by position, then those of --set and --filter
};

class ExperimentFile {
 public:
  // Stage 1. Reads the file and applies `set` ("key=value"). Mistakes, an unreadable file among them, wait for
  // finish().
  static ExperimentFile read(const std::filesystem::path& file, const std::vector<std::string>& set = {});
  // The same for a text that is as if in `file`.
  static ExperimentFile from_text(std::string_view text, const std::filesystem::path& file,
                                  const std::vector<std::string>& set = {});

  // `[workload] plugin` as written, when there is one, whatever else is wrong.
  const std::optional<std::string>& plugin() const { return plugin_; }
  // The caller's mistake about the plugin, placed where the plugin is named.
  Mistake plugin_mistake(std::string text) const;

  // Where a parameter of the workload is given its value: in [workload.params], on an axis, or by --set; nothing where
  // it has its default. Of a mistake that only the plugin can find.
  std::optional<Place> place_of_param(const std::string& name) const;
  const Place& plugin_place() const { return plugin_place_; }

  // Parameters that the experiment gives to a workload whose tables are open: rows to be added to its table before
  // finish().
  std::vector<plugin::ParamSpec> own_params_of(const plugin::WorkloadSchema& schema) const;

  // Stage 2. `schema` is null when the plugin was not found: what needs no schema is still checked, and the caller says
  // so in `more`, which joins the mistakes. `filters` ("key=value") keep the cases that match all of them.
  ParseResult finish(const plugin::WorkloadSchema* schema, const std::vector<std::string>& filters = {},
                     const std::vector<Mistake>& more = {}) const;

 private:
  explicit ExperimentFile(std::filesystem::path file) : file_(std::move(file)) {}
  void load(std::string_view text, const std::vector<std::string>& set);

  std::filesystem::path file_;
  std::optional<Node> root_;  // absent: unreadable or not TOML
  Mistakes mistakes_;
  std::set<std::string> set_keys_;
  int argument_count_ = 0;
  std::optional<std::string> plugin_;
  Place plugin_place_;
};

}  // namespace assay::host::experiment
