#include "batch/site_check.hpp"

#include "batch/script.hpp"
#include "batch/shell_words.hpp"
#include "batch/slurm_answers.hpp"
#include "common/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <variant>

namespace assay::host::batch {
namespace {

std::string partition_of(const NodeState& node) {
  std::string name = node.partition;
  if (name.ends_with('*')) name.pop_back();
  return name;
}

class SiteCheck {
 public:
  SiteCheck(const Site& site, const std::vector<Shape>& shapes, const Slurm& slurm)
      : site_(site),
        settings_(std::get<SlurmSettings>(site.settings)),
        shapes_(shapes),
        slurm_(slurm),
        nodes_(slurm.nodes("")) {}

  std::vector<std::string> run() {
    check_partition();
    check_time();
    check_gpus();
    check_nodes();
    check_options();
    check_shapes();
    if (problems_.empty()) check_whole();
    return std::move(problems_);
  }

 private:
  void add(const std::string& setting, const std::string& found, const std::string& text) {
    problems_.push_back(fmt::format("{} is {}: {}", setting, found, text));
  }

  bool is_of_site(const NodeState& node) const {
    if (settings_.partition.empty()) return node.partition.ends_with('*');
    return !is_partition_known_ || partition_of(node) == settings_.partition;
  }

  void check_partition() {
    std::set<std::string> names;
    for (const NodeState& node : nodes_) names.insert(partition_of(node));
    is_partition_known_ = settings_.partition.empty() || names.contains(settings_.partition);
    if (!is_partition_known_)
      add("[slurm] partition", "'" + settings_.partition + "'",
          fmt::format("the cluster has {}{}", fmt::join(names, ", "),
                      did_you_mean(settings_.partition, {names.begin(), names.end()})));
    for (const NodeState& node : nodes_)
      if (is_of_site(node)) of_site_.push_back(&node);
    const std::string name = of_site_.empty() ? "" : partition_of(*of_site_.front());
    const auto states = slurm_.partition_states();
    // Slurm takes jobs for it, and lets them wait.
    if (const auto state = states.find(name); is_partition_known_ && state != states.end() && state->second != "up")
      add("[slurm] partition", "'" + name + "'", fmt::format("it is {}; jobs wait until it is up", state->second));
  }

  // A job above the partition's limit is taken, and waits for ever.
  void check_time() {
    std::int64_t most_s = 0;  // of the partition, or of any where the site's is wrong
    for (const NodeState* node : of_site_) {
      const auto limit_s = parse_time_limit_s(node->time_limit);
      if (!limit_s) return;  // without limit
      most_s = std::max(most_s, *limit_s);
    }
    const auto wanted_s = static_cast<std::int64_t>(site_.time_max.count() / 1000);
    if (const auto longest_s = settings_.qos.empty() ? std::nullopt : slurm_.longest_of_qos_s(settings_.qos);
        longest_s && *longest_s > 0 && wanted_s > *longest_s)
      add("[slurm] time_max", fmt::format("{} min", wanted_s / 60),
          fmt::format("the qos '{}' allows {} min at most", settings_.qos, *longest_s / 60));
    if (!of_site_.empty() && wanted_s > most_s)
      add("[slurm] time_max", fmt::format("{} min", wanted_s / 60),
          fmt::format("{} {} min at most", is_partition_known_ ? "the partition allows" : "the partitions allow",
                      most_s / 60));
  }

  void check_gpus() {
    if (site_.gpus_per_node == 0 || of_site_.empty()) return;
    std::int64_t most = 0;
    for (const NodeState* node : of_site_) most = std::max(most, node->gpus());
    if (site_.gpus_per_node > most)
      add("[slurm] gpus_per_node", std::to_string(site_.gpus_per_node),
          most == 0 ? "no node of the partition has a GPU that Slurm knows"
                    : fmt::format("the partition's nodes have at most {}", most));
  }

  void check_nodes() {
    std::set<std::string> names;
    for (const NodeState& node : nodes_) names.insert(node.name);
    for (const std::string& name : site_.exclude)
      if (!names.contains(name))
        add("[slurm] exclude", "'" + name + "'",
            "the cluster has no such node" + did_you_mean(name, {names.begin(), names.end()}));
  }

