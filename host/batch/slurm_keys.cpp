#include "batch/slurm_keys.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>
#include <string_view>

namespace assay::host::batch {
namespace {

// A name that the shell of a batch script reads as one word.
TextKind cluster_kind() {
  TextKind kind = experiment::any_text("the name of one cluster: letters, digits and . _ - alone");
  kind.read = [](const Value& found) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&found);
    const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
    return text && !text->empty() && std::all_of(text->begin(), text->end(), fits) ? std::optional(*text)
                                                                                   : std::nullopt;
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

TextKind sbatch_option_kind() {
  TextKind kind = option_kind();
  kind.expected +=
      ", and none that assay sets itself (--nodes, --ntasks, --array, --time, --output, --comment, ...; in the place "
      "of --clusters the key 'cluster')";
  kind.read = [plain = kind.read](const Value& found) {
    auto option = plain(found);
    return option && !is_of_assay(*option) ? option : std::nullopt;
  };
  return kind;
}

}  // namespace

std::vector<SiteKey> slurm_keys() {
  return SiteKeys<SlurmSettings>("slurm")
      .alone("cluster", cluster_kind(), &SlurmSettings::cluster)
      .alone("partition", word_kind(plain_name), &SlurmSettings::partition)
      .alone("account", word_kind(plain_name), &SlurmSettings::account)
      .alone("qos", word_kind(plain_name), &SlurmSettings::qos)
      .alone("constraint", word_kind("features as sbatch takes them, without blanks"), &SlurmSettings::constraint)
      .alone("reservation", word_kind(plain_name), &SlurmSettings::reservation)
      .shared({"gpus_per_node", "time_max"})
      .alone("requeue", experiment::flag(), &SlurmSettings::requeue)
      .alone("exclusive", experiment::flag(), &SlurmSettings::exclusive)
      .shared({"exclude"})
      .list_alone("sbatch_extra", sbatch_option_kind(), &SlurmSettings::sbatch_extra)
      .list_alone("srun_extra", shell_option_kind(), &SlurmSettings::srun_extra)
      .shared({"environment", "prologue"})
      .list_alone("on_end", line_kind(), &SlurmSettings::on_end)
      .shared({"assay", "limits", "health", "container", "canary"})
      .rows();
}

}  // namespace assay::host::batch
