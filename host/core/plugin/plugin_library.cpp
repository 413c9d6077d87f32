#include "plugin/plugin_library.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plugin/shared_object.hpp"

namespace assay::host::plugin {

struct PluginLibrary::Handle {
  boost::dll::shared_library library;
};

namespace {

std::filesystem::path plugin_file(const std::filesystem::path& given) {
  std::error_code status;
  std::filesystem::path file = std::filesystem::absolute(given, status).lexically_normal();
  if (!std::filesystem::is_regular_file(file, status))
    throw PluginError(fmt::format("{}: no such plugin file", file.string()), Refusal::file);
  return file;
}

}  // namespace

PluginLibrary::PluginLibrary(std::filesystem::path file, std::unique_ptr<Handle> handle, const assay_entry* entry)
    : file_(std::move(file)), handle_(std::move(handle)), entry_(entry) {}
PluginLibrary::~PluginLibrary() = default;

std::shared_ptr<const PluginLibrary> PluginLibrary::open(const std::filesystem::path& given,
                                                         std::span<const LibraryCopy> copies) {
  std::filesystem::path file = plugin_file(given);
  auto handle = std::make_unique<Handle>();
  // The loader takes what is open already for what the plugin needs, so that what others need comes first. What cannot
  // be opened is left to its words about the plugin.
  for (std::size_t i = copies.size(); i-- > 1;) keep_open(copies[i].name_to_open());
  handle->library = open_shared_object(copies.empty() ? file : copies.front().name_to_open(), file.string(),
                                       "rebuild it against this SDK, or install what it needs");
  if (!handle->library.has(ASSAY_ENTRY_SYMBOL))
    throw PluginError(fmt::format("{}: does not export '" ASSAY_ENTRY_SYMBOL
                                  "'; either it is no assay plugin (ASSAY_PLUGIN is missing), or it was built for "
                                  "another major version of the ABI than this host's {}",
                                  file.string(), ASSAY_ABI_MAJOR),
                      Refusal::symbol);
  const assay_entry* entry = &handle->library.get<const assay_entry>(ASSAY_ENTRY_SYMBOL);
  check_entry(file.string(), *entry);
  return std::shared_ptr<const PluginLibrary>(new PluginLibrary(std::move(file), std::move(handle), entry));
}

const assay_workload& PluginLibrary::workload(const std::string& id) const {
  if (id.empty() && entry_->workload_count == 1) return *entry_->workloads[0];
  std::vector<std::string> ids;
  for (std::uint32_t i = 0; i < entry_->workload_count; ++i) {
    if (id == entry_->workloads[i]->id) return *entry_->workloads[i];
    ids.emplace_back(entry_->workloads[i]->id);
  }
  throw PluginError(fmt::format("{}: has no workload '{}'; it has: {}", file_.string(), id, fmt::join(ids, ", ")));
}

}  // namespace assay::host::plugin
