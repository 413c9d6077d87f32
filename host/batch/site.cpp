#include "batch/site.hpp"

#include "batch/container.hpp"
#include "batch/site_kinds.hpp"

#include "common/files.hpp"
#include "common/suggest.hpp"
#include "experiment/document.hpp"
#include "run/load_experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using experiment::Mistakes;
using experiment::Node;
using experiment::TableMember;

class SiteReader {
 public:
  SiteReader(const fs::path& file, Mistakes& mistakes) : mistakes_(mistakes) {
    site_.file = file;
    site_.name = file.stem().string();
  }

  Site read(const Node& root) {
    bool has_kind = false;
    for (const TableMember& member : root.members) {
      if (member.key == "schema") {
        if (member.node.value != Value(std::int64_t{1}) || member.node.kind != Node::Kind::scalar)
          mistakes_.add(member.node.place, fmt::format("schema is {}; expected 1, the layout that this version reads",
                                                       member.node.shown()));
        has_schema_ = true;
      } else if (const SiteKind* kind = find_site_kind(member.key)) {
        if (has_kind)
          mistakes_.add(member.place, fmt::format("[{}] beside [{}]; expected one of them: a site has one kind",
                                                  member.key, site_.kind()));
        has_kind = true;
        site_.settings = no_settings(*kind);
        keys_ = kind->keys();
        site_.gpu_type.clear();
        section(member.node, member.key);
        refuse_gpu_type(*kind);
      } else {
        std::vector<std::string> known = names_of_site_kinds();
        known.insert(known.begin(), "schema");
        unknown(member, "", known);
      }
    }
    const experiment::Place start{site_.file.string(), 1, 1};
    if (!has_schema_) mistakes_.add(start, "missing 'schema'; expected schema = 1");
    if (!has_kind) mistakes_.add(start, missing_table());
    const SiteKind& kind = site_kind(site_);
    if (kind.complete) {
      SiteReading reading{site_, mistakes_, start, [this](const std::string& key) { return places_[key]; }};
      kind.complete(reading);
    }
    if (mistakes_.empty() && site_.limits.margin * 2 > site_.time_max)
      mistakes_.add(
          places_.count("margin")     ? places_["margin"]
          : places_.count("time_max") ? places_["time_max"]
                                      : start,
          fmt::format("[{0}.limits] margin is more than half of [{0}] time_max; expected a margin that leaves time for "
                      "cases",
                      site_.kind()));
    expand_excluded();
    check_environment();
    if (mistakes_.empty())
      for (const auto& [key, text] : problems_of_container(site_.container, site_.kind()))
        mistakes_.add(places_.contains(key)       ? places_[key]
                      : places_.contains("image") ? places_["image"]
                                                  : start,
                      text);
    // A path is one beside the site file.
    if (std::string& file = site_.health.experiment; !file.empty())
      file = fs::absolute(site_.file.parent_path() / file).lexically_normal().string();
    site_.health_place = places_["experiment"];
    if (places_.contains("tflop_per_s_min") || places_.contains("gbytes_per_s_min") || places_.contains("timeout_s"))
      if (site_.health.experiment.empty() && mistakes_.empty())
        mistakes_.add(start, fmt::format("[{}.health] has limits and no experiment; expected experiment = "
                                         "\"node-check.toml\"",
                                         site_.kind()));
    return std::move(site_);
  }

 private:
  static std::string missing_table() {
    const std::vector<const SiteKind*> kinds = site_kinds();
    std::string tables;
    for (const SiteKind* kind : kinds)
      tables += (kind == kinds.front() ? "" : kind == kinds.back() ? ", or " : ", ") + std::string(kind->expected);
    return fmt::format("missing table '{}'; expected {}", kinds.front()->name, tables);
  }

  // Reported under the table that has it, since a file with two kinds has a mistake already.
  void refuse_gpu_type(const SiteKind& kind) {
    if (kind.has_gpu_types || site_.gpu_type.empty()) return;
    std::vector<std::string> with_types;
    for (const SiteKind* each : site_kinds())
      if (each->has_gpu_types) with_types.emplace_back(each->shown);
    mistakes_.add(
        places_["gpus_per_node"],
        fmt::format("[{0}] gpus_per_node has the type '{1}', which {3} alone {4}; expected gpus_per_node = {2}",
                    kind.name, site_.gpu_type, site_.gpus_per_node, fmt::join(with_types, " and "),
                    with_types.size() == 1 ? "takes" : "take"));
  }

  void expand_excluded() {
    std::vector<std::string> nodes;
    for (const std::string& word : site_.exclude) {
      const auto list = expand_nodes(word);
      if (list)
        nodes.insert(nodes.end(), list->begin(), list->end());
      else
        mistakes_.add(places_["exclude"],
                      fmt::format("[{}] exclude has \"{}\"; expected names of nodes, or a list such as n[1-3,7]",
                                  site_.kind(), word));
    }
    site_.exclude = std::move(nodes);
  }

  void check_environment() {
    std::map<std::string, std::string> seen;  // by name
    for (const std::string& wanted : site_.environment) {
      const auto [known, is_new] = seen.emplace(wanted.substr(0, wanted.find('=')), wanted);
      if (!is_new)
        mistakes_.add(places_["environment"],
                      fmt::format("[{}] environment has {} twice: \"{}\" and \"{}\"; expected each variable once",
                                  site_.kind(), known->first, known->second, wanted));
    }
  }

