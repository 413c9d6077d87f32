// Whether the image of a site's container is there, as far as that can be known before a job starts, without pulling
// it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "batch/site.hpp"
#include "batch/site_check.hpp"

namespace assay::host::batch {

// The file or folder that the image names; nothing where it names an image of a registry or of the runtime's store.
std::optional<std::filesystem::path> file_of_image(const SiteContainer& container);

struct ImageFinding {
  std::string problem;  // "": none is known
  std::string note;     // what could not be looked at
};
// Looks for a file on this machine, and asks podman for an image of its store or a registry.
ImageFinding look_for_image(const SiteContainer& container, const std::string& kind);
void add_image(const ImageFinding& image, SiteFindings& findings);

}  // namespace assay::host::batch
