// Sites of Kubernetes as a kind: their table, and the functions of kubernetes_site.hpp.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "batch/kubernetes_site.hpp"
#include "batch/site_kinds.hpp"

namespace assay::host::batch {
namespace {

const std::string& name_space_in(const SiteTarget& target) { return std::get<KubernetesTarget>(target).name_space; }

std::vector<SiteKey> kubernetes_keys() {
  return SiteKeys<KubernetesSettings>("kubernetes")
      .shared({"gpus_per_node", "time_max", "exclude", "environment", "prologue", "assay"})
      .alone("namespace", word_kind(plain_name), &KubernetesSettings::name_space)
      .alone("image", word_kind("the name of an image with assay in it"), &KubernetesSettings::image)
      .alone("volume", word_kind("the name of a PersistentVolumeClaim that many pods may write"),
             &KubernetesSettings::volume)
      .alone("mount", word_kind("the path of that volume, in pods and on this machine, from \"/\" on"),
             &KubernetesSettings::mount)
      .shared({"limits", "health"})
      .rows();
}

void complete_kubernetes(SiteReading& reading) {
  auto& kubernetes = std::get<KubernetesSettings>(reading.site.settings);
  reading.site.canary = false;  // a Job waits for no other
  for (const auto& [key, value] :
       {std::pair{"image", kubernetes.image}, {"volume", kubernetes.volume}, {"mount", kubernetes.mount}})
    if (value.empty() && reading.mistakes.empty())
      reading.mistakes.add(reading.start, fmt::format("[kubernetes] has no {}; expected image, volume and mount", key));
  std::string& mount = kubernetes.mount;
  while (mount.size() > 1 && mount.ends_with('/')) mount.pop_back();
  if (!mount.empty() && !mount.starts_with('/'))
    reading.mistakes.add(reading.place_of("mount"),
                         fmt::format("[kubernetes] mount is \"{}\"; expected a path from \"/\" on", mount));
}

std::string listed_pods(const Site& site) {
  return fmt::format("pods of {} on Kubernetes, shards up to {} min", std::get<KubernetesSettings>(site.settings).image,
                     std::chrono::duration_cast<std::chrono::minutes>(site.time_max).count());
}

std::optional<SiteDifference> difference_of_name_space(const Site& site, const SiteTarget& target) {
  const auto shown = [](const char* key, const std::string& value) { return fmt::format("{} = \"{}\"", key, value); };
  const std::string& of_site = std::get<KubernetesSettings>(site.settings).name_space;
  if (of_site == name_space_in(target)) return std::nullopt;
  return SiteDifference{shown("[kubernetes] namespace", of_site), shown("namespace", name_space_in(target))};
}

std::vector<SiteNode> no_nodes(const Site&) {
  throw SchedulerError("[cluster] each_node needs a site whose jobs choose their node; pods of kubernetes do not");
}

}  // namespace

constinit const SiteKind KubernetesSettings::kind{
    .name = "kubernetes",
    .shown = "Kubernetes",
    .expected = "[kubernetes]",
    .has_images = true,
    .has_gpu_types = false,
    .keys = kubernetes_keys,
    .complete = complete_kubernetes,
    .listed = listed_pods,
    .asks_for_gpus = nullptr,
    .cluster = nullptr,
    .json_of_target =
        [](const SiteTarget& target) {
          return nlohmann::ordered_json{{"namespace", name_space_in(target)}};
        },
    .target_of_json = [](const nlohmann::ordered_json& json) -> SiteTarget {
      return KubernetesTarget{json.value("namespace", "")};
    },
    .difference = difference_of_name_space,
    .hosts = nullptr,
    .nodes = no_nodes,
    .scheduler = [](const Submission& submission, const std::filesystem::path&) -> std::unique_ptr<const Scheduler> {
      return std::make_unique<const Kubernetes>(name_space_in(submission.target));
    },
    .script = kubernetes_manifest,
    .end_script = nullptr,
    .is_job_over = nullptr,
    .check = check_kubernetes,
    .notes_on_gpus = nullptr,
};

}  // namespace assay::host::batch
