#include "experiment/sections.hpp"

#include "common/suggest.hpp"
#include "experiment/columns.hpp"
#include "experiment/overrides.hpp"
#include "experiment/settings.hpp"
#include "experiment/synonyms.hpp"
#include "record/columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace assay::host::experiment {
namespace {

using Names = std::vector<std::string>;

Names root_keys() {
  Names keys = own_keys();
  const Names sections = top_sections();
  keys.insert(keys.end(), sections.begin(), sections.end());
  return keys;
}

class SectionReader {
 public:
  SectionReader(const Node& root, const Vocabulary& vocabulary, Draft& draft, Mistakes& mistakes)
      : root_(root), vocabulary_(vocabulary), draft_(draft), mistakes_(mistakes) {}

  void read() {
    read_head();
    read_workload();
    for (const auto& section : setting_sections())
      if (const TableMember* member = is_in_another(section) ? nullptr : root_.find(section))
        read_section(member->node, section);
  }

 private:
  // The list of all names, dozens of them, only where none of them is near.
  void unknown(const TableMember& member, const std::string& where, const Names& known, const Names& hints) {
    const char* what = member.node.is_table() && where.empty() ? "table" : "key";
    const std::string meant = did_you_mean_key(member.key, hints);
    mistakes_.add(member.place,
                  fmt::format("unknown {} '{}'{}{}{}{}", what, member.key, where.empty() ? "" : " in [" + where + "]",
                              meant.empty() ? fmt::format("; known: {}", fmt::join(known, ", ")) : "", meant,
                              where == "workload.params" ? vocabulary_.own_param_rule(meant) : std::string()));
  }

  void missing(const std::string& what, const std::string& expected, const TableMember* near) {
    const Place start{draft_.experiment.file.string(), 1, 1};
    mistakes_.add(near ? near->place : start, fmt::format("missing {}; expected {}", what, expected));
  }

  // Calls `read` for each member of a section that is in `known`, and reports the others.
  template <class Read>
  void each_key(const Node& table, const std::string& section, const Names& known, Read read) {
    if (!table.is_table()) {
      mistakes_.add(table.place, fmt::format("{} is {}; expected a table [{}]", section, table.shown(), section));
      return;
    }
    for (const auto& member : table.members) {
      if (std::find(known.begin(), known.end(), member.key) != known.end()) {
        read(member);
        continue;
      }
      const bool near = meant_key(member.key, known).has_value();
      unknown(member, section, known, near ? known : setting_names());
    }
  }

  void read_section(const Node& table, const std::string& section) {
    // An empty [measure.until] is a rule, too.
    if (section == "measure.until" && !draft_.base.measure.until) draft_.base.measure.until.emplace();
    each_key(table, section, keys_of_section(section), [&](const TableMember& member) {
      if (const Setting* setting = find_in_section(section, member.key))
        read_setting(member, *setting);
      else
        read_section(member.node, section + "." + member.key);
    });
  }

  void read_setting(const TableMember& member, const Setting& setting) {
    const auto label = fmt::format("[{}] {}", setting.section, setting.key);
    if (setting.is_table) {  // its keys are axes: read_relative_to() reads them when the sweep is known
      if (!member.node.is_table() || member.node.members.empty())
        mistakes_.add(member.node.place,
                      fmt::format("{} is {}; expected {}", label,
                                  member.node.is_table() ? "empty" : member.node.shown(), setting.expected));
      return;
    }
    const auto values =
        setting.is_list ? read_list(member.node, label, setting) : read_value(member.node, label, setting);
    if (!values) return;
    setting.store(*values, draft_.base, draft_.experiment.output);
    if (setting.name == "output.columns") check_columns(member.node, label);
  }

  std::optional<Values> read_value(const Node& node, const std::string& label, const Setting& setting) {
    const auto value = check_setting(setting, node, label, mistakes_);
    return value ? std::optional(Values{*value}) : std::nullopt;
  }

  // The sound elements of an array; nothing when it is no array.
  std::optional<Values> read_list(const Node& node, const std::string& label, const Setting& setting) {
    if (!node.is_array()) {
      mistakes_.add(node.place, fmt::format("{} is {}; expected {}", label, node.shown(), setting.expected));
      return std::nullopt;
    }
    Values values;
    for (const auto& element : node.elements) {
      const bool is_text = element.kind == Node::Kind::scalar && std::holds_alternative<std::string>(element.value);
      const auto value = is_text ? setting.accept(element.value) : std::nullopt;
      if (value)
        values.push_back(*value);
      else if (is_text && !setting.choices.empty())
        mistakes_.add(element.place, fmt::format("{} has {}; expected one of {}{}", label, element.shown(),
                                                 fmt::join(setting.choices, ", "),
                                                 did_you_mean(std::get<std::string>(element.value), setting.choices)));
      else
        mistakes_.add(element.place, fmt::format("{} has {}; expected {}", label, element.shown(), setting.expected));
    }
    return values;
  }

