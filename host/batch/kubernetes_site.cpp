#include "batch/kubernetes_site.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "batch/container.hpp"
#include "common/command.hpp"
#include "common/exit_code.hpp"

namespace assay::host::batch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds patience_with_kubectl{60};
constexpr const char* label = "assay-batch";  // of every Job and pod; its value is the array's id
constexpr const char* name_begins = "assay-";
constexpr const char* container_name = "shard";
constexpr int exit_final = 65;  // of a pod whose index gets no other one

// What the pod of one index prints goes to the pod's log, and to a file that outlives the pod. The argument is its
// script, in a shell of its own: one that ends early, at whatever line, is heard to its end.
std::string pod_command(const ScriptInput& input) {
  return fmt::format(
      "bash -c \"$1\" 2>&1 | tee -a {}/batch/log/assay-{}_\"$JOB_COMPLETION_INDEX\".log\n"
      "exit \"${{PIPESTATUS[0]}}\"\n",
      input.run.string(), input.array.id);
}

// What the pod of one index runs.
std::string pod_script(const ScriptInput& input) {
  const auto margin_s = static_cast<double>(input.site.limits.margin.count()) / 1000;
  std::string text = fmt::format(
      "S={0}/batch/shards/{1}-$(printf %04d \"$JOB_COMPLETION_INDEX\")\n"
      "export ASSAY_JOB_KIND=kubernetes ASSAY_JOB_ID=assay-{2}_$JOB_COMPLETION_INDEX "
      "ASSAY_JOB_NODES=${{NODE_NAME:-$(hostname)}}\n"
      "export ASSAY_BATCH={2} ASSAY_JOB_NODE=$ASSAY_JOB_NODES\n"
      "export ASSAY_JOB_RESTART=$(ls -d \"$S\"/attempts/* \"$S\"/unready-* 2>/dev/null | wc -l)\n"
      "END=$(($(date +%s) + {3:.0f}))\n",
      input.run.string(), input.array.number, input.array.id, input.array.limit_s - std::max(margin_s / 5, 1.0));
  text += unready_text("$ASSAY_JOB_ID-$ASSAY_JOB_RESTART", exit_final) + prologue_text(input.site);
  const std::string assay_run =
      fmt::format("{} run {}/experiment.toml --shard \"$S\"", program_of(input).string(), input.run.string());
  // Another pod may come to another node.
  text += node_ready_text(assay_run, unhealthy_text(exit_failed));
  text += assay_run + " --until \"$END\"\n";
  text += fmt::format(
      "case $(cat \"$S/verdict-$ASSAY_JOB_ID-$ASSAY_JOB_RESTART\" 2>/dev/null) in\n"
      "  done) exit 0 ;;\n"
      "  '' | more) exit 1 ;;  # killed, or cases are left: the Job starts another pod for the index\n"
      "  *) exit {} ;;         # another pod would end in the same way\n"
      "esac\n",
      exit_final);
  return text;
}

std::string text_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
}

bool is_over(const Json& job) {
  if (const Json::json_pointer at("/status/conditions"); job.contains(at))
    for (const Json& condition : job.at(at)) {
      const std::string type = condition.value("type", "");
      if ((type == "Complete" || type == "Failed") && condition.value("status", "") == "True") return true;
    }
  return false;
}

// Why a pod waits: no node for it, no image.
std::string reason_of(const Json& pod) {
  if (const Json::json_pointer at("/status/containerStatuses/0/state/waiting/reason"); pod.contains(at))
    return pod.at(at).get<std::string>();
  if (const Json::json_pointer at("/status/conditions"); pod.contains(at))
    for (const Json& condition : pod.at(at))
      if (condition.value("status", "") == "False" && condition.contains("message"))
        return condition.at("message").get<std::string>();
  return "Pending";
}

}  // namespace

std::vector<std::pair<std::int64_t, std::int64_t>> ranges_of_indexes(std::string_view text) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    std::int64_t from = 0, to = 0;
    const auto first = std::from_chars(range.data(), range.data() + range.size(), from);
    to = from;
    if (first.ec == std::errc{} && first.ptr != range.data() + range.size() && *first.ptr == '-')
      std::from_chars(first.ptr + 1, range.data() + range.size(), to);
    if (first.ec == std::errc{}) ranges.emplace_back(from, to);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return ranges;
}

