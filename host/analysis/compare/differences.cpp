#include "compare/differences.hpp"

#include "compare/inputs.hpp"
#include "record/environment_file.hpp"
#include "record/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace assay::host::compare {
namespace {

// One side's items -> their values over the runs and cases, in the order in which they were seen.
using Said = std::map<std::string, std::vector<std::string>>;

void say(Said& said, const std::string& item, const std::string& value) {
  std::vector<std::string>& values = said[item];
  if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

// Lists that are whole: what one side has and another has not is a difference, and not something that it does not say.
struct WholeList {
  std::string prefix;  // of its items: "variables."
  const char* absent;  // "not set"
};
const std::array<WholeList, 2> kWholeLists{{{"variables.", "not set"}, {"library ", "not loaded"}}};

void say_facts(Said& said, const record::Named<std::string>& facts) {
  for (const auto& [name, text] : facts)
    if (name != "schema" && record::life_of_fact(name) != record::FactLife::of_moment) say(said, name, text);
}

// Says of each item of the list that some side has, and these do not: absent.
void say_absent(Said& said, const WholeList& list, const std::set<std::string>& items,
                const record::Named<std::string>& known, const std::string& known_prefix) {
  for (auto item = items.lower_bound(list.prefix); item != items.end() && item->starts_with(list.prefix); ++item)
    if (record::life_of_fact(*item) != record::FactLife::of_moment &&
        !record::find(known, known_prefix + item->substr(list.prefix.size())))
      say(said, *item, list.absent);
}

// Earlier versions of assay looked for fewer variables, and said no time.
bool has_all_variables(const record::Environment& environment) {
  return !environment.invocations().empty() || record::find(environment.facts(), "captured");
}

void say_environment(Said& said, const record::Environment& environment) {
  say_facts(said, environment.facts());
  for (const record::Named<std::string>& invocation : environment.invocations()) say_facts(said, invocation);
}

// Each once, the first first: thousands of records may be of one environment.
std::vector<const record::Environment*> environments_of(const ComparedRun& run) {
  std::vector<const record::Environment*> all;
  const auto add = [&all](const record::Environment* environment) {
    if (environment && std::find(all.begin(), all.end(), environment) == all.end()) all.push_back(environment);
  };
  for (const record::CaseRecord& record : run.records) add(run.environment_of(record));
  if (all.empty() && run.environment) add(&*run.environment);
  return all;
}

// "oneDNN 2.6.3; OpenMP 4.5, 2 threads" -> each by itself, so that only those that differ are shown.
std::vector<std::string> parts_of(const std::string& libraries) {
  std::vector<std::string> parts;
  std::string part;
  const auto add = [&] {
    const std::size_t begin = part.find_first_not_of(' ');
    if (begin != std::string::npos) parts.push_back(part.substr(begin));
    part.clear();
  };
  for (const char c : libraries) {
    if (c == ';' || c == ',')
      add();
    else
      part += c;
  }
  add();
  return parts;
}

constexpr const char* kLibraries = "driver and libraries";

// The axes of all sides. An axis distinguishes cases, and is compared there.
std::set<std::string> swept_in(const std::vector<Side>& sides) {
  std::set<std::string> axes;
  for (const Side& side : sides)
    for (const ComparedRun& run : side.runs)
      for (const record::CaseRecord& record : run.records)
        for (const auto& axis : record.identity.axes) axes.insert(axis.first);
  return axes;
}

void say_record(Said& said, const record::CaseRecord& record, const std::set<std::string>& axes) {
  if (record.result.device)
    for (const auto& [name, text] : record::items_of(*record.result.device)) {
      if (name == "ordinal" || name == "bus_address") continue;
      if (name == "libraries") {
        for (const std::string& part : parts_of(text)) say(said, kLibraries, part);
      } else {
        say(said, "device." + name, text);
      }
    }
  if (const std::string& waiting = record.result.threads.waiting; !waiting.empty())
    say(said, "threads.waiting", waiting);
  if (const auto& plugin = record.identity.plugin) {
    say(said, "plugin.version", plugin->version);
    say(said, "plugin.build", plugin->build);
    if (!plugin->abi.empty()) say(said, "plugin.abi", plugin->abi);
    if (record.identity.files.empty()) say(said, "plugin.file_hash", plugin->file_hash);
  }
  // As the environment calls it, which of several ranks is that of the first.
  if (!record.host.empty()) say(said, "os.hostname", record.host);
  for (const auto& [name, hash] : record.identity.files) say(said, "file " + name, hash);
  for (const auto& [name, build] : record.result.libraries) say(said, kWholeLists[1].prefix + name, build);
  for (const auto& [made_for, algorithm] : record.result.algorithms) say(said, "algorithm of " + made_for, algorithm);
  const std::optional<std::int64_t> threads = record.result.threads.count;
  if (threads && !axes.contains(threads_key)) say(said, threads_key, std::to_string(*threads));
  for (const auto& [name, value] : record.identity.settings) {
    // The device, the number of ranks and that of threads stand elsewhere, as what they became.
    const bool is_told = name == "run.device" || name == record::ranks_axis || (threads && name == threads_key);
    if (!axes.contains(name) && !is_told) say(said, name, record::plain_text(value));
  }
}

void say_what_is_absent(Said& said, const Side& side, const std::set<std::string>& items) {
  const auto& [variables, libraries] = kWholeLists;
  for (const ComparedRun& run : side.runs) {
    for (const record::Environment* environment : environments_of(run))
      if (has_all_variables(*environment)) say_absent(said, variables, items, environment->facts(), variables.prefix);
    for (const record::CaseRecord& record : run.records)
      if (!record.result.libraries.empty()) say_absent(said, libraries, items, record.result.libraries, "");
  }
}

std::string joined(const std::vector<std::string>& values, const char* separator) {
  return fmt::format("{}", fmt::join(values, separator));
}

// The parts of a list that not all sides have.
std::vector<std::string> without_common(const std::vector<std::string>& parts, const std::vector<Said>& sides) {
  std::vector<std::string> result;
  for (const std::string& part : parts) {
    const bool everywhere = std::all_of(sides.begin(), sides.end(), [&](const Said& said) {
      const auto found = said.find(kLibraries);
      return found == said.end() || std::find(found->second.begin(), found->second.end(), part) != found->second.end();
    });
    if (!everywhere) result.push_back(part);
  }
  return result;
}

}  // namespace

Differences find_differences(const std::vector<Side>& sides) {
  std::vector<Said> said;
  std::set<std::string> names;
  const std::set<std::string> axes = swept_in(sides);
  for (const Side& side : sides) {
    Said of_side;
    for (const ComparedRun& run : side.runs) {
      for (const record::Environment* environment : environments_of(run)) say_environment(of_side, *environment);
      for (const record::CaseRecord& record : run.records) say_record(of_side, record, axes);
    }
    for (const auto& [item, values] : of_side) names.insert(item);
    said.push_back(std::move(of_side));
  }
  for (std::size_t i = 0; i < sides.size(); ++i) say_what_is_absent(said[i], sides[i], names);
  // The device and what drives it come first, then the settings and versions by name.
  std::vector<std::string> order;
  for (const auto* first : {"device.kind", "device.name", kLibraries})
    if (names.erase(first)) order.emplace_back(first);
  order.insert(order.end(), names.begin(), names.end());

  Differences result;
  result.untold.resize(sides.size());
  for (const std::string& item : order) {
    Difference difference{item, {}};
    std::set<std::set<std::string>> distinct;
    for (std::size_t i = 0; i < said.size(); ++i) {
      const auto found = said[i].find(item);
      if (found == said[i].end()) {
        difference.values.emplace_back();
        result.untold[i].push_back(item);
        continue;
      }
      // In whatever order its runs and cases have said it.
      distinct.emplace(found->second.begin(), found->second.end());
      difference.values.push_back(item == kLibraries ? joined(without_common(found->second, said), ", ")
                                                     : joined(found->second, " | "));
    }
    if (distinct.size() > 1) result.items.push_back(std::move(difference));
  }
  return result;
}

}  // namespace assay::host::compare
