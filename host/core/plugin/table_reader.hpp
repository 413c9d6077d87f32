// Reads a plugin's tables without opening it in this process: code that runs when a library is opened may print, crash,
// hang or end the process, and a file that is only inspected must not take the host along. So a child opens it, reports
// what it has read, and ends, all before a deadline.
#pragma once
#include <chrono>
#include <filesystem>
#include <span>

#include "plugin/library_copy.hpp"
#include "plugin/plugin_tables.hpp"

namespace assay::host::plugin {

inline constexpr std::chrono::milliseconds longest_look{10'000};

// Reads a copy of the plugin and of the libraries that it finds by its own place, the plugin's first. Throws
// PluginError.
PluginTables read_tables(std::span<const LibraryCopy> copies, std::chrono::milliseconds deadline = longest_look);

// For a file as it is now. The tables read are remembered in the user's cache folder and returned for as long as
// neither the file nor this host has changed: then nothing is opened. Throws PluginError.
PluginTables read_tables(const std::filesystem::path& file, std::chrono::milliseconds deadline = longest_look);

// The folder of what is remembered: $ASSAY_CACHE_DIR, or assay in $XDG_CACHE_HOME, or ~/.cache/assay, and there
// "plugins". Empty where ASSAY_CACHE_DIR is set and empty, or there is no home: then nothing is remembered.
std::filesystem::path table_cache_folder();

}  // namespace assay::host::plugin
