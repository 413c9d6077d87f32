// Writing a data set, and clearing what a killed writer left. Under the folder's lock.
#pragma once
#include <filesystem>

#include "manifest.hpp"

namespace assay::data {

// Names of a folder's files beside its shards.
inline constexpr const char* manifest_name = "_manifest.json";
inline constexpr const char* generating_name =
    "_generating";  // there while shards are written: they are ours to remove
inline constexpr const char* verified_name = "_verified";
inline constexpr const char* lock_name = "_lock";

// Removes the shards of a generation that did not end. Refuses a folder that holds shards of unknown origin.
void clear_unfinished(const std::filesystem::path& folder);

// Writes the planned shards and, last, the manifest. Without room for them on the disk it writes nothing; when it fails
// it leaves nothing of them.
Manifest generate(const std::filesystem::path& folder, Manifest planned, const Progress& progress);

// Bytes of the planned shards that are there, finished or not: how far another process has come.
std::uint64_t bytes_there(const std::filesystem::path& folder, const Manifest& planned);

}  // namespace assay::data
