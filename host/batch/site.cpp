#include "batch/site.hpp"

#include "batch/slurm_answers.hpp"

#include "common/files.hpp"
#include "common/host_list.hpp"
#include "common/suggest.hpp"
#include "experiment/document.hpp"
#include "experiment/setting_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <sstream>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using experiment::Kind;
using experiment::Mistakes;
using experiment::Node;
using experiment::TableMember;

struct Row {
  std::string section, key;
  std::string expected;
  bool is_list = false;
  std::function<bool(const Value&, Site&)> store;  // one value, or one element of a list; false when it does not fit
};

// A value that becomes a word of an option, or a name in one: no blank, no quote, nothing that a shell reads.
Kind<std::string> word_kind(std::string expected) {
  Kind<std::string> kind = experiment::any_text(std::move(expected));
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    const auto fits = [](unsigned char c) {
      return std::isalnum(c) ||
             std::string_view("._-:,=&|[]*+@/()").find(static_cast<char>(c)) != std::string_view::npos;
    };
    return text && !text->empty() && std::all_of(text->begin(), text->end(), fits) ? std::optional(*text)
                                                                                   : std::nullopt;
  };
  return kind;
}

// One name, and no list of several.
Kind<std::string> one_word_kind(const std::string& expected) {
  Kind<std::string> kind = word_kind(expected + ", and one alone");
  kind.read = [word = kind.read](const Value& found) {
    auto text = word(found);
    return text && text->find(',') == std::string::npos ? text : std::nullopt;
  };
  return kind;
}

// A script has no other control characters than tabs.
bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) && c != '\t'; });
}

Kind<std::string> option_kind() {
  Kind<std::string> kind = experiment::any_text("options that begin with '-', without a line end");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    return text && text->starts_with('-') && is_one_line(*text) ? std::optional(*text) : std::nullopt;
  };
  return kind;
}

// Options of sbatch that say what a case asked for, or by which a batch is known: assay's own.
bool is_of_assay(const std::string& option) {
  constexpr std::array<std::string_view, 25> names{"--nodes",     "--ntasks",   "--ntasks-per-node",
                                                   "--array",     "--comment",  "--output",
                                                   "--time",      "--job-name", "--signal",
                                                   "--nodelist",  "--requeue",  "--no-requeue",
                                                   "--open-mode", "-N",         "-n",
                                                   "-a",          "-o",         "-t",
                                                   "--clusters",  "-M",         "--wrap",
                                                   "-w",          "--nodefile", "-F",
                                                   "-J"};
  std::istringstream words(option);  // "--mem 4G -M other" is several
  for (std::string word; words >> word;) {
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    // A letter may have its value right behind it: "-Mother", "-N2".
    if (std::any_of(names.begin(), names.end(), [&](std::string_view each) {
          if (each.size() == 2) return name.starts_with(each);
          return name.size() > 2 && each.starts_with(name);  // "--nodel" is --nodelist
        }))
      return true;
  }
  return false;
}

Kind<std::string> sbatch_option_kind() {
  Kind<std::string> kind = option_kind();
  kind.expected +=
      ", and none that assay sets itself (--nodes, --ntasks, --array, --time, --output, --comment, ...; in the place "
      "of "
      "--clusters the key 'cluster')";
  kind.read = [plain = kind.read](const Value& found) {
    auto option = plain(found);
    return option && !is_of_assay(*option) ? option : std::nullopt;
  };
  return kind;
}

// "NAME", or "NAME=value".
Kind<std::string> variable_kind() {
  Kind<std::string> kind = experiment::any_text("names of variables, or \"NAME=value\"");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    if (!text || !is_one_line(*text)) return std::nullopt;
    const std::string_view name = std::string_view(*text).substr(0, text->find('='));
    const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
    const bool is_name = !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
                         std::all_of(name.begin(), name.end(), fits);
    return is_name ? std::optional(*text) : std::nullopt;
  };
  return kind;
}

Kind<std::string> line_kind_of(std::string expected) {
  Kind<std::string> kind = experiment::any_text(std::move(expected));
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    return text && is_one_line(*text) ? std::optional(*text) : std::nullopt;
  };
  return kind;
}

Kind<std::string> line_kind() { return line_kind_of("lines of a shell script"); }

