// The projects that `assay new plugin` writes: folders of whole files below share/assay/templates, in which a few words
// stand for what is replaced.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::plugin {

struct PluginTemplate {
  std::string name;              // of its folder
  std::filesystem::path folder;  // whose files are the project's
};

// Beside the executable, in a build tree as in an installed one. Sorted by name; none where the folder is missing.
std::filesystem::path template_folder();
std::vector<PluginTemplate> plugin_templates();

struct ProjectFile {
  std::filesystem::path name;  // relative to the project
  std::string text;
};
// The files of a project of that name, sorted. `prefix`: of the assay that it is built against. Throws StorageError.
std::vector<ProjectFile> project_files(const PluginTemplate& from, const std::string& name, const std::string& prefix);

}  // namespace assay::host::plugin
