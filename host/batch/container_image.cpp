#include "batch/container_image.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string_view>
#include <system_error>

#include "common/command.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

// A registry may be far away.
constexpr std::chrono::seconds patience_with_podman{30};

// "oci-archive:/a/b.tar:tag" names the file /a/b.tar.
std::optional<fs::path> file_of_transport(std::string_view image) {
  constexpr std::array<std::string_view, 4> transports{"docker-archive:", "oci-archive:", "oci:", "dir:"};
  for (const std::string_view transport : transports) {
    if (!image.starts_with(transport)) continue;
    const std::string_view path = image.substr(transport.size());
    return fs::path(path.substr(0, path.find(':')));
  }
  return std::nullopt;
}

ImageFinding ask_podman(const SiteContainer& container) {
  const CommandAnswer here = run_command({"podman", "image", "exists", container.image}, patience_with_podman);
  if (here.is_good()) return {};
  if (here.exit_code == 127)
    return {"", fmt::format("there is no podman here to look for the container's image '{}'; a job whose node has no "
                            "such image says so in `assay status`",
                            container.image)};
  if (container.image.starts_with("localhost/"))
    return {"", fmt::format("podman has no image '{}' here, and none of localhost/ comes from a registry: each node "
                            "must have it (podman load)",
                            container.image)};
  const CommandAnswer registry = run_command({"podman", "manifest", "inspect", container.image}, patience_with_podman);
  if (registry.is_good()) return {};
  return {fmt::format("podman has no such image here, and finds none in a registry: {}", registry.complaint()), ""};
}

}  // namespace

std::optional<fs::path> file_of_image(const SiteContainer& container) {
  const std::string& image = container.image;
  if (image.empty()) return std::nullopt;
  // Pyxis takes what begins so for a file, and all else for an image of a registry.
  if (container.runtime == "pyxis")
    return image.starts_with('/') || image.starts_with("./") ? std::optional<fs::path>(image) : std::nullopt;
  if (auto file = file_of_transport(image)) return file;
  if (container.runtime == "podman" || image.find(':') != std::string::npos) return std::nullopt;
  return image;
}

ImageFinding look_for_image(const SiteContainer& container, const std::string& kind) {
  if (container.image.empty()) return {};
  ImageFinding finding;
  if (const auto file = file_of_image(container)) {
    std::error_code error;
    const fs::file_status status = fs::status(*file, error);
    if (!fs::exists(status)) finding.problem = fmt::format("{}", error ? error.message() : "No such file or directory");
  } else if (container.runtime == "podman") {
    finding = ask_podman(container);
  } else {
    finding.note = fmt::format(
        "the container's image '{}' is in a registry, which is not asked: a job whose node cannot "
        "get it says so in `assay status`",
        container.image);
  }
  if (!finding.problem.empty())
    finding.problem =
        fmt::format("[{}.container] image is '{}': {}; build it, or name one that is there (docs/cluster.md)", kind,
                    container.image, finding.problem);
  return finding;
}

void add_image(const ImageFinding& image, SiteFindings& findings) {
  if (!image.problem.empty()) findings.problems.push_back(image.problem);
  if (!image.note.empty()) findings.notes.push_back(image.note);
}

}  // namespace assay::host::batch
