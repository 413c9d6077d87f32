// Sites of hosts as a kind: their table, and the functions of hosts_site.hpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "batch/hosts_site.hpp"
#include "batch/site_kinds.hpp"
#include "common/host_list.hpp"

namespace assay::host::batch {
namespace {

// Experiments say how many ranks run on a host, and the configuration of ssh has its port.
constexpr const char* form_of_host =
    "a name that ssh takes, one machine and no pattern of several (\"n1\", \"user@n2\"; ports stand in ~/.ssh/config)";

const std::vector<std::string>& hosts_in_target(const SiteTarget& target) {
  return std::get<HostsTarget>(target).hosts;
}

std::vector<SiteKey> hosts_keys() {
  TextKind host = experiment::ssh_host();
  host.expected = std::string("texts, each ") + form_of_host;
  return SiteKeys<HostsSettings>("ssh")
      .shared({"gpus_per_node", "time_max", "environment", "prologue"})
      .list_alone("hosts", host, &HostsSettings::hosts)
      .shared({"limits.attempts", "limits.node_hours", "limits.case_budget", "limits.margin", "health", "container",
               "canary"})
      .rows();
}

void complete_hosts(SiteReading& reading) {
  if (!reading.mistakes.empty()) return;
  const std::vector<std::string>& hosts = std::get<HostsSettings>(reading.site.settings).hosts;
  if (hosts.empty())
    reading.mistakes.add(reading.start,
                         fmt::format("[ssh] has no hosts; expected hosts = [...], each {}", form_of_host));
  std::set<std::string> seen;
  for (const std::string& host : hosts) {
    const std::string name = parse_host(host)->name;
    if (!seen.insert(name).second)
      reading.mistakes.add(reading.place_of("hosts"),
                           fmt::format("[ssh] hosts has {} twice; expected each host once", name));
    if (host == name || host.ends_with(']')) continue;  // brackets of an address
    reading.mistakes.add(
        reading.place_of("hosts"),
        fmt::format("[ssh] hosts has \"{}\"; expected \"{}\": experiments say how many ranks run on a host, "
                    "use [cluster] ranks_per_node",
                    host, host.substr(0, host.rfind(':'))));
  }
  reading.site.limits.array_parallel = static_cast<std::int64_t>(hosts.size());
}

std::string listed_hosts(const Site& site) {
  const std::size_t count = std::get<HostsSettings>(site.settings).hosts.size();
  return fmt::format("{} host{} by ssh, shards up to {} min", count, count == 1 ? "" : "s",
                     std::chrono::duration_cast<std::chrono::minutes>(site.time_max).count());
}

// Groups of neighbours, and claims of shards that are not done, are of the list that was submitted.
std::optional<SiteDifference> difference_of_hosts(const Site& site, const SiteTarget& target) {
  const std::vector<std::string>& hosts = std::get<HostsSettings>(site.settings).hosts;
  if (hosts == hosts_in_target(target)) return std::nullopt;
  return SiteDifference{fmt::format("[ssh] hosts = {}", hosts), fmt::format("hosts = {}", hosts_in_target(target))};
}

std::vector<SiteNode> all_hosts(const Site& site) {
  std::vector<SiteNode> nodes;
  for (const SshHost& host : hosts_in(std::get<HostsSettings>(site.settings).hosts, "[ssh] hosts"))
    nodes.push_back({host.name, "idle"});
  return nodes;
}

}  // namespace

constinit const SiteKind HostsSettings::kind{
    .name = "ssh",
    .shown = "the hosts",
    .expected = "[ssh] with its hosts",
    .has_images = false,
    .has_gpu_types = false,
    .keys = hosts_keys,
    .complete = complete_hosts,
    .listed = listed_hosts,
    .asks_for_gpus = nullptr,
    .cluster = nullptr,
    .json_of_target =
        [](const SiteTarget& target) {
          return nlohmann::ordered_json{{"hosts", hosts_in_target(target)}};
        },
    .target_of_json = [](const nlohmann::ordered_json& json) -> SiteTarget {
      return HostsTarget{json.value("hosts", std::vector<std::string>{})};
    },
    .difference = difference_of_hosts,
    .hosts = [](const SiteTarget& target) { return hosts_in_target(target); },
    .nodes = all_hosts,
    .scheduler = [](const Submission& submission, const std::filesystem::path& run)
        -> std::unique_ptr<const Scheduler> { return std::make_unique<const HostsScheduler>(submission, run); },
    .script = hosts_script,
    .end_script = nullptr,
    .is_job_over = nullptr,
    .check = check_hosts,
    .notes_on_gpus = nullptr,
};

}  // namespace assay::host::batch