std::vector<QueuedJob> jobs_of_kubernetes(std::string_view text) try {
  const Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("items"))
    throw SchedulerError("kubectl answered no list of jobs and pods in JSON");
  std::vector<QueuedJob> queued;
  std::map<std::string, std::set<std::int64_t>> seen;  // indexes with a pod, by Job
  for (const Json& item : answer.at("items")) {
    if (item.value("kind", "") != "Pod") continue;
    std::string name = text_at(item, "/metadata/labels/job-name");
    if (name.empty()) name = text_at(item, "/metadata/labels/batch.kubernetes.io~1job-name");
    const std::string index = text_at(item, "/metadata/annotations/batch.kubernetes.io~1job-completion-index");
    const std::string phase = text_at(item, "/status/phase");
    if (name.empty() || index.empty() || (phase != "Pending" && phase != "Running" && phase != "Unknown")) continue;
    const std::int64_t task = std::strtoll(index.c_str(), nullptr, 10);
    seen[name].insert(task);
    QueuedJob job;
    job.array = name, job.job = fmt::format("{}_{}", name, task), job.tasks = {{task, task}};
    job.state = phase == "Running" ? "RUNNING" : "PENDING";
    job.nodes = text_at(item, "/spec/nodeName");
    job.reason = phase == "Running" ? "" : reason_of(item);
    job.comment = comment_of(text_at(item, "/metadata/labels/assay-batch"));
    queued.push_back(std::move(job));
  }
  for (const Json& item : answer.at("items")) {
    if (item.value("kind", "") != "Job" || is_over(item)) continue;
    QueuedJob waiting;
    waiting.array = waiting.job = text_at(item, "/metadata/name"), waiting.state = "PENDING",
    waiting.reason = "no pod yet";
    waiting.comment = comment_of(text_at(item, "/metadata/labels/assay-batch"));
    auto done = ranges_of_indexes(text_at(item, "/status/completedIndexes"));
    for (const auto& range : ranges_of_indexes(text_at(item, "/status/failedIndexes"))) done.push_back(range);
    for (std::int64_t task = 0; task < item.at("spec").value("completions", std::int64_t{0}); ++task)
      if (!seen[waiting.array].contains(task) &&
          std::none_of(done.begin(), done.end(), [&](const auto& r) { return r.first <= task && task <= r.second; }))
        waiting.tasks.emplace_back(task, task);
    if (!waiting.tasks.empty()) queued.push_back(std::move(waiting));
  }
  return queued;
} catch (const Json::exception& e) {
  throw SchedulerError(fmt::format("kubectl answered jobs and pods of another form than assay reads: {}", e.what()));
}

std::string Kubernetes::answer_of(std::vector<std::string> words) const {
  words.insert(words.begin(), "kubectl");
  if (!name_space_.empty()) words.push_back("--namespace=" + name_space_);
  const CommandAnswer answer = run_command(words, patience_with_kubectl);
  if (answer.exit_code == 127)
    throw SchedulerError("there is no program 'kubectl' here; install it, and choose the cluster with its context");
  if (!answer.is_good()) throw SchedulerError(fmt::format("kubectl {} failed: {}", words[1], answer.complaint()));
  return answer.out;
}

std::optional<SubmittedJob> Kubernetes::queue_array(const std::string& manifest,
                                                    const std::optional<std::string>&) const {
  std::string name = answer_of({"create", "-f", manifest, "-o", "name"});  // "job.batch/assay-..."
  while (!name.empty() && name.back() == '\n') name.pop_back();
  name.erase(0, name.find('/') == std::string::npos ? 0 : name.find('/') + 1);
  if (!name.starts_with(name_begins))
    throw SchedulerError(fmt::format("kubectl create answered '{}'; expected job.batch/assay-...", name));
  return SubmittedJob{std::move(name), ""};
}

std::vector<QueuedJob> Kubernetes::queue(const std::vector<std::int64_t>&) const {
  return jobs_of_kubernetes(answer_of({"get", "jobs,pods", "-l", label, "-o", "json"}));
}

void Kubernetes::cancel(const std::vector<SubmittedJob>& jobs) const {
  std::vector<std::string> words{"delete", "jobs", "--wait=false"};
  for (const SubmittedJob& job : jobs) words.push_back(job.number);
  answer_of(words);
}