  // As the script's line splits it: "--mem 4G" is two words.
  static std::vector<std::string> words_of(const std::string& option) {
    if (const auto words = shell_words(option)) return *words;
    std::vector<std::string> options;  // a line of #SBATCH, which no shell reads
    std::istringstream words(option);
    for (std::string word; words >> word;) options.push_back(word);
    return options;
  }

  // With the partition where it is right, so that an answer is about the setting alone.
  void ask(const std::string& setting, const std::string& found, const std::string& option) {
    std::vector<std::string> options = words_of(option);
    if (is_partition_known_ && !settings_.partition.empty()) options.push_back("--partition=" + settings_.partition);
    if (const auto refusal = slurm_.why_refused(options)) add(setting, "'" + found + "'", *refusal);
  }

  void check_options() {
    const auto ask_if = [this](const char* key, const std::string& value) {
      if (!value.empty()) ask(fmt::format("[slurm] {}", key), value, fmt::format("--{}={}", key, value));
    };
    ask_if("account", settings_.account);
    ask_if("qos", settings_.qos);
    ask_if("constraint", settings_.constraint);
    ask_if("reservation", settings_.reservation);
    for (const std::string& option : settings_.sbatch_extra) ask("[slurm] sbatch_extra", option, option);
    for (const std::string& option : settings_.srun_extra) {
      std::vector<std::string> options = words_of(option);
      if (is_partition_known_ && !settings_.partition.empty()) options.push_back("--partition=" + settings_.partition);
      if (const auto refusal = slurm_.why_srun_refused(options))
        add("[slurm] srun_extra", "'" + option + "'", *refusal);
    }
  }

  void check_shapes() {
    std::set<std::string> usable;  // a node stands in each of its partitions
    for (const NodeState* node : of_site_) usable.insert(node->name);
    for (const std::string& name : site_.exclude) usable.erase(name);
    const auto count = static_cast<std::int64_t>(usable.size());
    for (const Shape& shape : shapes_)
      if (shape.nodes > count)
        add("[cluster] nodes", std::to_string(shape.nodes),
            fmt::format("the {} {} node(s), without the excluded ones",
                        is_partition_known_ ? "partition has" : "cluster has", count));
  }

  // What is right by itself may be wrong together.
  void check_whole() {
    for (const Shape& shape : shapes_) {
      std::vector<std::string> options;
      for (const std::string& option :
           place_options(site_, shape, std::chrono::duration<double>(site_.time_max).count()))
        for (std::string& word : words_of(option)) options.push_back(std::move(word));
      if (const auto refusal = slurm_.why_refused(options))
        problems_.push_back(fmt::format("{}: {}", shape.text(), *refusal));
    }
  }

  const Site& site_;
  const SlurmSettings& settings_;
  const std::vector<Shape>& shapes_;
  const Slurm& slurm_;
  const std::vector<NodeState> nodes_;
  bool is_partition_known_ = true;
  std::vector<const NodeState*> of_site_;
  std::vector<std::string> problems_;
};

}  // namespace

std::optional<std::string> note_on_gpus(const Site& site, const std::vector<NodeState>& nodes) {
  if (site.asks_for_gpus()) return std::nullopt;
  const std::string& wanted = std::get<SlurmSettings>(site.settings).partition;
  std::string partition;
  std::int64_t most = 0;
  for (const NodeState& node : nodes) {
    const bool is_used = wanted.empty() ? node.partition.ends_with('*') : partition_of(node) == wanted;
    if (!is_used) continue;
    partition = partition_of(node);
    most = std::max(most, node.gpus());
  }
  if (most == 0) return std::nullopt;
  return fmt::format(
      "nodes of the partition '{}' have {} GPU{}, and {} asks for none: its jobs{} may see no GPU, and device = "
      "\"auto\" "
      "then measures the CPU. For GPUs set [{}] gpus_per_node = {}, for the CPU [run] device = \"cpu\"",
      partition, most, most == 1 ? "" : "s", site.file.string(),
      site.container.image.empty() ? "" : ", and containers in them,", site.kind(), most);
}

std::vector<std::string> check_site(const Site& site, const std::vector<Shape>& shapes, const Slurm& slurm) {
  return SiteCheck(site, shapes, slurm).run();
}

}  // namespace assay::host::batch