  void unknown(const TableMember& member, const std::string& where, const std::vector<std::string>& known) {
    mistakes_.add(member.place, fmt::format("unknown {} '{}'{}; known: {}{}", member.node.is_table() ? "table" : "key",
                                            member.key, where.empty() ? "" : " in [" + where + "]",
                                            fmt::join(known, ", "), did_you_mean(member.key, known)));
  }

  void section(const Node& table, const std::string& name) {
    if (!table.is_table()) {
      mistakes_.add(table.place, fmt::format("{} is {}; expected a table [{}]", name, table.shown(), name));
      return;
    }
    std::vector<std::string> known;
    for (const SiteKey& row : keys_)
      if (row.section == name) known.push_back(row.key);
    const bool is_kind = name.find('.') == std::string::npos;
    std::set<std::string> inner;  // tables that the keys name: "limits" of "slurm.limits"
    for (const SiteKey& key : keys_)
      if (is_kind && key.section.starts_with(name + ".")) inner.insert(key.section.substr(name.size() + 1));
    known.insert(known.end(), inner.begin(), inner.end());
    for (const TableMember& member : table.members) {
      const auto row = std::find_if(keys_.begin(), keys_.end(),
                                    [&](const SiteKey& r) { return r.section == name && r.key == member.key; });
      if (row != keys_.end())
        value(*row, member);
      else if (inner.contains(member.key))
        section(member.node, name + "." + member.key);
      else
        unknown(member, name, known);
    }
  }

  void value(const SiteKey& row, const TableMember& member) {
    places_[row.key] = member.place;
    const std::string label = fmt::format("[{}] {}", row.section, row.key);
    const auto wrong = [&](const Node& node) {
      mistakes_.add(node.place, fmt::format("{} is {}; expected {}", label, node.shown(), row.expected));
    };
    if (row.is_list != member.node.is_array()) return wrong(member.node);
    if (!row.is_list && (member.node.kind != Node::Kind::scalar || !row.store(member.node.value, site_)))
      return wrong(member.node);
    for (const Node& element : member.node.elements)
      if (element.kind != Node::Kind::scalar || !row.store(element.value, site_))
        mistakes_.add(element.place, fmt::format("{} has {}; expected {}", label, element.shown(), row.expected));
  }

  Mistakes& mistakes_;
  Site site_;
  std::vector<SiteKey> keys_;  // of its kind
  bool has_schema_ = false;
  std::map<std::string, experiment::Place> places_;
};

}  // namespace

SiteResult site_from_text(std::string_view text, const fs::path& file) {
  Mistakes mistakes;
  const auto root = experiment::parse_document(text, file.string(), mistakes);
  if (!root) return {std::nullopt, mistakes.sorted()};
  Site site = SiteReader(file, mistakes).read(*root);
  if (!mistakes.empty()) return {std::nullopt, mistakes.sorted()};
  return {std::move(site), {}};
}

SiteResult read_site(const fs::path& file) try {
  SiteResult result = site_from_text(read_file(file), file);
  if (!result.site || result.site->health.experiment.empty()) return result;
  // Else each node would find out, one after the other.
  Mistakes mistakes;
  for (const auto& mistake : run::load_experiment({result.site->health.experiment, {}, {}, {}, {}}).mistakes)
    mistakes.add(result.site->health_place,
                 fmt::format("[{}.health] experiment: {}", result.site->kind(), mistake.to_string()));
  if (mistakes.empty()) return result;
  return {std::nullopt, mistakes.sorted()};
} catch (const StorageError& e) {
  return {std::nullopt,
          {{file.string(), 0, 0, fmt::format("{}; expected a site file (`assay site` lists them)", e.what())}}};
}

fs::path sites_folder() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = config && *config ? fs::path(config) : fs::path(home && *home ? home : "/") / ".config";
  return base / "assay" / "sites";
}

std::vector<fs::path> known_sites() {
  std::vector<fs::path> sites;
  std::error_code error;
  for (fs::directory_iterator it(sites_folder(), error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".toml") sites.push_back(it->path());
  std::sort(sites.begin(), sites.end());
  return sites;
}

fs::path find_site(const std::optional<std::string>& word) {
  const std::vector<fs::path> sites = known_sites();
  std::vector<std::string> names;
  for (const fs::path& site : sites) names.push_back(site.stem().string());
  if (!word) {
    if (const auto found = std::find(names.begin(), names.end(), "default"); found != names.end())
      return sites[static_cast<std::size_t>(found - names.begin())];
    if (sites.size() == 1) return sites.front();
    if (sites.empty())
      throw SiteError(fmt::format(
          "there is no site file in {}; write one with `assay site --new NAME`, or name one with --site PATH",
          sites_folder().string()));
    throw SiteError(fmt::format("which site? {} has {}; name one with --site NAME", sites_folder().string(),
                                fmt::join(names, ", ")));
  }
  if (word->find('/') != std::string::npos || word->ends_with(".toml")) return *word;
  if (const auto found = std::find(names.begin(), names.end(), *word); found != names.end())
    return sites[static_cast<std::size_t>(found - names.begin())];
  throw SiteError(fmt::format("no site '{}' in {}; known: {}{}", *word, sites_folder().string(),
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                              did_you_mean(*word, names)));
}

}  // namespace assay::host::batch