std::int64_t Kubernetes::array_size_max() const { return 100'000; }  // completions of an Indexed Job

std::string kubernetes_manifest(const ScriptInput& input) {
  const Site& site = input.site;
  const auto& kubernetes = std::get<KubernetesSettings>(site.settings);
  const SubmittedArray& array = input.array;
  check_run_path(input.run);
  check_run_path(program_of(input));
  if (array.shape.nodes > 1 || !array.shape.node.empty())
    throw SiteError(
        fmt::format("a case wants {}, and a site of kubernetes runs each on one pod; run it on a site of "
                    "Slurm or ssh",
                    array.shape.text()));
  if (!is_below(input.run, kubernetes.mount))
    throw SiteError(
        fmt::format("the run {} lies outside of [kubernetes] mount = \"{}\", and pods would not see it; choose "
                    "a folder there with --output DIR or [output] dir",
                    input.run.string(), kubernetes.mount));
  if (const std::string& check = site.health.experiment; !check.empty() && !is_below(check, kubernetes.mount))
    throw SiteError(
        fmt::format("[kubernetes.health] experiment {} lies outside of mount = \"{}\", and pods would not see "
                    "it; put it there",
                    check, kubernetes.mount));
  const std::string name = name_begins + array.id;
  const Json labels{{"app.kubernetes.io/name", "assay"}, {label, array.id}};
  Json resources = Json::object();
  if (site.gpus_per_node > 0) resources["limits"] = {{"nvidia.com/gpu", std::to_string(site.gpus_per_node)}};
  const Json container{
      {"name", container_name},
      {"image", kubernetes.image},
      {"command", Json::array({"bash", "-c", pod_command(input), "pod", pod_script(input)})},
      {"workingDir", input.run.string()},
      {"env", Json::array({{{"name", "NODE_NAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}})},
      {"resources", std::move(resources)},
      {"volumeMounts", Json::array({{{"name", "results"}, {"mountPath", kubernetes.mount}},
                                    {{"name", "memory"}, {"mountPath", "/dev/shm"}}})}};
  Json pod{
      {"restartPolicy", "Never"},
      {"terminationGracePeriodSeconds", 60},
      {"activeDeadlineSeconds", static_cast<std::int64_t>(array.limit_s)},
      {"securityContext", {{"runAsUser", getuid()}, {"runAsGroup", getgid()}}},
      {"containers", Json::array({container})},
      {"volumes", Json::array({{{"name", "results"}, {"persistentVolumeClaim", {{"claimName", kubernetes.volume}}}},
                               {{"name", "memory"}, {"emptyDir", {{"medium", "Memory"}}}}})}};
  if (!site.exclude.empty()) {
    // Each expression takes one name.
    Json fields = Json::array();
    for (const std::string& node : site.exclude)
      fields.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
    pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        Json::array({{{"matchFields", std::move(fields)}}});
  }
  Json metadata{{"name", name}, {"labels", labels}};
  if (!kubernetes.name_space.empty()) metadata["namespace"] = kubernetes.name_space;
  const Json job{
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", std::move(metadata)},
      {"spec",
       {{"completionMode", "Indexed"},
        {"completions", array.tasks},
        {"parallelism", std::min(array.tasks, site.limits.array_parallel)},
        {"backoffLimitPerIndex", input.attempts - 1},
        {"maxFailedIndexes", array.tasks},
        {"podFailurePolicy",
         {{"rules",
           Json::array(
               {{{"action", "FailIndex"},
                 {"onExitCodes",
                  {{"containerName", container_name}, {"operator", "In"}, {"values", Json::array({exit_final})}}}}})}}},
        {"template", {{"metadata", {{"labels", labels}}}, {"spec", pod}}}}}};
  return job.dump(2) + "\n";
}

SiteFindings check_kubernetes(const Site& site, const std::vector<Shape>&, const CheckedRuns&) {
  const auto& kubernetes = std::get<KubernetesSettings>(site.settings);
  Kubernetes(kubernetes.name_space).queue();  // throws where there is no cluster
  // kubernetes_manifest() refuses the rest. A cluster answers for an image only by pulling it.
  return {
      {},
      {fmt::format("the image '{}' is in a registry, which is not asked: `assay status` shows a pod that cannot pull "
                   "it",
                   kubernetes.image)}};
}

}  // namespace assay::host::batch
