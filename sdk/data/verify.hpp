// Is a data set what its manifest says?
#pragma once
#include <filesystem>

#include "manifest.hpp"

namespace assay::data {

// Compares each shard's size and, unless `_verified` remembers that this was done for these very files, its checksum.
// With `remember` the result is remembered for the next time.
void verify(const std::filesystem::path& folder, const Manifest& manifest, bool remember, const Progress& progress);

// What verify() would find, remembered without looking: by whoever has just written the shards and their checksums.
void remember_as_verified(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace assay::data
