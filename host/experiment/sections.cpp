#include "experiment/sections.hpp"

#include "common/suggest.hpp"
#include "experiment/columns.hpp"
#include "record/columns.hpp"
#include "experiment/overrides.hpp"
#include "experiment/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace assay::host {
namespace {

using Names = std::vector<std::string>;

const Names& root_keys() {
  static const Names keys{"schema", "name", "description", "workload", "sweep", "measure", "run", "output", "profile"};
  return keys;
}

class SectionReader {
 public:
  SectionReader(const Node& root, const Vocabulary& vocabulary, Draft& draft, Mistakes& mistakes)
      : root_(root), vocabulary_(vocabulary), draft_(draft), mistakes_(mistakes) {}

  void read() {
    read_head();
    read_workload();
    each_key("measure", {"warmup", "steps", "until", "sync", "timeout"},
             [this](const TableMember& m) { read_measure(m); });
    each_key("run",
             {"device", "ranks", "bind", "stall_timeout", "wireup_timeout", "isolate", "allow", "seed", "threads",
              "memory_limit"},
             [this](const TableMember& m) {
               if (m.key == "allow")
                 read_list(m, "run", {"ok", "oom", "timeout", "crashed", "unsupported", "wrong_result", "failed"},
                           draft_.base.run.allow);
               else
                 read_setting(m, "run");
             });
    each_key("output", {"dir", "formats", "columns"}, [this](const TableMember& m) { read_output(m); });
    each_key("profile", {"nvtx", "nsys", "kernels", "memory_snapshot"},
             [this](const TableMember& m) { read_setting(m, "profile"); });
  }

 private:
  void unknown(const TableMember& member, const std::string& where, const Names& known, const Names& hints) {
    const char* what = member.node.is_table() && where.empty() ? "table" : "key";
    mistakes_.add(member.place, fmt::format("unknown {} '{}'{}; known: {}{}", what, member.key,
                                            where.empty() ? "" : " in [" + where + "]", fmt::join(known, ", "),
                                            did_you_mean(member.key, hints)));
  }

  void missing(const std::string& what, const std::string& expected, const TableMember* near) {
    const Place start{draft_.experiment.file.string(), 1, 1};
    mistakes_.add(near ? near->place : start, fmt::format("missing {}; expected {}", what, expected));
  }

  // Calls `read` for each member of a section that is in `known`, and reports the others.
  template <class Read>
  void each_key(const std::string& section, const Names& known, Read read) {
    const TableMember* member = root_.find(section);
    if (member) each_key_of(member->node, section, known, read);
  }

  template <class Read>
  void each_key_of(const Node& table, const std::string& section, const Names& known, Read read) {
    if (!table.is_table()) {
      mistakes_.add(table.place, fmt::format("{} is {}; expected a table [{}]", section, table.shown(), section));
      return;
    }
    for (const auto& member : table.members) {
      if (std::find(known.begin(), known.end(), member.key) != known.end()) {
        read(member);
        continue;
      }
      const auto settings = setting_names();
      const bool near = nearest(member.key, known).has_value();
      unknown(member, section, known, near ? known : settings);
    }
  }

  void read_setting(const TableMember& member, const std::string& section) {
    const std::string key = section + "." + member.key;
    const auto label = fmt::format("[{}] {}", section, member.key);
    if (const auto value = vocabulary_.check(key, member.node, label, mistakes_))
      find_setting(key)->apply(*value, draft_.base);
  }

  std::optional<std::string> read_text(const TableMember& member, const std::string& label,
                                       const std::string& expected) {
    const auto* text = std::get_if<std::string>(&member.node.value);
    if (member.node.kind == Node::Kind::scalar && text) return *text;
    mistakes_.add(member.node.place, fmt::format("{} is {}; expected {}", label, member.node.shown(), expected));
    return std::nullopt;
  }