  // Which columns there are depends on the workload.
  void check_columns(const Node& columns, const std::string& label) {
    if (!vocabulary_.schema()) return;
    const Names names = column_names(*vocabulary_.schema());
    for (const auto& element : columns.elements) {
      const auto* column = std::get_if<std::string>(&element.value);
      if (element.kind != Node::Kind::scalar || !column || record::is_column(*column, names)) continue;
      if (vocabulary_.schema()->is_open) {  // its program may report a phase or a metric of any name
        draft_.experiment.output.reported_columns.push_back(*column);
        continue;
      }
      if (const auto of_ratio = record::column_of_ratio(*column); of_ratio || *column == record::speedup_column) {
        check_relative_column(element, *column, std::string(of_ratio.value_or("step.mean_ms")), names, label);
        continue;
      }
      if (const std::string statistics = statistics_of_step_metric(*column); !statistics.empty()) {
        mistakes_.add(element.place, fmt::format("{} has \"{}\", which is {}", label, *column, statistics));
        continue;
      }
      mistakes_.add(
          element.place,
          fmt::format("{} has \"{}\", which no record of workload {} has; expected a parameter, a setting, a metric, "
                      "PHASE.STATISTIC with phase {}, a rate, or memory.*.mib{}",
                      label, *column, vocabulary_.schema()->id, phases_text(), did_you_mean_key(*column, names)));
    }
  }

  // What is to be written in place of the bare name of a metric of the steps; "" where it is not one.
  std::string statistics_of_step_metric(const std::string& name) const {
    const auto& metrics = vocabulary_.schema()->metrics;
    if (std::none_of(metrics.begin(), metrics.end(), [&](const auto& m) { return m.per_step && m.name == name; }))
      return "";
    std::string columns;
    for (const record::StepMetricStatistic& statistic : record::step_metric_statistics())
      columns += fmt::format("{}{}.{}", columns.empty() ? "" : ", ", name, statistic.name);
    return fmt::format("a metric of the steps; expected one of its statistics, as \"{}.mean\": {}", name, columns);
  }

  // A column of ratios to the baseline: `of` is the column whose ratio it is.
  void check_relative_column(const Node& element, const std::string& column, const std::string& of, const Names& names,
                             const std::string& label) {
    const TableMember* output = root_.find("output");
    const plugin::ParamSpec* param = vocabulary_.param(of);
    if (!output || !output->node.find("relative_to"))
      mistakes_.add(element.place, fmt::format("{} has \"{}\", but no baseline is given; expected relative_to = "
                                               "{{ AXIS = VALUE }} in [output], or another column",
                                               label, column));
    else if (const std::string statistics = statistics_of_step_metric(of); !statistics.empty())
      mistakes_.add(element.place, fmt::format("{} has \"{}\", but \"{}\" is {}", label, column, of, statistics));
    else if (!record::is_column(of, names))
      mistakes_.add(
          element.place,
          fmt::format("{} has \"{}\", but no record of workload {} has \"{}\"; expected a column with a number "
                      "before .ratio{}",
                      label, column, vocabulary_.schema()->id, of, did_you_mean(of, names)));
    else if (record::is_text_column(of) || is_setting_without_number(of) ||
             (param && (param->type == plugin::ParamType::text || param->type == plugin::ParamType::boolean)))
      mistakes_.add(element.place, fmt::format("{} has \"{}\", but {} is no number; expected a column with a number "
                                               "before .ratio",
                                               label, column, of));
  }

  // Most settings are flags or words.
  static bool is_setting_without_number(const std::string& column) {
    const Setting* setting = find_setting(column);
    return setting && (!setting->choices.empty() || !setting->accept || !setting->accept(Value(std::int64_t{5})));
  }

  std::string phases_text() const {
    const auto& phases = vocabulary_.schema()->phases;
    return phases.empty() ? "step" : fmt::format("step, {}", fmt::join(phases, ", "));
  }

  std::optional<std::string> read_text(const TableMember& member, const std::string& label,
                                       const std::string& expected) {
    const auto* text = std::get_if<std::string>(&member.node.value);
    if (member.node.kind == Node::Kind::scalar && text) return *text;
    mistakes_.add(member.node.place, fmt::format("{} is {}; expected {}", label, member.node.shown(), expected));
    return std::nullopt;
  }

  void read_head() {
    const Names known = root_keys();
    for (const auto& member : root_.members)
      if (std::find(known.begin(), known.end(), member.key) == known.end())
        unknown(member, "", known, meant_key(member.key, known) ? known : setting_names());
    if (const TableMember* schema = root_.find("schema")) {
      if (schema->node.kind != Node::Kind::scalar || schema->node.value != Value(std::int64_t{1}))
        mistakes_.add(schema->node.place, fmt::format("schema is {}; expected 1, the layout that this version reads",
                                                      schema->node.shown()));
    } else {
      missing("'schema'", "schema = 1", nullptr);
    }
    const std::string expected =
        "the folder's name under the results: not empty, at most 200 bytes, no '/', no leading '.', no blank at an "
        "end, no control characters";
    if (const TableMember* name = root_.find("name")) {
      if (const auto text = read_text(*name, "name", "a string: " + expected)) {
        const bool control = std::any_of(text->begin(), text->end(), [](unsigned char c) { return std::iscntrl(c); });
        constexpr std::size_t longest = 200;  // a file system takes 255 bytes, and a run's files have names with it
        const bool is_too_long = text->size() > longest;
        const bool ends_blank = !text->empty() && (text->front() == ' ' || text->back() == ' ');
        if (text->empty() || text->front() == '.' || text->find('/') != std::string::npos || control || is_too_long ||
            ends_blank)
          mistakes_.add(name->node.place, fmt::format("name is {}; expected {}", name->node.shown(), expected));
        draft_.experiment.name = *text;
      }
    } else {
      missing("'name'", "name = \"...\", " + expected, nullptr);
    }
    if (const TableMember* description = root_.find("description"))
      draft_.experiment.description = read_text(*description, "description", "a string").value_or("");
  }

