#include "batch/container.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

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

// podman's --env-host would bring the host's PATH, too. What the image or podman itself sets is left out; the words of
// the program begin behind those of `podman run`.
constexpr const char* started_with_variables_by =
    "bash -c 'export ASSAY_LAUNCHER_PID=$$; E=(); for V in $(compgen -e); do "
    "[[ $V = @(PATH|LD_*|TMPDIR|HOME|PWD|OLDPWD|_) ]] || E+=(\"--env=$V\"); done; "
    "exec env -u LD_LIBRARY_PATH -u LD_PRELOAD -u TMPDIR \"$1\" \"$2\" \"${E[@]}\" \"${@:3}\"' - ";

std::string podman_words(const Call& call) {
  std::string volumes;
  for (const std::string& mount : call.mounts) volumes += " -v " + mount;
  return fmt::format(
      "{}podman run --rm --log-driver=none --network=host --uts=host --pid=host --ipc=host "
      "--security-opt=label=disable --entrypoint=''{}{} -w {}{} '{}' ",
      started_with_variables_by, call.has_gpus ? " --device nvidia.com/gpu=all" : "", volumes, call.folder,
      options_of(call), call.container.image);
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

// An image has such a folder itself: mounted whole, the host's would hide it.
bool is_of_image(const fs::path& folder) {
  constexpr std::array<std::string_view, 4> above{"/", "/usr", "/usr/local", "/home"};
  return folder == "/var/tmp" || folder == "/dev/shm" ||
         std::find(above.begin(), above.end(), folder.parent_path().string()) != above.end();
}

// The folder of a file, with what may stand beside it, or the file alone.
fs::path with_neighbours(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return is_of_image(folder) ? file : folder;
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
  std::vector<fs::path> read;
  for (const fs::path& file : input.reads) read.push_back(with_neighbours(file));
  if (container.assay.empty()) {
    const fs::path program = program_of(input), prefix = program.parent_path().parent_path();
    if (is_of_image(prefix))
      read.insert(read.end(), {program, prefix / "lib/assay", prefix / "share/assay"});
    else
      read.push_back(prefix);
  }
  if (!input.site.health.experiment.empty()) read.push_back(with_neighbours(input.site.health.experiment));
  std::sort(read.begin(), read.end());
  Call call{container, {}, input.run.string(), input.site.asks_for_gpus()};
  fs::path last;
  for (const fs::path& path : read) {
    if (path.empty() || is_below(path, input.run) || (!last.empty() && is_below(path, last))) continue;
    last = path;
    call.mounts.push_back(fmt::format("{0}:{0}:ro", path.string()));
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
                              fmt::join(names_of_runtimes(input.site.kind()), ", ")));
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