Kind<double> above_0() {
  return {"a number above 0",
          [](const Value& found) -> std::optional<double> {
            if (const auto* whole = std::get_if<std::int64_t>(&found); whole && *whole > 0)
              return static_cast<double>(*whole);
            const auto* number = std::get_if<double>(&found);
            return number && *number > 0 && *number < 1e12 ? std::optional(*number) : std::nullopt;
          },
          [](double number) { return Value(number); }};
}

template <class T, class Find>
Row row(std::string section, std::string key, Kind<T> kind, Find find) {
  return {std::move(section), std::move(key), kind.expected, false, [kind, find](const Value& found, Site& site) {
            auto value = kind.read(found);
            if (value) find(site) = *value;
            return value.has_value();
          }};
}

template <class Find>
Row list(std::string section, std::string key, Kind<std::string> kind, Find find) {
  return {std::move(section), std::move(key), "an array of " + kind.expected, true,
          [kind, find](const Value& found, Site& site) {
            auto value = kind.read(found);
            if (value) find(site).push_back(*value);
            return value.has_value();
          }};
}

Kind<std::string> text_of_file() { return line_kind_of("the file of an experiment, as configs/node-check.toml"); }

// 8, or "h100:8".
bool store_gpus(const Value& found, Site& site) {
  const auto store = [&](const Value& count) {
    const auto number = experiment::integer(0, 1024).read(count);
    if (number) site.gpus_per_node = *number;
    return number.has_value();
  };
  const auto* text = std::get_if<std::string>(&found);
  if (!text) return store(found);
  const std::size_t colon = text->find(':');
  const std::string type = text->substr(0, colon), count = colon == std::string::npos ? "" : text->substr(colon + 1);
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c); };
  if (type.empty() || !std::all_of(type.begin(), type.end(), is_of_name)) return false;
  if (count.empty() || count.size() > 4 || !std::all_of(count.begin(), count.end(), is_digit)) return false;
  site.gpu_type = type;
  return store(Value(static_cast<std::int64_t>(std::stoll(count))));
}

