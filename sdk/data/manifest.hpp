// What a data set consists of: its parameters, its shards, and the file that says so.
#pragma once
#include <assay/data/shards.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace assay::data {

struct Shard {
  std::string name;
  std::int64_t first = 0, samples = 0;  // `samples` from sample `first` on
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

struct Manifest {
  DatasetParameters parameters;  // with the number of shards decided
  std::vector<Shard> shards;
  std::uint64_t bytes() const;
};

// The shards that these parameters ask for, their checksums still unknown. INVALID_ARGUMENT for parameters that cannot
// be.
Manifest plan(const DatasetParameters& parameters);

std::string text_of(const Manifest& manifest);

// The manifest of `file`, whose content is `text`. Refused, with what was found and expected, when it is none, is
// incomplete, of another format version, of other parameters than `expected`, or does not list the shards that these
// give.
Manifest parse_manifest(const std::filesystem::path& file, const std::string& text, const Manifest& expected);

}  // namespace assay::data