  void read_head() {
    for (const auto& member : root_.members)
      if (std::find(root_keys().begin(), root_keys().end(), member.key) == root_keys().end()) {
        const bool near = nearest(member.key, root_keys()).has_value();
        unknown(member, "", root_keys(), near ? root_keys() : setting_names());
      }
    if (const TableMember* schema = root_.find("schema")) {
      if (schema->node.kind != Node::Kind::scalar || schema->node.value != Value(std::int64_t{1}))
        mistakes_.add(schema->node.place, fmt::format("schema is {}; expected 1, the layout that this version reads",
                                                      schema->node.shown()));
    } else {
      missing("'schema'", "schema = 1", nullptr);
    }
    const std::string expected =
        "the folder's name under the results: not empty, no '/', no leading '.', no control characters";
    if (const TableMember* name = root_.find("name")) {
      if (const auto text = read_text(*name, "name", "a string: " + expected)) {
        const bool control = std::any_of(text->begin(), text->end(), [](unsigned char c) { return std::iscntrl(c); });
        if (text->empty() || text->front() == '.' || text->find('/') != std::string::npos || control)
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
    each_key("workload", {"plugin", "params"}, [this](const TableMember& member) {
      if (member.key == "params") return read_params(member);
      const std::string expected = "a string: a name on the plugin path, or a path to a .so with a '/' in it";
      const auto plugin = read_text(member, "[workload] plugin", expected);
      if (plugin && plugin->empty())
        mistakes_.add(member.node.place, fmt::format("[workload] plugin is \"\"; expected {}", expected));
      draft_.experiment.plugin = plugin.value_or("");
    });
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
      if (const auto value = vocabulary_.check(member.key, member.node, label, mistakes_))
        draft_.base.params[member.key] = *value;
    }
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
      Node written;  // an input file named by a default has to exist like any other
      written.kind = Node::Kind::scalar;
      written.place = near ? near->place : Place{draft_.experiment.file.string(), 1, 1};
      written.value = spec.default_value;
      const bool names_file = spec.input_path && spec.default_value != Value(std::string());
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

  void read_measure(const TableMember& member) {
    if (member.key == "steps") draft_.steps_place = member.place;
    if (member.key != "until") return read_setting(member, "measure");
    draft_.until_place = member.place;
    draft_.base.measure.until.emplace();
    each_key_of(member.node, "measure.until", {"relative_error", "confidence", "min_steps", "max_steps"},
                [this](const TableMember& m) { read_setting(m, "measure.until"); });
  }

  void read_output(const TableMember& member) {
    auto& output = draft_.experiment.output;
    if (member.key == "formats") return read_list(member, "output", {"json", "csv", "markdown"}, output.formats);
    if (member.key == "columns") return read_columns(member);
    const auto dir = read_text(member, "[output] dir", "a string: the folder for results (default \"results\")");
    if (dir && dir->empty())
      mistakes_.add(member.node.place, "[output] dir is \"\"; expected a folder for results (default \"results\")");
    if (dir) output.dir = *dir;
  }

  // An array of words, each one of `choices`.
  void read_list(const TableMember& member, const std::string& section, const Names& choices, Names& out) {
    const auto label = fmt::format("[{}] {}", section, member.key);
    out.clear();
    each_text(member, label, fmt::format("an array of {}", fmt::join(choices, ", ")),
              [&](const Node& node, const std::string& word) {
                if (std::find(choices.begin(), choices.end(), word) == choices.end())
                  mistakes_.add(node.place, fmt::format("{} has \"{}\"; expected one of {}{}", label, word,
                                                        fmt::join(choices, ", "), did_you_mean(word, choices)));
                out.push_back(word);
              });
  }

  void read_columns(const TableMember& member) {
    const Names names = vocabulary_.schema() ? column_names(*vocabulary_.schema()) : Names{};
    auto& columns = draft_.experiment.output.columns;
    each_text(member, "[output] columns", "an array of column names", [&](const Node& node, const std::string& column) {
      columns.push_back(column);
      if (!vocabulary_.schema() || record::is_column(column, names)) return;
      mistakes_.add(
          node.place,
          fmt::format("[output] columns has \"{}\", which no record of workload {} has; expected a parameter, a "
                      "setting, a metric, PHASE.STATISTIC with phase {}, a rate, or memory.*.mib{}",
                      column, vocabulary_.schema()->id, phases_text(), did_you_mean(column, names)));
    });
  }

  std::string phases_text() const {
    const auto& phases = vocabulary_.schema()->phases;
    return phases.empty() ? "step" : fmt::format("step, {}", fmt::join(phases, ", "));
  }

  template <class Read>
  void each_text(const TableMember& member, const std::string& label, const std::string& expected, Read read) {
    if (!member.node.is_array()) {
      mistakes_.add(member.node.place, fmt::format("{} is {}; expected {}", label, member.node.shown(), expected));
      return;
    }
    for (const auto& element : member.node.elements) {
      const auto* text = std::get_if<std::string>(&element.value);
      if (element.kind == Node::Kind::scalar && text)
        read(element, *text);
      else
        mistakes_.add(element.place, fmt::format("{} has {}; expected {}", label, element.shown(), expected));
    }
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

}  // namespace assay::host