const std::vector<Row>& rows() {
  using namespace experiment;
  const std::string name = "a name without blanks or quotes";
  static const std::vector<Row> table{
      row(
          "slurm", "cluster", one_word_kind(name), [](Site & s) -> auto& { return s.cluster; }),
      row(
          "slurm", "partition", word_kind(name), [](Site & s) -> auto& { return s.partition; }),
      row(
          "slurm", "account", word_kind(name), [](Site & s) -> auto& { return s.account; }),
      row(
          "slurm", "qos", word_kind(name), [](Site & s) -> auto& { return s.qos; }),
      row(
          "slurm", "constraint", word_kind("features as sbatch takes them, without blanks"),
          [](Site & s) -> auto& { return s.constraint; }),
      row(
          "slurm", "reservation", word_kind(name), [](Site & s) -> auto& { return s.reservation; }),
      {"slurm", "gpus_per_node", "an integer from 0 to 1024, or \"TYPE:NUMBER\" as \"h100:8\"", false, store_gpus},
      row(
          "slurm", "time_max", duration(), [](Site & s) -> auto& { return s.time_max; }),
      row(
          "slurm", "requeue", flag(), [](Site & s) -> auto& { return s.requeue; }),
      row(
          "slurm", "exclusive", flag(), [](Site & s) -> auto& { return s.exclusive; }),
      list(
          "slurm", "exclude", word_kind("names of nodes"), [](Site & s) -> auto& { return s.exclude; }),
      list(
          "slurm", "sbatch_extra", sbatch_option_kind(), [](Site & s) -> auto& { return s.sbatch_extra; }),
      list(
          "slurm", "srun_extra", option_kind(), [](Site & s) -> auto& { return s.srun_extra; }),
      list(
          "slurm", "environment", variable_kind(), [](Site & s) -> auto& { return s.environment; }),
      list(
          "slurm", "prologue", line_kind(), [](Site & s) -> auto& { return s.prologue; }),
      list(
          "slurm", "on_end", line_kind(), [](Site & s) -> auto& { return s.on_end; }),
      row(
          "slurm", "assay", word_kind("the path of the program assay on the nodes, without blanks"),
          [](Site & s) -> auto& { return s.assay; }),
      row(
          "slurm.limits", "array_parallel", integer(1, 100000),
          [](Site & s) -> auto& { return s.limits.array_parallel; }),
      row(
          "slurm.limits", "attempts", integer(1, 100), [](Site & s) -> auto& { return s.limits.attempts; }),
      row(
          "slurm.limits", "node_hours", above_0(), [](Site & s) -> auto& { return s.limits.node_hours; }),
      row(
          "slurm.limits", "case_budget", duration(), [](Site & s) -> auto& { return s.limits.case_budget; }),
      row(
          "slurm.limits", "margin", duration(), [](Site & s) -> auto& { return s.limits.margin; }),
      row(
          "slurm.health", "experiment", text_of_file(), [](Site & s) -> auto& { return s.health.experiment; }),
      row(
          "slurm.health", "tflop_per_s_min", above_0(), [](Site & s) -> auto& { return s.health.tflop_per_s_min; }),
      row(
          "slurm.health", "gbytes_per_s_min", above_0(), [](Site & s) -> auto& { return s.health.gbytes_per_s_min; }),
      row(
          "slurm.health", "timeout_s", integer(1, 86400), [](Site & s) -> auto& { return s.health.timeout_s; }),
      row(
          "slurm.canary", "enable", flag(), [](Site & s) -> auto& { return s.canary; }),
  };
  static const std::vector<Row> all = [&name] {
    std::vector<Row> rows = table;
    // The other kinds have those that are no words of a scheduler.
    constexpr std::array<std::string_view, 7> shared{"gpus_per_node", "time_max",    "prologue", "attempts",
                                                     "node_hours",    "case_budget", "margin"};
    const auto is_in = [](const auto& keys, const std::string& key) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    const auto add_copy = [&rows](const Row& of, const char* kind) {
      Row copy = of;
      copy.section = kind + of.section.substr(std::string_view("slurm").size());
      rows.push_back(std::move(copy));
    };
    for (const Row& each : table) {
      if (is_in(shared, each.key) || each.key == "enable") add_copy(each, "ssh");
      if (is_in(shared, each.key) || each.key == "array_parallel" || each.key == "assay") add_copy(each, "kubernetes");
    }
    rows.push_back(list(
        "ssh", "hosts", ssh_host(), [](Site & s) -> auto& { return s.hosts; }));
    rows.push_back(row(
        "kubernetes", "namespace", word_kind(name), [](Site & s) -> auto& { return s.name_space; }));
    rows.push_back(row(
        "kubernetes", "image", word_kind("the name of an image with assay in it"),
        [](Site & s) -> auto& { return s.image; }));
    rows.push_back(row(
        "kubernetes", "volume", word_kind("the name of a PersistentVolumeClaim that many pods may write"),
        [](Site & s) -> auto& { return s.volume; }));
    rows.push_back(row(
        "kubernetes", "mount", word_kind("the path of that volume, in pods and on this machine, from \"/\" on"),
        [](Site & s) -> auto& { return s.mount; }));
    return rows;
  }();
  return all;
}

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
      } else if (member.key == "slurm" || member.key == "ssh" || member.key == "kubernetes") {
        if (has_kind)
          mistakes_.add(member.place, fmt::format("[{}] beside [{}]; expected one of them: a site has one kind",
                                                  member.key, site_.kind));
        has_kind = true;
        site_.kind = member.key;
        section(member.node, member.key);
      } else {
        unknown(member, "", {"schema", "slurm", "ssh", "kubernetes"});
      }
    }
    const experiment::Place start{site_.file.string(), 1, 1};
    if (!has_schema_) mistakes_.add(start, "missing 'schema'; expected schema = 1");
    if (!has_kind)
      mistakes_.add(
          start,
          "missing table 'slurm'; expected [slurm] with the site's partition and limits, [ssh] with its hosts, or "
          "[kubernetes]");
    if (site_.kind != "slurm" && !site_.gpu_type.empty())
      mistakes_.add(
          places_["gpus_per_node"],
          fmt::format("[{0}] gpus_per_node has the type '{1}', which Slurm alone takes; expected gpus_per_node "
                      "= {2}",
                      site_.kind, site_.gpu_type, site_.gpus_per_node));
    if (site_.kind == "kubernetes") {
      site_.canary = false;  // a Job waits for no other
      for (const auto& [key, value] :
           {std::pair{"image", site_.image}, {"volume", site_.volume}, {"mount", site_.mount}})
        if (value.empty() && mistakes_.empty())
          mistakes_.add(start, fmt::format("[kubernetes] has no {}; expected image, volume and mount", key));
      while (site_.mount.size() > 1 && site_.mount.ends_with('/')) site_.mount.pop_back();
      if (!site_.mount.empty() && !site_.mount.starts_with('/'))
        mistakes_.add(places_["mount"],
                      fmt::format("[kubernetes] mount is \"{}\"; expected a path from \"/\" on", site_.mount));
    }
    if (site_.kind == "ssh" && mistakes_.empty()) {
      if (site_.hosts.empty())
        mistakes_.add(start, fmt::format("[ssh] has no hosts; expected hosts = [...], each {}", host_form));
      std::set<std::string> seen;
      for (const std::string& host : site_.hosts)
        if (!seen.insert(parse_host(host)->name).second)
          mistakes_.add(places_["hosts"], fmt::format("[ssh] hosts has {} twice; expected each host once", host));
      site_.limits.array_parallel = static_cast<std::int64_t>(site_.hosts.size());
    }
    if (mistakes_.empty() && site_.limits.margin * 2 > site_.time_max)
      mistakes_.add(
          places_.count("margin")     ? places_["margin"]
          : places_.count("time_max") ? places_["time_max"]
                                      : start,
          fmt::format("[{0}.limits] margin is more than half of [{0}] time_max; expected a margin that leaves time for "
                      "cases",
                      site_.kind));
    expand_excluded();
    // A path is one beside the site file.
    if (std::string& file = site_.health.experiment; !file.empty())
      file = fs::absolute(site_.file.parent_path() / file).lexically_normal().string();
    if (places_.contains("tflop_per_s_min") || places_.contains("gbytes_per_s_min") || places_.contains("timeout_s"))
      if (site_.health.experiment.empty() && mistakes_.empty())
        mistakes_.add(start, fmt::format("[{}.health] has limits and no experiment; expected experiment = "
                                         "\"node-check.toml\"",
                                         site_.kind));
    return std::move(site_);
  }

 private:
  void expand_excluded() {
    std::vector<std::string> nodes;
    for (const std::string& word : site_.exclude) {
      const auto list = expand_nodes(word);
      if (list)
        nodes.insert(nodes.end(), list->begin(), list->end());
      else
        mistakes_.add(
            places_["exclude"],
            fmt::format("[slurm] exclude has \"{}\"; expected names of nodes, or a list such as n[1-3,7]", word));
    }
    site_.exclude = std::move(nodes);
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
    for (const Row& row : rows())
      if (row.section == name) known.push_back(row.key);
    const bool is_kind = name.find('.') == std::string::npos;
    if (is_kind) known.emplace_back("limits");
    if (is_kind && name != "kubernetes") known.emplace_back("canary");
    if (name == "slurm") known.emplace_back("health");
    for (const TableMember& member : table.members) {
      const auto row = std::find_if(rows().begin(), rows().end(),
                                    [&](const Row& r) { return r.section == name && r.key == member.key; });
      if (row != rows().end())
        value(*row, member);
      else if ((is_kind && (member.key == "limits" || member.key == "canary")) ||
               (name == "slurm" && member.key == "health"))
        section(member.node, name + "." + member.key);
      else
        unknown(member, name, known);
    }
  }

  void value(const Row& row, const TableMember& member) {
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
  bool has_schema_ = false;
  std::map<std::string, experiment::Place> places_;
};

}  // namespace

bool Site::asks_for_gpus() const {
  return gpus_per_node > 0 || std::any_of(sbatch_extra.begin(), sbatch_extra.end(), [](const std::string& option) {
           return option.starts_with("--gpus") || option.starts_with("-G") ||
                  (option.starts_with("--gres") && option.find("gpu") != std::string::npos);
         });
}

SiteResult site_from_text(std::string_view text, const fs::path& file) {
  Mistakes mistakes;
  const auto root = experiment::parse_document(text, file.string(), mistakes);
  if (!root) return {std::nullopt, mistakes.sorted()};
  Site site = SiteReader(file, mistakes).read(*root);
  if (!mistakes.empty()) return {std::nullopt, mistakes.sorted()};
  return {std::move(site), {}};
}

SiteResult read_site(const fs::path& file) try {
  return site_from_text(read_file(file), file);
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
