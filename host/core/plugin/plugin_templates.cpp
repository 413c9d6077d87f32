#include "plugin/plugin_templates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <system_error>
#include <utility>

#include "common/files.hpp"
#include "common/usage_error.hpp"

namespace assay::host::plugin {
namespace {

namespace fs = std::filesystem;

// "matrix_rate" is the type MatrixRate.
std::string type_name(const std::string& name) {
  std::string type;
  bool begins = true;
  for (const char c : name) {
    if (c != '_') type += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return type;
}

std::string filled_in(std::string text, const std::string& name, const std::string& prefix) {
  const std::pair<std::string, std::string> places[] = {
      {"my_plugin", name}, {"MyPlugin", type_name(name)}, {"/path/to/assay", prefix}};
  for (const auto& [mark, value] : places)
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  return text;
}

// Whether the identifier `word` stands in the text of a source.
bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    if ((at == 0 || !is_part(text[at - 1])) && (at + word.size() == text.size() || !is_part(text[at + word.size()])))
      return true;
  return false;
}

bool is_source(const fs::path& file) {
  const std::string kind = file.extension().string();
  return kind == ".cpp" || kind == ".hpp" || kind == ".cu";
}

}  // namespace

fs::path template_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path() / "share/assay/templates";
}

std::vector<PluginTemplate> plugin_templates() {
  std::vector<PluginTemplate> found;
  std::error_code error;
  for (fs::directory_iterator i(template_folder(), error), end; !error && i != end; i.increment(error))
    if (std::error_code ignored; i->is_directory(ignored)) found.push_back({i->path().filename().string(), i->path()});
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

std::vector<ProjectFile> project_files(const PluginTemplate& from, const std::string& name, const std::string& prefix) {
  std::vector<ProjectFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator i(from.folder, error), end; !error && i != end; i.increment(error)) {
    if (std::error_code ignored; !i->is_regular_file(ignored)) continue;
    const std::string text = read_file(i->path());
    if (is_source(i->path()) && has_word(text, type_name(name)))
      throw UsageError(
          fmt::format("'{0}' cannot name a plugin of the template '{1}', whose sources already have a {2}; "
                      "expected another, such as '{0}_plugin'",
                      name, from.name, type_name(name)));
    files.push_back(
        {filled_in(i->path().lexically_relative(from.folder).string(), name, prefix), filled_in(text, name, prefix)});
  }
  if (error) throw_storage_error("read", from.folder, error.value());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

}  // namespace assay::host::plugin
