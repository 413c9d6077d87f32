#include "validate/table_checks.hpp"

#include <fmt/format.h>
#include <assay/plugin/reserved_names.hpp>

#include <algorithm>
#include <set>

#include "common/text_format.hpp"

namespace assay::host::validate {
namespace {

class TableChecks {
 public:
  TableChecks(const plugin::PluginTables& tables, Answers& answers) : tables_(tables), answers_(answers) {}

  void check() {
    for (const Check check : {Check::tables_names, Check::tables_text, Check::tables_values, Check::tables_choices,
                              Check::tables_presets, Check::tables_units, Check::tables_help})
      answers_.pass(check);
    for (const auto& [what, text] : {std::pair("the plugin's id", &tables_.id),
                                     {"the plugin's version", &tables_.version},
                                     {"the plugin's build", &tables_.build}})
      text_of(what, *text);
    for (const plugin::WorkloadSchema& schema : tables_.workloads) {
      workload_ = schema.id;
      workload(schema);
    }
  }

 private:
  template <class... Args>
  void find(Check check, fmt::format_string<Args...> text, Args&&... args) {
    answers_.find(check, fmt::format("{}: {}", workload_, fmt::format(text, std::forward<Args>(args)...)));
  }

  void workload(const plugin::WorkloadSchema& schema) {
    if (std::any_of(schema.id.begin(), schema.id.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      find(Check::tables_names, "the workload's id has capitals");
    text_of("the summary", schema.summary);
    text_of("the unit of items", schema.item_unit);
    if (schema.summary.empty()) find(Check::tables_help, "the workload has no summary");
    unit_of("items", schema.item_unit);
    for (const plugin::ParamSpec& p : schema.params) param(p);
    for (const plugin::MetricSpec& m : schema.metrics) {
      const std::string of = fmt::format("the metric '{}'", m.name);
      name_of("metric", m.name);
      text_of(of, m.help), text_of(of, m.unit);
      if (m.help.empty()) find(Check::tables_help, "{} has no help", of);
      unit_of(of, m.unit);
      if (m.direction != Direction::lower_is_better && m.direction != Direction::neither &&
          m.direction != Direction::higher_is_better)
        find(Check::tables_values, "{} has direction {}", of, static_cast<int>(m.direction));
      if (std::set(m.words.begin(), m.words.end()).size() < m.words.size())
        find(Check::tables_choices, "{} has a word twice", of);
    }
    for (const std::string& phase : schema.phases)
      if (assay::is_reserved_phase(phase)) find(Check::tables_names, "the phase '{}' has a name of the host's", phase);
  }

  void param(const plugin::ParamSpec& p) {
    const std::string of = fmt::format("the parameter '{}'", p.name);
    name_of("parameter", p.name);
    text_of(of, p.help), text_of(of, p.unit);
    if (p.help.empty()) find(Check::tables_help, "{} has no help", of);
    unit_of(of, p.unit);
    for (const std::string& choice : p.choices) text_of(of, choice);
    if (p.type == plugin::ParamType::text)
      choices(p, of);
    else if (!p.choices.empty())
      find(Check::tables_choices, "{} has choices, and is no string", of);
    if ((p.input_path || p.output_path) && p.type != plugin::ParamType::text)
      find(Check::tables_values, "{} is a path, and no string", of);
    if (p.required || p.type == plugin::ParamType::text || p.type == plugin::ParamType::boolean) return;
    const auto* whole = std::get_if<std::int64_t>(&p.default_value);
    const double value = whole ? static_cast<double>(*whole) : std::get<double>(p.default_value);
    if ((p.min && !(value >= *p.min)) || (p.max && !(value <= *p.max)))
      find(Check::tables_values, "the default of {} is {}, outside its range", of, to_text(p.default_value));
  }

  void choices(const plugin::ParamSpec& p, const std::string& of) {
    const auto& value = std::get<std::string>(p.default_value);
    text_of(of, value);
    if (p.min || p.max) find(Check::tables_values, "{} is a string with a range", of);
    if (p.choices.empty()) return;
    if (std::set(p.choices.begin(), p.choices.end()).size() < p.choices.size())
      find(Check::tables_choices, "{} has a choice twice", of);
    if (!p.required && std::find(p.choices.begin(), p.choices.end(), value) == p.choices.end())
      find(Check::tables_choices, "the default of {} is \"{}\", which is not one of its choices", of, value);
  }

  void name_of(const char* kind, const std::string& name) {
    if (assay::is_reserved_name(name))
      find(Check::tables_names, "the {} '{}' has the name of a column that every table has", kind, name);
  }

  void text_of(std::string_view of, const std::string& text) {
    if (one_line(text) != text) find(Check::tables_text, "a text of {} has control characters", of);
  }

  void unit_of(std::string_view of, const std::string& unit) {
    constexpr std::size_t longest_unit = 24;
    if (unit.empty()) return;
    if (unit.front() == ' ' || unit.back() == ' ' || display_width(unit) > longest_unit)
      find(Check::tables_units, "the unit of {} is \"{}\"", of, unit);
  }

  const plugin::PluginTables& tables_;
  Answers& answers_;
  std::string workload_ = "plugin";
};

}  // namespace

void check_tables(const plugin::PluginTables& tables, Answers& answers) { TableChecks(tables, answers).check(); }

}  // namespace assay::host::validate