  void read_workload() {
    const TableMember* workload = root_.find("workload");
    const auto read_member = [this](const TableMember& member) {
      if (member.key == "params") return read_params(member);
      const std::string expected = "a string: a name on the plugin path, or a path to a .so with a '/' in it";
      const auto plugin = read_text(member, "[workload] plugin", expected);
      if (plugin && plugin->empty())
        mistakes_.add(member.node.place, fmt::format("[workload] plugin is \"\"; expected {}", expected));
      draft_.experiment.plugin = plugin.value_or("");
    };
    if (workload) each_key(workload->node, "workload", {"plugin", "params"}, read_member);
    if (!workload || (workload->node.is_table() && !workload->node.find("plugin")))
      missing("'plugin' in [workload]", "plugin = \"...\", a name on the plugin path or a path to a .so", workload);
    fill_defaults(workload);
  }

  void read_params(const TableMember& params) {
    if (!params.node.is_table()) {
      mistakes_.add(params.node.place,
                    fmt::format("[workload] params is {}; expected a table [workload.params]", params.node.shown()));
      return;
    }
    if (!vocabulary_.schema()) return;
    for (const auto& member : params.node.members) {
      if (!vocabulary_.param(member.key)) {
        const auto known = vocabulary_.param_names();
        unknown(member, "workload.params", known, vocabulary_.names());
        continue;
      }
      const std::string label = "[workload.params] " + member.key;
      if (const auto from = parameter_meant(member)) {
        draft_.base.params_from[member.key] = *from;
        vocabulary_.set(draft_.base, member.key, vocabulary_.param(member.key)->default_value);
        continue;
      }
      if (const auto value = vocabulary_.check(member.key, member.node, label, mistakes_))
        vocabulary_.set(draft_.base, member.key, *value);
    }
  }

  // "{batch}" for an integer, of a workload whose program has parameters by that name.
  std::optional<std::string> parameter_meant(const TableMember& member) const {
    const auto* text = std::get_if<std::string>(&member.node.value);
    if (!vocabulary_.schema()->is_open || vocabulary_.param(member.key)->type != plugin::ParamType::integer ||
        member.node.kind != Node::Kind::scalar || !text || text->size() < 3 || text->front() != '{' ||
        text->back() != '}')
      return std::nullopt;
    return text->substr(1, text->size() - 2);
  }

  void fill_defaults(const TableMember* workload) {
    if (!vocabulary_.schema()) return;
    const TableMember* params = workload ? workload->node.find("params") : nullptr;
    const TableMember* near = params ? params : workload;
    for (const auto& spec : vocabulary_.schema()->params) {
      if ((params && params->node.find(spec.name)) || is_swept(spec.name)) continue;
      if (spec.required) {
        missing(fmt::format("'{}' in [workload.params]", spec.name), expectation(spec), near);
        continue;
      }
      Node written;  // a file named by a default is held to the same as any other
      written.kind = Node::Kind::scalar;
      written.place = near ? near->place : Place{draft_.experiment.file.string(), 1, 1};
      written.value = spec.default_value;
      const bool names_file = (spec.input_path || spec.output_path) && spec.default_value != Value(std::string());
      const auto value = names_file ? vocabulary_.check(spec.name, written, "the default of " + spec.name, mistakes_)
                                    : spec.default_value;
      if (value) draft_.base.params[spec.name] = *value;
    }
  }

  bool is_swept(const std::string& name) const {
    const TableMember* sweep = root_.find("sweep");
    if (!sweep) return false;
    const auto named = [&](const TableMember& member) { return plain_key(member.key) == name; };
    const auto has = [&](const Node& table) { return std::any_of(table.members.begin(), table.members.end(), named); };
    const TableMember* zip = sweep->node.find("zip");
    return has(sweep->node) || (zip && std::any_of(zip->node.elements.begin(), zip->node.elements.end(), has));
  }

  const Node& root_;
  const Vocabulary& vocabulary_;
  Draft& draft_;
  Mistakes& mistakes_;
};

}  // namespace

void read_sections(const Node& root, const Vocabulary& vocabulary, Draft& draft, Mistakes& mistakes) {
  SectionReader(root, vocabulary, draft, mistakes).read();
}

}  // namespace assay::host::experiment
