#include "experiment/parse.hpp"

#include "experiment/output_path.hpp"
#include "experiment/overrides.hpp"
#include "experiment/own_params.hpp"
#include "experiment/relative_to.hpp"
#include "experiment/resolved.hpp"
#include "experiment/sections.hpp"
#include "experiment/sweep.hpp"
#include "experiment/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <tuple>

namespace assay::host::experiment {
namespace {

const TableMember* member_at(const Node& root, std::string_view table, std::string_view key) {
  const TableMember* member = root.find(table);
  return member ? member->node.find(key) : nullptr;
}

// Where the sweep has `key` or, for "measure.until.", any key that begins so.
std::optional<Place> swept_place(const Node& root, std::string_view key) {
  const TableMember* sweep = root.find("sweep");
  if (!sweep) return std::nullopt;
  const auto search = [&](const Node& table) -> std::optional<Place> {
    for (const auto& member : table.members)
      if (member.key == key || (key.ends_with('.') && member.key.starts_with(key))) return member.place;
    return std::nullopt;
  };
  if (auto place = search(sweep->node)) return place;
  if (const TableMember* zip = sweep->node.find("zip"))
    for (const auto& group : zip->node.elements)
      if (auto place = search(group)) return place;
  return std::nullopt;
}

// Where [measure] has `key`, else `other`.
std::optional<Place> written_or(const Node& root, std::string_view key, const std::optional<Place>& other) {
  const TableMember* member = member_at(root, "measure", key);
  return member ? member->place : other;
}

bool is_later(const Place& a, const Place& b) {
  return std::tuple(a.line <= 0, a.line, a.column) > std::tuple(b.line <= 0, b.line, b.column);
}

// A fixed count of steps and a rule that chooses the count contradict each other.
void check_steps_and_until(const Node& root, Draft& draft, Mistakes& mistakes) {
  const auto swept_steps = swept_place(root, "measure.steps");
  const auto swept_until = swept_place(root, "measure.until.");
  if (swept_until && !draft.base.measure.until) draft.base.measure.until.emplace();
  const auto steps = written_or(root, "steps", swept_steps);
  const auto until = written_or(root, "until", swept_until);
  if (!steps || !until) return;
  mistakes.add(is_later(*steps, *until) ? *steps : *until,
               "[measure] has both 'steps' and 'until'; expected one of them: 'steps' for a fixed count, 'until' for a "
               "stopping rule");
}

void check_rule(const Node& root, const std::vector<Case>& cases, Mistakes& mistakes) {
  for (const auto& c : cases) {
    const auto& rule = c.measure.until;
    if (!rule || rule->min_steps <= rule->max_steps) continue;
    mistakes.add(written_or(root, "until", swept_place(root, "measure.until.")).value_or(Place{}),
                 fmt::format("[measure] until has min_steps {} above max_steps {}; expected min_steps <= max_steps",
                             rule->min_steps, rule->max_steps));
    return;
  }
}

// A flush between steps that follow each other would be part of what is timed.
void check_cold_cache(const Node& root, const std::vector<Case>& cases, Mistakes& mistakes) {
  if (std::none_of(cases.begin(), cases.end(),
                   [](const Case& c) { return c.measure.cold_cache && c.measure.inner != 1; }))
    return;
  const auto place = written_or(root, "inner", swept_place(root, "measure.inner"));
  mistakes.add(
      place.value_or(written_or(root, "cold_cache", swept_place(root, "measure.cold_cache")).value_or(Place{})),
      "[measure] has cold_cache = true and several steps a sample; only the first would find cold "
      "caches; expected inner = 1, or cold_cache = false");
}

void check_cold_start(const Node& root, const plugin::WorkloadSchema& schema, const std::vector<Case>& cases,
                      Mistakes& mistakes) {
  const bool all_prepare = std::all_of(cases.begin(), cases.end(), [](const Case& c) { return c.measure.prepare; });
  if (schema.starts_cold || all_prepare) return;
  const TableMember* written = member_at(root, "measure", "prepare");
  const auto place = written ? written->place : swept_place(root, "measure.prepare").value_or(Place{});
  mistakes.add(place, fmt::format("[measure] prepare is false, but workload {} always prepares its steps in set-up; "
                                  "expected true, or a workload that starts cold",
                                  schema.id));
}

void check_outputs(const Node& root, const plugin::WorkloadSchema& schema, const std::vector<Case>& cases,
                   Mistakes& mistakes) {
  for (const auto& c : cases) {
    const auto conflict = outputs_in_conflict(c, schema);
    if (!conflict) continue;
    const auto& [param, other] = *conflict;
    const TableMember* workload = root.find("workload");
    const TableMember* params = workload ? workload->node.find("params") : nullptr;
    const TableMember* written = params ? params->node.find(param) : nullptr;
    const auto place = written ? written->node.place : swept_place(root, param).value_or(Place{});
    mistakes.add(place, fmt::format("'{}' is {}, and '{}' is {}: one is in the other's way; expected a file for each",
                                    param, shown(c.params.at(param)), other, shown(c.params.at(other))));
    return;
  }
}

// Gives `items_per_step = "{batch}"` the value that the case has for `batch`.
void fill_from_others(const Node& root, const Vocabulary& vocabulary, std::vector<Case>& cases, Mistakes& mistakes) {
  const TableMember* params = member_at(root, "workload", "params");
  for (Case& c : cases)
    for (const auto& [param, from] : c.params_from) {
      const plugin::ParamSpec& spec = *vocabulary.param(param);
      const auto found = c.params.find(from);
      Node value;
      value.kind = Node::Kind::scalar;
      value.place = params->node.find(param)->node.place;
      value.value = found == c.params.end() ? Value("{" + from + "}") : found->second;
      const std::string label = found == c.params.end() || found->first == param
                                    ? fmt::format("[workload.params] {}, but {{{}}} is no parameter,", param, from)
                                    : fmt::format("[workload.params] {}, the value of {},", param, from);
      const auto checked = vocabulary.check(spec.name, value, label, mistakes);
      if (!checked) return;
      c.params[param] = *checked;
    }
}

void check_repeats(const Node& root, std::size_t cases, std::int64_t repeat, Mistakes& mistakes) {
  if (cases * static_cast<std::uint64_t>(repeat) <= most_cases) return;
  const TableMember* written = member_at(root, "run", "repeat");
  mistakes.add(written ? written->place : Place{},
               fmt::format("[run] repeat is {} of {} cases; expected at most {} in all", repeat, cases, most_cases));
}

}  // namespace

ExperimentFile ExperimentFile::read(const std::filesystem::path& file, const std::vector<std::string>& set) {
  ExperimentFile result(file);
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream && stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  if (stream.is_open() && !stream.bad() && !text.bad()) {
    result.load(text.str(), set);
    return result;
  }
  result.mistakes_.add({file.string(), 0, 0}, fmt::format("cannot be read: {}; expected an experiment file (TOML)",
                                                          std::generic_category().message(errno ? errno : EIO)));
  return result;
}

ExperimentFile ExperimentFile::from_text(std::string_view text, const std::filesystem::path& file,
                                         const std::vector<std::string>& set) {
  ExperimentFile result(file);
  result.load(text, set);
  return result;
}

void ExperimentFile::load(std::string_view text, const std::vector<std::string>& set) {
  plugin_place_ = {file_.string(), 1, 1};
  argument_count_ = static_cast<int>(set.size());
  root_ = parse_document(text, file_.string(), mistakes_);
  if (!root_) return;
  set_keys_ = apply_overrides(*root_, set, mistakes_);
  const TableMember* plugin = member_at(*root_, "workload", "plugin");
  const auto* name = plugin ? std::get_if<std::string>(&plugin->node.value) : nullptr;
  if (!name || plugin->node.kind != Node::Kind::scalar || name->empty()) return;
  plugin_ = *name;
  plugin_place_ = plugin->node.place;
}

std::optional<Place> ExperimentFile::place_of_param(const std::string& name) const {
  if (!root_) return std::nullopt;
  if (auto swept = swept_place(*root_, name)) return swept;
  const TableMember* params = member_at(*root_, "workload", "params");
  const TableMember* member = params ? params->node.find(name) : nullptr;
  return member ? std::optional(member->place) : std::nullopt;
}

std::vector<plugin::ParamSpec> ExperimentFile::own_params_of(const plugin::WorkloadSchema& schema) const {
  return root_ ? own_params(*root_, schema) : std::vector<plugin::ParamSpec>{};
}

Mistake ExperimentFile::plugin_mistake(std::string text) const {
  return {plugin_place_.source, plugin_place_.line, plugin_place_.column, std::move(text)};
}

ParseResult ExperimentFile::finish(const plugin::WorkloadSchema* schema, const std::vector<std::string>& filters,
                                   const std::vector<Mistake>& more) const {
  Mistakes mistakes = mistakes_;
  for (const auto& mistake : more) mistakes.add({mistake.file, mistake.line, mistake.column}, mistake.text);
  if (!root_) return {std::nullopt, mistakes.sorted()};

  const Vocabulary vocabulary(schema, std::filesystem::absolute(file_).parent_path());
  Draft draft;
  draft.experiment.file = file_;
  read_sections(*root_, vocabulary, draft, mistakes);
  const TableMember* sweep = root_->find("sweep");
  const TableMember* params = member_at(*root_, "workload", "params");
  const SweepPlan plan =
      read_sweep(sweep ? &sweep->node : nullptr, params ? params->node.members : std::vector<TableMember>{}, set_keys_,
                 vocabulary, mistakes);
  check_steps_and_until(*root_, draft, mistakes);
  if (const TableMember* baseline = member_at(*root_, "output", "relative_to"); baseline && schema)
    read_relative_to(baseline->node, sweep ? &sweep->node : nullptr, plan, set_keys_, vocabulary,
                     draft.experiment.output, mistakes);
  if (!schema || !mistakes.empty()) return {std::nullopt, mistakes.sorted()};

  ModelFiles files;
  auto cases = expand(plan, draft.base, vocabulary, files);
  for (const std::string& problem : files.problems())
    mistakes.add(place_of_param(model_file_param).value_or(plugin_place_), problem);
  fill_from_others(*root_, vocabulary, cases, mistakes);
  if (cases.empty())
    mistakes.add(plan.exclude_place, "[[sweep.exclude]] drops every case; expected at least one case that is left");
  check_rule(*root_, cases, mistakes);
  check_cold_start(*root_, *schema, cases, mistakes);
  check_cold_cache(*root_, cases, mistakes);
  check_outputs(*root_, *schema, cases, mistakes);
  for (Case& c : cases) c.is_one_of_several = cases.size() > 1;
  if (mistakes.empty()) filter_cases(cases, filters, argument_count_ + 1, vocabulary, mistakes);
  check_repeats(*root_, cases.size(), draft.experiment.output.repeat, mistakes);
  if (!mistakes.empty()) return {std::nullopt, mistakes.sorted()};

  Experiment experiment = std::move(draft.experiment);
  experiment.resolved_toml = resolved_toml(experiment, draft.base, plan, *schema);
  experiment.cases = repeated(cases, experiment.output.repeat, experiment.output.repeat_order);
  return {std::move(experiment), {}};
}

}  // namespace assay::host::experiment
