#include "batch/container.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

struct Call {
  const SiteContainer& container;
  std::vector<std::string> mounts;  // "/a:/a:ro"
  std::string folder;               // to work in
  bool has_gpus = false;
};

// Names the process that stands for the container outside: assay in it ends with that process, which may be killed
// alone. Libraries and the folder of temporary files of the host are not those of the image.
constexpr const char* started_by =
    "bash -c 'ASSAY_LAUNCHER_PID=$$ exec env -u LD_LIBRARY_PATH -u LD_PRELOAD -u TMPDIR \"$@\"' - ";

std::string options_of(const Call& call) {
  return call.container.options.empty() ? "" : fmt::format(" {}", fmt::join(call.container.options, " "));
}

std::string pyxis_words(const Call& call) {  // options of srun, which are before the program as well
  return fmt::format("--container-image='{}' --container-mounts={} --container-workdir={}{} ", call.container.image,
                     fmt::join(call.mounts, ","), call.folder, options_of(call));
}

std::string apptainer_words(const Call& call) {
  return fmt::format("{}apptainer exec{} --bind {} --pwd {}{} '{}' ", started_by, call.has_gpus ? " --nv" : "",
                     fmt::join(call.mounts, ","), call.folder, options_of(call), call.container.image);
}

// podman itself sets TMPDIR to /var/tmp, which --env-host would pass on.
std::string podman_words(const Call& call) {
  std::string volumes;
  for (const std::string& mount : call.mounts) volumes += " -v " + mount;
  return fmt::format(
      "{}podman run --rm --log-driver=none --network=host --uts=host --pid=host --ipc=host "
      "--security-opt=label=disable --env-host --env=TMPDIR=/tmp --entrypoint=''{}{} -w {}{} '{}' ",
      started_by, call.has_gpus ? " --device nvidia.com/gpu=all" : "", volumes, call.folder, options_of(call),
      call.container.image);
}

struct Runtime {
  const char* name;
  const char* kind;  // of site, of which alone it is; null: of each
  std::string (*words)(const Call& call);
};

constexpr Runtime runtimes[] = {
    {"pyxis", "slurm", pyxis_words},
    {"apptainer", nullptr, apptainer_words},
    {"podman", nullptr, podman_words},
};

std::vector<std::string> names_of_runtimes(const std::string& kind) {
  std::vector<std::string> names;
  for (const Runtime& runtime : runtimes)
    if (!runtime.kind || runtime.kind == kind) names.emplace_back(runtime.name);
  return names;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return path == folder || (path.string() + "/").starts_with(folder.string() + "/");
}

}  // namespace

fs::path program_of(const ScriptInput& input) {
  for (const std::string& path : {input.site.container.assay, input.site.assay})
    if (!path.empty()) return path;
  return input.assay;
}

std::string container_words(const ScriptInput& input) {
  const SiteContainer& container = input.site.container;
  if (container.image.empty()) return "";
  std::vector<fs::path> read;  // folders
  for (const fs::path& file : input.reads) read.push_back(file.parent_path());
  // bin/ and lib/ beside it
  if (container.assay.empty()) read.push_back(program_of(input).parent_path().parent_path());
  if (!input.site.health.experiment.empty()) read.push_back(fs::path(input.site.health.experiment).parent_path());
  std::sort(read.begin(), read.end());
  Call call{container, {}, input.run.string(), input.site.asks_for_gpus()};
  fs::path last;
  for (const fs::path& folder : read) {
    if (folder.empty() || folder == "/" || is_below(folder, input.run) || (!last.empty() && is_below(folder, last)))
      continue;
    last = folder;
    call.mounts.push_back(fmt::format("{0}:{0}:ro", folder.string()));
  }
  call.mounts.push_back(fmt::format("{0}:{0}", input.run.string()));
  for (const std::string& mount : call.mounts) {
    if (mount.find(',') != std::string::npos || std::count(mount.begin(), mount.end(), ':') > 2)
      throw SiteError(
          fmt::format("the folder of {} has a ',' or ':' in its path, which no container can mount; choose "
                      "another folder with --output DIR",
                      mount));
    check_run_path(mount);
  }
  for (const std::string& mount : container.mounts)
    call.mounts.push_back(mount.find(':') == std::string::npos ? mount + ":" + mount : mount);
  for (const Runtime& runtime : runtimes)
    if (container.runtime == runtime.name) return runtime.words(call);
  throw SiteError(fmt::format("container.runtime is '{}'; expected one of {}", container.runtime,
                              fmt::join(names_of_runtimes(input.site.kind), ", ")));
}

std::vector<ContainerProblem> problems_of_container(const SiteContainer& container, const std::string& kind) {
  const bool has_more =
      !container.runtime.empty() || !container.assay.empty() || !container.mounts.empty() || !container.options.empty();
  const std::vector<std::string> known = names_of_runtimes(kind);
  if (container.image.empty()) {
    if (!has_more) return {};
    return {{"image",
             fmt::format("[{0}.container] has no image; expected container = {{ image = \"...\", runtime = \"{1}\" }}",
                         kind, known.front())}};
  }
  if (std::find(known.begin(), known.end(), container.runtime) == known.end())
    return {{"runtime", fmt::format("[{}.container] runtime is \"{}\"; expected one of {}", kind, container.runtime,
                                    fmt::join(known, ", "))}};
  return {};
}

}  // namespace assay::host::batch
