#include "batch/site_keys.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>

#include "batch/shell_words.hpp"
#include "common/host_list.hpp"
#include "experiment/setting_kinds.hpp"

namespace assay::host::batch {
namespace {

using experiment::Kind;

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

// A name that the shell of a batch script reads as one word.
Kind<std::string> cluster_kind() {
  Kind<std::string> kind = experiment::any_text("the name of one cluster: letters, digits and . _ - alone");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
    return text && !text->empty() && std::all_of(text->begin(), text->end(), fits) ? std::optional(*text)
                                                                                   : std::nullopt;
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

// Options that the batch script has as they are, on a line of its shell.
Kind<std::string> shell_option_kind() {
  Kind<std::string> kind = option_kind();
  kind.expected += ", quoted where a shell would read more than words: \"--constraint='[a|b]'\"";
  kind.read = [plain = kind.read](const Value& found) {
    auto option = plain(found);
    return option && shell_words(*option) ? option : std::nullopt;
  };
  return kind;
}

// "/data", "/data:/inside", "/data:/inside:ro".
Kind<std::string> mount_kind() {
  Kind<std::string> kind = experiment::any_text("folders as \"/data\", \"/data:/inside\" or \"/data:/inside:ro\"");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    if (!text) return std::nullopt;
    const auto is_of_path = [](unsigned char c) {
      return std::isalnum(c) || std::string_view("/._-+=@~").find(static_cast<char>(c)) != std::string_view::npos;
    };
    std::vector<std::string_view> parts;
    for (std::string_view rest = *text;;) {
      const std::size_t colon = rest.find(':');
      parts.push_back(rest.substr(0, colon));
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
    const std::size_t paths = std::min<std::size_t>(parts.size(), 2);
    for (std::size_t i = 0; i < paths; ++i)
      if (!parts[i].starts_with('/') || !std::all_of(parts[i].begin(), parts[i].end(), is_of_path)) return std::nullopt;
    if (parts.size() > 3 || (parts.size() == 3 && parts[2] != "ro" && parts[2] != "rw")) return std::nullopt;
    return *text;
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

Kind<std::string> image_kind() {
  Kind<std::string> kind = line_kind_of("the name or file of an image, without blanks or quotes");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    const auto fits = [](unsigned char c) { return std::isgraph(c) && c != '\'' && c != '"' && c != '\\'; };
    return text && !text->empty() && !text->starts_with('-') && std::all_of(text->begin(), text->end(), fits)
               ? std::optional(*text)
               : std::nullopt;
  };
  return kind;
}

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
SiteKey row(std::string section, std::string key, Kind<T> kind, Find find) {
  return {std::move(section), std::move(key), kind.expected, false, [kind, find](const Value& found, Site& site) {
            auto value = kind.read(found);
            if (value) find(site) = *value;
            return value.has_value();
          }};
}

template <class Find>
SiteKey list(std::string section, std::string key, Kind<std::string> kind, Find find) {
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

}  // namespace

const std::vector<SiteKey>& site_keys() {
  using namespace experiment;
  const std::string name = "a name without blanks or quotes";
  static const std::vector<SiteKey> table{
      row(
          "slurm", "cluster", cluster_kind(), [](Site & s) -> auto& { return s.cluster; }),
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
          "slurm", "srun_extra", shell_option_kind(), [](Site & s) -> auto& { return s.srun_extra; }),
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
          "slurm.container", "image", image_kind(), [](Site & s) -> auto& { return s.container.image; }),
      row(
          "slurm.container", "runtime", word_kind("the name of a runtime"),
          [](Site & s) -> auto& { return s.container.runtime; }),
      row(
          "slurm.container", "assay", word_kind("the path of the program assay in the image, without blanks"),
          [](Site & s) -> auto& { return s.container.assay; }),
      list(
          "slurm.container", "mounts", mount_kind(), [](Site & s) -> auto& { return s.container.mounts; }),
      list(
          "slurm.container", "options", shell_option_kind(), [](Site & s) -> auto& { return s.container.options; }),
      row(
          "slurm.canary", "enable", flag(), [](Site & s) -> auto& { return s.canary; }),
  };
  static const std::vector<SiteKey> all = [&name] {
    std::vector<SiteKey> rows = table;
    // The other kinds have those that are no words of a scheduler.
    constexpr std::array<std::string_view, 8> shared{"gpus_per_node", "time_max",   "prologue",    "environment",
                                                     "attempts",      "node_hours", "case_budget", "margin"};
    const auto is_in = [](const auto& keys, const std::string& key) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    const auto add_copy = [&rows](const SiteKey& of, const char* kind) {
      SiteKey copy = of;
      copy.section = kind + of.section.substr(std::string_view("slurm").size());
      rows.push_back(std::move(copy));
    };
    for (const SiteKey& each : table) {
      const bool is_of_all = is_in(shared, each.key) || each.section == "slurm.health";
      if (is_of_all || each.section == "slurm.canary" || each.section == "slurm.container") add_copy(each, "ssh");
      if (is_of_all || each.key == "array_parallel" || each.key == "exclude" ||
          (each.section == "slurm" && each.key == "assay"))
        add_copy(each, "kubernetes");
    }
    Kind<std::string> host = ssh_host();
    host.expected = std::string("texts, each ") + site_host_form;
    rows.push_back(list(
        "ssh", "hosts", host, [](Site & s) -> auto& { return s.hosts; }));
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

}  // namespace assay::host::batch
